"""Which END markers have passed through this stream manager, so that a new session can be given them again.

A task that comes back must hear again of the upstream tasks that have ended, behind all that still waits for it.
Doubled markers do no harm: whoever aligns them counts source tasks, not markers.
"""

from __future__ import annotations

from heron.ipc.frame import SEGMENT_KIND_AT, Marker, SegmentKind, parse_segment
from heron.stmgr.outlet import Segment

__all__ = ["EndMarkers"]

_MARKER = int(SegmentKind.MARKER)


class EndMarkers:
    """END markers by destination task."""

    __slots__ = ("_by_destination",)

    def __init__(self) -> None:
        self._by_destination: dict[int, dict[int, bytes]] = {}

    def notice(self, data: bytes, start: int, segment: Segment, destinations: tuple[int, ...]) -> None:
        """Remembers the segment at `start` of a frame if it is an END marker."""
        if data[start + SEGMENT_KIND_AT] != _MARKER:
            return
        head = parse_segment(data, start)
        if head.stream == Marker.END:
            for task_id in destinations:
                self._by_destination.setdefault(task_id, {})[head.source_task] = bytes(segment)

    def of(self, task_id: int) -> tuple[bytes, ...]:
        """Every END marker that was on its way to this task, one per source task."""
        return tuple(self._by_destination.get(task_id, {}).values())
