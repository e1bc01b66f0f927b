"""Opens the store of a profile, for programs that read views."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from heron.driver_kit.loading import open_driver
from heron.errors import ConfigError
from heron.spi.store import ViewStore
from heron_cli.profiles import STORE
from heron_cli.profiles.overrides import split_overrides
from heron_cli.topologies.environment import ProfileChoice, find_profile

__all__ = ["open_store"]


def open_store(
    profile: str = "local", *, config_path: Path | None = None, overrides: Mapping[str, str] | None = None
) -> ViewStore:
    """Open the store of a profile, which `heron_streamlet.views.ViewReader` reads; `close` releases it.

    Args:
        profile: the name of the profile.
        config_path: a folder of profiles that is searched first, as ``--config-path``.
        overrides: settings by key, as ``--set``; values are text that is read as YAML.

    Raises:
        ConfigError: when the profile is unknown or wrong, or names no store.
        PluginError: when the driver of the store is missing or does not work.
    """
    found = find_profile(ProfileChoice(profile, config_path, split_overrides(overrides or {})), (STORE,)).store
    if found is None:
        msg = f"profile {profile!r} names no store; add the section `store: {{driver: sqlite}}`"
        raise ConfigError(msg)
    return open_driver(found, ViewStore)
