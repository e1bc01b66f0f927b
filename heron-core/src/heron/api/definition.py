"""The definition of a topology: a frozen value, and JSON outside the author's process.

A definition names classes as ``module:Class`` and holds JSON values. Other languages, the state manager and other
engines can therefore read it without the author's code.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "COMPONENT_RUNTIME",
    "DEAD_LETTERS",
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
DEAD_LETTERS = "dead_letters"
"""The stream of a spout on which its dead letters leave, if a bolt subscribes to it; `heron.api.dead_letter`."""

COMPONENT_RUNTIME = "python"


class ComponentKind(enum.Enum):
    """The kind of a component."""

    SPOUT = "spout"
    BOLT = "bolt"


class GroupingKind(enum.Enum):
    """The kind of a grouping; `heron.api.Grouping` explains each."""

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

    Attributes:
        kind: the kind of the grouping.
        fields: the key fields of FIELDS and PARTIAL_KEY.
        entry: the class of a CUSTOM grouping as ``module:Class``. None means an object: the instance loads the
            author's file again and takes the object at the same input of the same component.
        arguments: JSON keyword arguments for the constructor of `entry`.
    """

    kind: GroupingKind
    fields: tuple[str, ...] = ()
    entry: str | None = None
    arguments: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """A declared output stream: its name, and its fields in the order of the emitted values."""

    name: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputDefinition:
    """A subscription of a bolt to a stream of another component."""

    component: str
    stream: str
    grouping: GroupingDefinition


@dataclass(frozen=True, slots=True)
class ComponentDefinition:
    """A spout or bolt: its class as ``module:Class`` (`entry`), its number of tasks, its streams and configuration."""

    name: str
    kind: ComponentKind
    entry: str
    parallelism: int
    outputs: tuple[StreamDefinition, ...] = ()
    inputs: tuple[InputDefinition, ...] = ()
    config: dict[str, object] = field(default_factory=dict)
    runtime: str = COMPONENT_RUNTIME

    def output(self, stream: str) -> StreamDefinition | None:
        """Return the declared stream of that name, or None."""
        return next((output for output in self.outputs if output.name == stream), None)


@dataclass(frozen=True, slots=True)
class TopologyDefinition:
    """A topology: its name, its components in the order of declaration, and its configuration."""

    name: str
    components: tuple[ComponentDefinition, ...]
    config: dict[str, object] = field(default_factory=dict)

    def component(self, name: str) -> ComponentDefinition:
        """Return the component of that name.

        Raises:
            KeyError: when the topology has no such component.
        """
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)

    def fields_of(self, component: str, stream: str) -> tuple[str, ...]:
        """Return the fields of a stream; none for a stream that no component declares, such as that of ticks."""
        outputs = (each.output(stream) for each in self.components if each.name == component)
        return next((each.fields for each in outputs if each is not None), ())

    def consumers(self, component: str, stream: str) -> Iterator[tuple[ComponentDefinition, InputDefinition]]:
        """Yield each bolt that subscribes to that stream, with its subscription, in the order of declaration."""
        for consumer in self.components:
            for subscription in consumer.inputs:
                if (subscription.component, subscription.stream) == (component, stream):
                    yield consumer, subscription
