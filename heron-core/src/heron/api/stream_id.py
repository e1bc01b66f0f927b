"""Names of streams: what a bolt's inputs are given by, and the keys of `TopologyContext.get_sources`."""

from __future__ import annotations

from heron.api.names import is_a
from heron.author_text import short_text
from heron.errors import TopologyError

__all__ = ["ComponentSource", "GlobalStreamId", "InputSource"]


class InputSource:
    """A possible input: a spec or a `GlobalStreamId`. The common base lets type checkers infer a dict of both."""

    __slots__ = ()


class ComponentSource(InputSource):
    """A component that may be an input; `heron.api.component_spec.HeronComponentSpec` is the only one.

    Attributes:
        name: the name of the component, or None as long as it has none.
        entry: ``module:Class`` of the component.
    """

    __slots__ = ()

    name: str | None
    entry: str


class GlobalStreamId(InputSource):
    """A stream of a component; usually written ``spec["stream"]``.

    Args:
        componentId: the name of the component, or its spec.
        streamId: the name of the stream.

    Raises:
        TopologyError: when an argument has the wrong type.
    """

    __slots__ = ("_component", "stream_id")

    def __init__(self, componentId: str | ComponentSource, streamId: str) -> None:
        if not is_a(componentId, str, ComponentSource):
            msg = f"GlobalStreamId: {short_text(componentId)} is neither a component's name nor a spec; give one"
            raise TopologyError(msg)
        if not is_a(streamId, str):
            msg = f"GlobalStreamId: {short_text(streamId)} is not a stream's name; give a string"
            raise TopologyError(msg)
        self._component = componentId
        self.stream_id = streamId

    @property
    def component_id(self) -> str:
        """The name of the component; a spec without a name gets it when its `Topology` class is complete."""
        component = self._component
        return component if isinstance(component, str) else component.name or f"<unnamed {component.entry}>"

    @property
    def component_name(self) -> str:
        """The same as `component_id`: heronpy's name in the keys of `get_sources`."""
        return self.component_id

    @property
    def id(self) -> str:
        """The same as `stream_id`: heronpy's name in the keys of `get_sources`."""
        return self.stream_id

    @property
    def spec(self) -> ComponentSource | None:
        """The spec that was given, or None when a name was given."""
        return None if isinstance(self._component, str) else self._component

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GlobalStreamId):
            return NotImplemented
        return (self.component_id, self.stream_id) == (other.component_id, other.stream_id)

    def __hash__(self) -> int:
        # A spec may get its name after this object became a key: the hash must not depend on it.
        return hash(self.stream_id)

    def __repr__(self) -> str:
        return f"{self.component_id}:{self.stream_id}"
