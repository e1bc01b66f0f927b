"""How a topology leaves the author's file: whoever loads the file captures what the file hands in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from heron.api.custom_grouping import ICustomGrouping
from heron.api.definition import TopologyDefinition
from heron.errors import UsageError

__all__ = ["TopologySource", "capture_topologies", "hand_in"]


class TopologySource(Protocol):
    """What is captured: a `TopologyBuilder`, or a `Topology` subclass."""

    @property
    def topology_name(self) -> str:
        """The topology's name."""
        ...

    def definition(self) -> TopologyDefinition:
        """The topology as neutral data."""
        ...

    def live_grouping(self, component: str, input_component: str, stream: str) -> ICustomGrouping:
        """The grouping object that stands at this input."""
        ...


_CAPTURED: ContextVar[list[TopologySource] | None] = ContextVar("captured topologies", default=None)


@contextmanager
def capture_topologies() -> Iterator[list[TopologySource]]:
    """Collects each topology that the code inside hands in by `build_and_submit` or `write`, in order."""
    captured: list[TopologySource] = []
    token = _CAPTURED.set(captured)
    try:
        yield captured
    finally:
        _CAPTURED.reset(token)


def hand_in(source: TopologySource) -> None:
    """Adds a topology to the innermost capture.

    Raises:
        UsageError: when nobody captures, as in a file run by Python itself.
    """
    captured = _CAPTURED.get()
    if captured is None:
        msg = f"topology {source.topology_name!r}: Python alone cannot run it; run this file with `heron run FILE`"
        raise UsageError(msg)
    captured.append(source)
