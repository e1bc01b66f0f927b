"""Streams and their names, with streamparse's attributes."""

from __future__ import annotations

from heron.api import stream_id
from heron.api.stream import Grouping
from heron.api.stream import Stream as HeronStream

__all__ = ["GlobalStreamId", "Grouping", "Stream"]


class Stream(HeronStream):
    """A named output stream; see `heron.api.Stream`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self.stream_id


class GlobalStreamId(stream_id.GlobalStreamId):
    """A stream of a component, which may be named before it exists; see `heron.api.GlobalStreamId`."""

    __slots__ = ()

    @property
    def componentId(self) -> str:
        """The name of the component."""
        return self.component_id

    @property
    def streamId(self) -> str:
        """The name of the stream."""
        return self.stream_id
