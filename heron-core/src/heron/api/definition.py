"""The neutral, frozen value that a topology becomes: JSON everywhere outside the author's process.

Components are named by ``module:Class`` and configured by JSON values, so that other languages, the state manager
and other engines can read a topology without running its code.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "COMPONENT_RUNTIME",
    "DEFAULT_STREAM",
    "ComponentDefinition",
    "ComponentKind",
    "GroupingDefinition",
    "GroupingKind",
    "InputDefinition",
    "StreamDefinition",
    "TopologyDefinition",
]

DEFAULT_STREAM = "default"
COMPONENT_RUNTIME = "python"


class ComponentKind(enum.Enum):
    """What a component is."""

    SPOUT = "spout"
    BOLT = "bolt"


class GroupingKind(enum.Enum):
    """How the tuples of a stream are divided among the tasks of a consumer."""

    SHUFFLE = "shuffle"
    ALL = "all"
    LOWEST = "lowest"
    NONE = "none"
    DIRECT = "direct"
    LOCAL_OR_SHUFFLE = "local_or_shuffle"
    FIELDS = "fields"
    PARTIAL_KEY = "partial_key"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class GroupingDefinition:
    """A grouping as data.

    `fields` is for FIELDS and PARTIAL_KEY. A CUSTOM grouping travels as `entry` (``module:Class``) with JSON
    keyword `arguments`; where `entry` is None the instance loads the author's file again and takes the object that
    stands there under the same component and input.
    """

    kind: GroupingKind
    fields: tuple[str, ...] = ()
    entry: str | None = None
    arguments: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """A declared output stream: its name and its fields, in order."""

    name: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputDefinition:
    """One subscription of a bolt."""

    component: str
    stream: str
    grouping: GroupingDefinition


@dataclass(frozen=True, slots=True)
class ComponentDefinition:
    """A spout or bolt: what runs (`entry`), how often (`parallelism`), with what in and out."""

    name: str
    kind: ComponentKind
    entry: str
    parallelism: int
    outputs: tuple[StreamDefinition, ...] = ()
    inputs: tuple[InputDefinition, ...] = ()
    config: dict[str, object] = field(default_factory=dict)
    runtime: str = COMPONENT_RUNTIME

    def output(self, stream: str) -> StreamDefinition | None:
        """The declared stream of that name, or None."""
        return next((output for output in self.outputs if output.name == stream), None)


@dataclass(frozen=True, slots=True)
class TopologyDefinition:
    """A whole topology: its name, its components in the order of declaration, and its configuration."""

    name: str
    components: tuple[ComponentDefinition, ...]
    config: dict[str, object] = field(default_factory=dict)

    def component(self, name: str) -> ComponentDefinition:
        """The component of that name; KeyError when there is none."""
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)

    def consumers(self, component: str, stream: str) -> Iterator[tuple[ComponentDefinition, InputDefinition]]:
        """Each bolt that subscribes to that stream, with its subscription, in the order of declaration."""
        for consumer in self.components:
            for subscription in consumer.inputs:
                if (subscription.component, subscription.stream) == (component, stream):
                    yield consumer, subscription
