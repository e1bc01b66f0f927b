"""The profile that a command or client was given, and the drivers of the profile, opened."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from heron.driver_kit.redaction import add_command_secrets
from heron.errors import HeronError
from heron.kernel.observer_threads import Hooks, ThreadedHooks
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import StateManager
from heron.spi.uploader import Uploader
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.third_party import open_guarded, open_guarded_statemgr
from heron_cli.profiles import ALL_FAMILIES, Profile, load_profile
from heron_cli.profiles.overrides import Overrides

__all__ = [
    "Environment",
    "ProfileChoice",
    "close_statemgr",
    "find_profile",
    "lifecycle_hooks",
    "open_environment",
    "without_secrets",
]

_OBSERVERS_S = 2.0  # the longest that a command waits at its end for observers

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where topologies run: the profile and its open drivers."""

    profile: Profile
    statemgr: StateManager
    uploader: Uploader
    scheduler: Scheduler

    def close(self) -> None:
        """Close the state manager."""
        close_statemgr(self.statemgr)


def close_statemgr(statemgr: StateManager) -> None:
    """Close the state manager; a failure is logged, because the work is done."""
    try:
        statemgr.close()
    except HeronError as error:
        _log.warning("%s", error)


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """The name of a profile, the folder that is searched first, and what one command or client changes in it.

    `without` names plugins that are not used, as ``NAME`` or ``FAMILY.NAME``.
    """

    name: str = "local"
    config_path: Path | None = None
    overrides: Overrides = field(default_factory=Overrides)
    without: tuple[str, ...] = ()


def find_profile(choice: ProfileChoice, needed: Collection[str] = ALL_FAMILIES) -> Profile:
    """Read a profile and find its drivers; from now on, `redact_for_command` removes its secrets.

    `needed` are the families whose drivers the caller uses; a mistake in the section of another family is not found.

    Raises:
        ConfigError: when the profile, or something in it, is unknown or wrong.
        PluginError: when a driver is missing or does not work.
    """
    profile = load_profile(
        choice.name,
        Drivers(without=choice.without).resolve,
        config_path=choice.config_path,
        overrides=choice.overrides.profile,
        needed=needed,
        without=choice.without,
    )
    add_command_secrets(profile.secrets)
    return profile


def open_environment(profile: Profile) -> Environment:
    """Open the drivers of the profile, except those of packing and metrics sinks.

    Raises:
        PluginError: when a driver does not load.
        ConfigError: when a driver does not accept its options.
    """
    statemgr = open_guarded_statemgr(profile.statemgr)
    try:
        uploader = open_guarded(profile.uploader, Uploader)
        scheduler = open_guarded(profile.scheduler, Scheduler)
        scheduler.use_state(statemgr)
    except BaseException:
        close_statemgr(statemgr)
        raise
    return Environment(profile, statemgr, uploader, scheduler)


@contextmanager
def without_secrets(profile: Profile) -> Iterator[None]:
    """Remove the variables with secrets of the profile's drivers, so that no child process inherits them."""
    taken = {name: os.environ.pop(name) for name in profile.secret_variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(taken)


@contextmanager
def lifecycle_hooks(entries: Sequence[str]) -> Iterator[Hooks]:
    """Load the observers ``module:object`` for this block; at its end, wait up to 2 s for them."""
    hooks = ThreadedHooks(entries)
    try:
        yield hooks
    finally:
        hooks.close(_OBSERVERS_S)
