"""What the sinks of a pipeline receive, in this process."""

from __future__ import annotations

from typing import Any

from heron_streamlet import Sink

__all__ = ["COLLECTED", "Collect"]

COLLECTED: dict[str, list[Any]] = {}
"""What each `Collect` of the present run received, by its name. Tasks have copies of a sink, so they share a module."""


class Collect(Sink[Any]):
    """Collects elements under a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def put(self, element: Any) -> None:  # noqa: ANN401
        """`Sink.put`."""
        COLLECTED.setdefault(self.name, []).append(element)
