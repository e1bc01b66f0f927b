"""A profile that can be used: drivers found, options checked, references resolved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from heron.kernel.settings import EngineSettings
from heron.spi.driver import DriverRef
from heron_cli.profiles.references import RUN_LOGS

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile with its drivers found. `run_dir` is "" where the system's folder for temporary files serves.

    `secret_variables` are those of the environment that hold secrets of drivers: no process of a run may inherit them.
    """

    name: str
    source: Path
    scheduler: DriverRef
    statemgr: DriverRef
    uploader: DriverRef
    packing: DriverRef
    metricsinks: tuple[DriverRef, ...]
    engine: EngineSettings
    log_dir: str
    run_dir: str
    secret_variables: tuple[str, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts in the options of all drivers that no message may contain."""
        drivers = (self.scheduler, self.statemgr, self.uploader, self.packing, *self.metricsinks)
        return tuple(text for each in drivers for text in each.secrets)

    def sinks(self, log_dir: str) -> tuple[DriverRef, ...]:
        """The metrics sinks for a run whose logs are in that folder."""
        return tuple(
            replace(each, options={key: _filled(value, log_dir) for key, value in each.options.items()})
            for each in self.metricsinks
        )


def _filled(value: object, log_dir: str) -> object:
    if isinstance(value, str):
        return value.replace(RUN_LOGS, log_dir)
    if isinstance(value, dict):
        return {key: _filled(each, log_dir) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, log_dir) for each in value]
    return value
