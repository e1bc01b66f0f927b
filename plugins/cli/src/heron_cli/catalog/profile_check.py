"""The checks of ``heron profiles check``: all mistakes in a profile, and whether its drivers accept their options."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.redaction import add_command_secrets, redact_for_command
from heron.errors import HeronError
from heron.spi.driver import Driver, DriverRef
from heron.spi.families import FAMILIES
from heron.spi.statemgr import StateManager
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.third_party import open_guarded
from heron_cli.profiles import Problem, read_profile

__all__ = ["Ask", "CheckedDriver", "ProfileCheck", "check_profile", "open_once"]

_IN_CONTAINERS = frozenset({"statemgr", "uploader", "checkpoint"})  # besides the sinks

Ask = Callable[[DriverRef, Sequence[DriverRef]], str]
"""Tries a driver, given the drivers of the profile that containers need. Returns what the driver or its server
answers, and raises HeronError when the driver cannot be used."""


@dataclass(frozen=True, slots=True)
class CheckedDriver:
    """A driver of a profile; `answer` is that of the driver or its server."""

    family: str
    name: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ProfileCheck:
    """The drivers of a profile that can be read, and all problems."""

    name: str
    drivers: tuple[CheckedDriver, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    @property
    def install(self) -> tuple[str, ...]:
        """The distributions that are missing."""
        return tuple(dict.fromkeys(each.install for each in self.problems if each.install))


def open_once(ref: DriverRef, _others: Sequence[DriverRef] = ()) -> str:
    """Open the driver as a command does, and close it.

    Raises:
        HeronError: when it does not open or close.
    """
    base: type[Driver] = FAMILIES[ref.family]
    driver = open_guarded(ref, base)
    if isinstance(driver, StateManager):
        driver.close()
    return ""


def check_profile(
    name: str,
    config_path: Path | None,
    overrides: Mapping[str, str],
    ask: Ask = open_once,
    *,
    without: Sequence[str] = (),
) -> ProfileCheck:
    """Read the profile and, when it can be read, try its drivers with `ask`. Starts nothing.

    Sinks are not opened: a sink that listens on a port would disturb running topologies.
    """
    resolve = Drivers(without=without).resolve
    found = read_profile(name, resolve, config_path=config_path, overrides=overrides, without=without)
    profile = found.profile
    if profile is None:
        return ProfileCheck(name, (), found.problems)
    add_command_secrets(profile.secrets)
    drivers: list[CheckedDriver] = []
    problems: list[Problem] = []
    with tempfile.TemporaryDirectory(prefix="heron-check-") as folder:
        sinks = profile.sinks(folder)
        policies = profile.health.policies if profile.health else ()
        needed = (*(each for each in profile.singles if each.family in _IN_CONTAINERS), *sinks, *policies)
        for each in (*profile.singles, *policies):
            try:
                drivers.append(CheckedDriver(each.family, each.name, redact_for_command(ask(each, needed))))
            except HeronError as error:
                problems.append(Problem(redact_for_command(str(error)), each.family))
    drivers += [CheckedDriver(each.family, each.name) for each in sinks]
    return ProfileCheck(name, tuple(drivers), tuple(problems))
