"""The metrics sinks of a profile, for programs that read what a sink has delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from heron.spi.driver import DriverRef
from heron_cli.catalog.other_plugins import check_without
from heron_cli.profiles.overrides import split_overrides
from heron_cli.topologies.environment import ProfileChoice, find_profile

__all__ = ["metrics_sinks"]


def metrics_sinks(
    profile: str,
    *,
    config_path: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
) -> tuple[DriverRef, ...]:
    """Return the metrics sinks of a profile with their options; the arguments are those of `connect`.

    Raises:
        ConfigError: when the profile or a setting of its sinks is unknown or wrong.
        PluginError: when the driver of a sink is missing.
    """
    check_without(without)
    choice = ProfileChoice(profile, config_path, split_overrides(overrides or {}), tuple(without))
    return find_profile(choice, ("metricsink",)).metricsinks
