"""Submission: the author's file submits a topology, and the program that loads the file captures it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from heron.api.definition import TopologyDefinition
from heron.api.stream import ICustomGrouping
from heron.errors import UsageError

__all__ = ["TopologySource", "add_to_capture", "capture_topologies"]


class TopologySource(Protocol):
    """A captured topology: a `TopologyBuilder` or a `Topology` class."""

    @property
    def topology_name(self) -> str:
        """The name of the topology."""
        ...

    def definition(self) -> TopologyDefinition:
        """Return the topology as data."""
        ...

    def live_grouping(self, component: str, input_component: str, stream: str) -> ICustomGrouping:
        """Return the object that was given to ``Grouping.custom`` for this input."""
        ...


_CAPTURED: ContextVar[list[TopologySource] | None] = ContextVar("captured topologies", default=None)


@contextmanager
def capture_topologies() -> Iterator[list[TopologySource]]:
    """Collect each topology that the code inside the block submits, in order.

    Captures nest: a submission reaches the innermost one. A capture holds for its own thread only.
    """
    captured: list[TopologySource] = []
    token = _CAPTURED.set(captured)
    try:
        yield captured
    finally:
        _CAPTURED.reset(token)


def add_to_capture(source: TopologySource) -> None:
    """Add a topology to the innermost capture.

    Raises:
        UsageError: outside a capture, as in a file that Python itself runs.
    """
    captured = _CAPTURED.get()
    if captured is None:
        msg = f"topology {source.topology_name!r}: Python alone cannot run it; run this file with `heron run FILE`"
        raise UsageError(msg)
    captured.append(source)
