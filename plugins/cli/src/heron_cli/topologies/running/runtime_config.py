"""Changes of the configuration of a running topology: read from options, and compared with the present values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from heron.api.definition import TopologyDefinition
from heron.errors import StateError, UsageError
from heron.planner.runtime_config import ConfigChanges, encode_changes, with_changes
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.plans import decode_physical_plan
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["ConfigChange", "change_config", "parse_changes"]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A key of a component, or of the topology if `component` is "", with both values; None is no value."""

    component: str
    key: str
    before: object
    after: object


def parse_changes(options: Iterable[str]) -> dict[str, dict[str, object]]:
    """Return the changes in options of the form ``[COMPONENT:]KEY=VALUE``. A value is JSON, or else a string.

    Raises:
        UsageError: when an option has another form, or two options give a key different values.
    """
    found: dict[str, dict[str, object]] = {}
    for each in options:
        place, equals, text = each.partition("=")
        component, colon, key = place.rpartition(":")
        if not equals or not key or (colon and not component):
            msg = f"--runtime-config {each!r:.80}: give [COMPONENT:]KEY=VALUE, such as count:limit=7"
            raise UsageError(msg)
        value = _value(text)
        values = found.setdefault(component, {})
        if values.setdefault(key, value) != value:
            msg = f"--runtime-config: {place!r} has two values, {values[key]!r} and {value!r}"
            raise UsageError(msg)
    return found


def change_config(
    statemgr: StateManager, topology: RemoteTopology, changes: ConfigChanges, *, dry_run: bool
) -> tuple[ConfigChange, ...]:
    """Change the configuration of a topology unless it is a dry run, and return which values differ.

    Raises:
        ConfigError: when a component is unknown, a key cannot change while the topology runs, or a value is wrong.
        StateError: when the physical plan is missing or cannot be read.
    """
    topology.status(control=not dry_run)  # it runs, and this user may change it
    node = statemgr.get(NodeKind.PHYSICAL_PLAN, topology.name)
    if node is None:
        msg = f"topology {topology.name!r} has no physical plan yet; try again when it runs"
        raise StateError(msg)
    before = decode_physical_plan(node.value, topology.name).topology
    after = with_changes(before, changes)
    if not dry_run:
        topology.change_config(encode_changes(changes))
    return tuple(
        ConfigChange(component, key, old.get(key), new.get(key))
        for component, values in changes.items()
        for old, new in [(_config(before, component), _config(after, component))]
        for key in values
        if old.get(key) != new.get(key)
    )


def _config(definition: TopologyDefinition, component: str) -> dict[str, object]:
    return dict(definition.component(component).config if component else definition.config)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
