"""Topology definitions, component by component."""

from __future__ import annotations

from heron.api.definition import (
    DEFAULT_STREAM,
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)

__all__ = ["bolt", "spout", "stream", "subscription", "topology"]


def stream(*fields: str, name: str = DEFAULT_STREAM) -> StreamDefinition:
    """A declared output stream with these fields; without any field, its tuples are signals."""
    return StreamDefinition(name, fields)


def subscription(
    component: str,
    grouping: GroupingKind | GroupingDefinition = GroupingKind.SHUFFLE,
    *fields: str,
    stream: str = DEFAULT_STREAM,
) -> InputDefinition:
    """A subscription to a stream of `component`; `fields` is the key of a grouping by fields."""
    definition = grouping if isinstance(grouping, GroupingDefinition) else GroupingDefinition(grouping, fields)
    return InputDefinition(component, stream, definition)


def spout(
    name: str,
    *outputs: StreamDefinition,
    parallelism: int = 1,
    entry: str = "m:S",
    config: dict[str, object] | None = None,
) -> ComponentDefinition:
    """A spout with these output streams."""
    return ComponentDefinition(name, ComponentKind.SPOUT, entry, parallelism, outputs, (), config or {})


def bolt(
    name: str,
    *inputs: InputDefinition,
    outputs: tuple[StreamDefinition, ...] = (),
    parallelism: int = 1,
    entry: str = "m:B",
    config: dict[str, object] | None = None,
) -> ComponentDefinition:
    """A bolt with these subscriptions."""
    return ComponentDefinition(name, ComponentKind.BOLT, entry, parallelism, outputs, inputs, config or {})


def topology(
    *components: ComponentDefinition, name: str = "t", config: dict[str, object] | None = None
) -> TopologyDefinition:
    """A topology of these components, in this order; it is not verified."""
    return TopologyDefinition(name, components, config or {})
