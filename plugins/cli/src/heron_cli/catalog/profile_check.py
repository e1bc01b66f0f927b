"""Everything that is wrong with a profile: what it says, the drivers it names, and whether they take what it says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.loading import open_driver
from heron.driver_kit.redaction import redact_for_command, set_command_secrets
from heron.errors import HeronError
from heron.spi.driver import DriverRef
from heron.spi.families import FAMILIES
from heron.spi.statemgr import StateManager
from heron_cli.catalog.drivers import Drivers
from heron_cli.profiles import Problem, read_profile

__all__ = ["Ask", "CheckedDriver", "ProfileCheck", "check_profile", "open_once", "untouched"]

Ask = Callable[[DriverRef, Sequence[DriverRef]], str]
"""Tries a driver out, told those of the profile that containers need: returns what there is to say of it, and raises
HeronError when it cannot be used."""


@dataclass(frozen=True, slots=True)
class CheckedDriver:
    """A driver of a profile; `answer` is what it, or its server, had to say."""

    family: str
    name: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ProfileCheck:
    """What was found: the drivers of a profile that reads, and all that is wrong."""

    name: str
    drivers: tuple[CheckedDriver, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def install(self) -> tuple[str, ...]:
        """The distributions that are missing."""
        return tuple(dict.fromkeys(each.install for each in self.problems if each.install))


def open_once(ref: DriverRef, _others: Sequence[DriverRef] = ()) -> str:
    """Opens the driver as a command does, and closes it.

    Raises:
        HeronError: when it does not open.
    """
    driver = open_driver(ref, FAMILIES[ref.family])
    if isinstance(driver, StateManager):
        driver.close()
    return ""


def untouched(_ref: DriverRef, _others: Sequence[DriverRef] = ()) -> str:
    """For sinks: one that listens would be in the way of the topologies that run."""
    return ""


def check_profile(
    name: str, config_path: Path | None, overrides: Mapping[str, str], ask: Ask = open_once, ask_sink: Ask = untouched
) -> ProfileCheck:
    """Reads the profile and, when that goes well, tries its drivers. Starts nothing."""
    found = read_profile(name, Drivers().resolve, config_path=config_path, overrides=overrides)
    profile = found.profile
    if profile is None:
        return ProfileCheck(name, (), found.problems)
    set_command_secrets(profile.secrets)
    drivers: list[CheckedDriver] = []
    problems: list[Problem] = []
    single = (profile.scheduler, profile.statemgr, profile.uploader, profile.packing)
    with tempfile.TemporaryDirectory(prefix="heron-check-") as folder:
        sinks = profile.sinks(folder)
        needed = (profile.statemgr, profile.uploader, *sinks)
        for each, asked in (*((ref, ask) for ref in single), *((ref, ask_sink) for ref in sinks)):
            try:
                drivers.append(CheckedDriver(each.family, each.name, redact_for_command(asked(each, needed))))
            except HeronError as error:
                problems.append(Problem(redact_for_command(str(error)), each.family))
    return ProfileCheck(name, tuple(drivers), tuple(problems))
