"""Everything that is wrong with a profile: what it says, the drivers it names, and whether they take what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heron.errors import HeronError
from heron.kernel.drivers import FAMILIES, Drivers
from heron.kernel.loading import open_driver
from heron.kernel.log import hide_in_warnings
from heron.kernel.profiles import SINGLE, Problem, Profile, read_profile
from heron.spi.driver import Driver, DriverRef
from heron.spi.statemgr import StateManager

__all__ = ["Probe", "ProfileCheck", "check_profile"]

Probe = Callable[[Driver], Sequence[str]]
"""Asks an open driver more than its options can tell, such as whether its server answers; returns its complaints."""


@dataclass(frozen=True, slots=True)
class ProfileCheck:
    """What was found: `drivers` are family and driver of a profile that reads, `problems` all that is wrong."""

    name: str
    drivers: tuple[tuple[str, str], ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def install(self) -> tuple[str, ...]:
        """The distributions that are missing."""
        return tuple(dict.fromkeys(each.install for each in self.problems if each.install))


def check_profile(
    name: str, config_path: Path | None, overrides: Mapping[str, str], probes: Sequence[Probe] = ()
) -> ProfileCheck:
    """Reads the profile and, when that goes well, opens the drivers that a command opens. Starts nothing.

    Sinks are not opened: one that listens would be in the way of the topologies that run.
    """
    found = read_profile(name, Drivers().resolve, config_path=config_path, overrides=overrides)
    if found.profile is None:
        return ProfileCheck(name, (), found.problems)
    hide_in_warnings(found.profile.secrets)
    refs = {family: _ref(found.profile, family) for family in SINGLE}
    problems = [problem for ref in refs.values() for problem in _problems(ref, probes)]
    sinks = tuple(("metricsink", each.name) for each in found.profile.metricsinks)
    return ProfileCheck(name, (*((family, ref.name) for family, ref in refs.items()), *sinks), tuple(problems))


def _ref(profile: Profile, family: str) -> DriverRef:
    return {
        "scheduler": profile.scheduler,
        "statemgr": profile.statemgr,
        "uploader": profile.uploader,
        "packing": profile.packing,
    }[family]


def _problems(ref: DriverRef, probes: Sequence[Probe]) -> list[Problem]:
    try:
        driver = open_driver(ref, FAMILIES[ref.family])
    except HeronError as error:
        return [Problem(str(error), ref.family)]
    try:
        return [Problem(complaint, ref.family) for probe in probes for complaint in probe(driver)]
    finally:
        if isinstance(driver, StateManager):
            driver.close()
