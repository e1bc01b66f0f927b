"""What stands for the stream managers: a task's segments go straight into the inboxes of the tasks they name.

They stay bytes on the way, so that values are copied, refused or too large exactly as between processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from heron.ipc.frame import SegmentHead, parse_segment
from heron_simulator.ack_ledger import AckLedger, Edge, Root

__all__ = ["Delivery", "Inboxes", "Outbox"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A segment for one task; `edge` is the id of its one tuple where trees are tracked."""

    data: bytes
    head: SegmentHead
    edge: Edge | None


Inboxes = Mapping[int, deque[Delivery]]
"""What waits for each task, by task id."""


class Outbox:
    """`heron.instance.emitter.SegmentSink` of one task."""

    def __init__(self, inboxes: Inboxes, ledger: AckLedger | None) -> None:
        self._inboxes = inboxes
        self._ledger = ledger
        self.roots: tuple[Root, ...] = ()

    @contextmanager
    def under(self, roots: tuple[Root, ...]) -> Iterator[None]:
        """What is put meanwhile belongs to the trees of these roots."""
        self.roots = roots
        try:
            yield
        finally:
            self.roots = ()

    def put(self, segments: Sequence[bytes]) -> None:
        """`SegmentSink`."""
        for data in segments:
            head = parse_segment(data, 0)
            for task_id in head.destinations:
                edge = self._ledger.edge(self.roots) if self._ledger is not None and self.roots else None
                self._inboxes[task_id].append(Delivery(data, head, edge))

    def has_room(self) -> bool:
        """`SegmentSink`: always; the schedule keeps inboxes short."""
        return True

    def wait_for_room(self, timeout_s: float) -> None:
        """`SegmentSink`: never called."""

    def hurry(self, limits: Sequence[list[int]], flush: Callable[[], None]) -> None:
        """`SegmentSink`: each step ends with a flush."""
