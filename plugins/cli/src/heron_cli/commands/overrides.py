"""``--set KEY=VALUE``: for the profile (``section.key``), the engine (``heron.…``) or the topology (``topology.…``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heron.api.api_constants import TOPOLOGY_ON_FAILURE, TOPOLOGY_TMANAGER_STANDBYS
from heron.api.config import check_config
from heron.api.definition import TopologyDefinition
from heron.errors import UsageError
from heron.kernel.settings import EngineSettings
from heron_cli.profiles.yaml_file import parse_yaml

__all__ = ["Overrides", "engine_settings", "parse_overrides"]


@dataclass(frozen=True, slots=True)
class Overrides:
    """What was set on the command line, by whom it is for; values are still text."""

    profile: dict[str, str]
    topology: dict[str, str]

    def configured(self, definition: TopologyDefinition) -> TopologyDefinition:
        """The topology with its configuration overridden.

        Raises:
            ConfigError: when a key is unknown or a value is not acceptable.
        """
        if not self.topology:
            return definition
        values = {key: parse_yaml(text, f"--set {key}") for key, text in self.topology.items()}
        return replace(definition, config={**definition.config, **check_config(values, "--set")})


def parse_overrides(settings: Sequence[str]) -> Overrides:
    """Sorts ``KEY=VALUE`` by whom it is for.

    Raises:
        UsageError: when one is not of that form, or a key is given twice.
    """
    profile: dict[str, str] = {}
    topology: dict[str, str] = {}
    for each in settings:
        key, equals, value = each.partition("=")
        if not equals or not key:
            msg = f"--set {each}: not of the form KEY=VALUE"
            raise UsageError(msg)
        if key in profile or key in topology:
            msg = f"--set {key}: given twice; give it once"
            raise UsageError(msg)
        if key.startswith("topology."):
            topology[key] = value
        else:
            profile[f"engine.{key}" if key.startswith("heron.") else key] = value
    return Overrides(profile, topology)


def engine_settings(engine: EngineSettings, definition: TopologyDefinition, on_failure: str) -> EngineSettings:
    """The engine's settings for a run: those of the profile, where the topology's own does not differ."""
    own = {
        TOPOLOGY_ON_FAILURE: definition.config.get(TOPOLOGY_ON_FAILURE, on_failure),
        TOPOLOGY_TMANAGER_STANDBYS: definition.config.get(TOPOLOGY_TMANAGER_STANDBYS, engine.standbys),
    }
    return EngineSettings.from_keys({**engine.to_keys(), **own})
