"""The changes that options make for one command: ``--set KEY=VALUE`` and ``--without NAME``.

A key belongs to the profile (``section.key``), the engine (``heron.…``) or the topology (``topology.…``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heron.api.api_constants import TOPOLOGY_ON_FAILURE, TOPOLOGY_TMANAGER_STANDBYS
from heron.api.config import check_config
from heron.api.definition import TopologyDefinition
from heron.errors import UsageError
from heron.kernel.settings import EngineSettings
from heron_cli.profiles.yaml_file import parse_yaml

__all__ = ["Overrides", "engine_settings", "is_switched_off", "parse_overrides", "split_overrides"]


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings by key, for the profile and for the topology; values are still text."""

    profile: Mapping[str, str] = field(default_factory=dict)
    topology: Mapping[str, str] = field(default_factory=dict)

    def configured(self, definition: TopologyDefinition) -> TopologyDefinition:
        """Return the topology with its configuration overridden.

        Raises:
            ConfigError: when a key is unknown or a value is not acceptable.
        """
        if not self.topology:
            return definition
        values = {key: parse_yaml(text, f"--set {key}") for key, text in self.topology.items()}
        return replace(definition, config={**definition.config, **check_config(values, "--set")})


def parse_overrides(settings: Sequence[str]) -> Overrides:
    """Parse settings ``KEY=VALUE``, and separate those of the profile from those of the topology.

    Raises:
        UsageError: when a setting does not have that form, or a key is given twice.
    """
    values: dict[str, str] = {}
    for each in settings:
        key, equals, value = each.partition("=")
        if not equals or not key:
            msg = f"--set {each}: not of the form KEY=VALUE, such as run.log_dir=/logs"
            raise UsageError(msg)
        if key in values:
            msg = f"--set {key}: given twice; give it once"
            raise UsageError(msg)
        values[key] = value
    return split_overrides(values)


def split_overrides(values: Mapping[str, str]) -> Overrides:
    """Separate the settings of the profile from those of the topology."""
    topology = {key: value for key, value in values.items() if key.startswith("topology.")}
    others = {key: value for key, value in values.items() if key not in topology}
    return Overrides(
        {f"engine.{key}" if key.startswith("heron.") else key: value for key, value in others.items()}, topology
    )


def engine_settings(engine: EngineSettings, definition: TopologyDefinition, on_failure: str) -> EngineSettings:
    """Return the settings of the engine for a run: those of the profile, unless the topology has its own."""
    own = {
        TOPOLOGY_ON_FAILURE: definition.config.get(TOPOLOGY_ON_FAILURE, on_failure),
        TOPOLOGY_TMANAGER_STANDBYS: definition.config.get(TOPOLOGY_TMANAGER_STANDBYS, engine.standbys),
    }
    return EngineSettings.from_keys({**engine.to_keys(), **own})


def is_switched_off(family: str, name: str, without: Collection[str]) -> bool:
    """Return whether ``--without`` names the plugin, as ``NAME`` or ``FAMILY.NAME``."""
    return name in without or f"{family}.{name}" in without
