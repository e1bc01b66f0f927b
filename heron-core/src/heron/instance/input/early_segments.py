"""Segments of tasks that the present plan of a bolt does not have yet."""

from __future__ import annotations

from heron.ipc.frames.frame import SegmentHead, parse_segment
from heron.planner.physical_plan import PlanIndex

__all__ = ["EarlySegments"]


class EarlySegments:
    """Keeps segments for the next plan: a task that an update adds may be faster than the plan.

    With checkpoints, `heron.instance.input.channel_alignment` does the same. What does not fit into `most_bytes` is not
    kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._segments: list[bytes] = []
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._segments)

    def keeps(self, frame: bytes, head: SegmentHead, start: int, index: PlanIndex) -> bool:
        """Whether the segment at `start` waits for another plan than this one, and is kept."""
        if not _is_early(head, index) or self._bytes >= self._most_bytes:
            return False
        self._segments.append(frame[start : head.end])
        self._bytes += head.end - start
        return True

    def take(self, index: PlanIndex) -> list[bytes]:
        """Takes the segments, in their order, that need not wait any more under this plan."""
        kept, self._segments, self._bytes = self._segments, [], 0
        return [each for each in kept if not self.keeps(each, parse_segment(each, 0), 0, index)]


def _is_early(head: SegmentHead, index: PlanIndex) -> bool:
    return head.plan_version > index.plan.version and head.source_task not in index.tasks
