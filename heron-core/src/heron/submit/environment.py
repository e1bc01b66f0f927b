"""The drivers of a profile, opened for a command."""

from __future__ import annotations

from dataclasses import dataclass

from heron.kernel.loading import open_driver
from heron.kernel.profiles import Profile
from heron.spi.packing import Packing
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import StateManager
from heron.spi.uploader import Uploader

__all__ = ["Environment", "open_environment"]


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
        open_driver(profile.statemgr, StateManager),
        open_driver(profile.uploader, Uploader),
        open_driver(profile.scheduler, Scheduler),
    )
