"""The drivers of a profile, opened for a command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.loading import open_driver
from heron.spi.packing import Packing
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import StateManager
from heron.spi.uploader import Uploader
from heron_cli.profiles import Profile

__all__ = ["Environment", "open_environment", "without_secrets"]


@dataclass(frozen=True, slots=True)
class Environment:
    """Where topologies run: the profile and its drivers."""

    profile: Profile
    packing: Packing
    statemgr: StateManager
    uploader: Uploader
    scheduler: Scheduler


def open_environment(profile: Profile) -> Environment:
    """Opens every driver of the profile.

    Raises:
        PluginError: when a driver does not load.
        ConfigError: when one does not accept its options.
    """
    return Environment(
        profile,
        open_driver(profile.packing, Packing),
        open_statemgr(profile.statemgr),
        open_driver(profile.uploader, Uploader),
        open_driver(profile.scheduler, Scheduler),
    )


@contextmanager
def without_secrets(profile: Profile) -> Iterator[None]:
    """What is started in this block does not inherit the variables that hold secrets of the profile's drivers."""
    taken = {name: os.environ.pop(name) for name in profile.secret_variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(taken)
