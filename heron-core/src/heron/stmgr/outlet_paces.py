"""The sizes of outlets in a topology with checkpoints: an outlet holds what leaves it in a target time. Pure.

The marker of a checkpoint waits behind all data in the outlets on its way, and so does every checkpoint, and every
update that takes one. Flink bounds the data before a marker in the same way ("buffer debloating", FLIP-183).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from heron.kernel.queue_capacity import QueueCapacity
from heron.stmgr.outlet import Outlet, Watermarks

__all__ = ["OutletPaces"]


@dataclass(slots=True)
class _Pace:
    capacity: QueueCapacity
    sent_bytes: int
    rests: bool = True
    """Whether nothing waited at the last look, and no limit holds a producer up: then what leaves tells no pace."""


class OutletPaces:
    """Moves the watermarks of outlets between `least_bytes` and the configured `marks`, by what leaves them."""

    def __init__(self, marks: Watermarks, least_bytes: int, target_s: float) -> None:
        self._marks = marks
        self._least_bytes = least_bytes
        self._target_s = target_s
        self._paces: dict[int, _Pace] = {}
        self._looked_s: float | None = None

    @property
    def rest(self) -> bool:
        """Whether further looks change nothing until something comes into an outlet."""
        return all(each.rests for each in self._paces.values())

    def adapt(self, outlets: Iterable[Outlet], now_s: float) -> None:
        """Looks at the outlets; to be called every 0.1 s or so, while the topology takes checkpoints.

        No looks are needed while the outlets `rest`.
        """
        before, self._paces = self._paces, {}
        elapsed_s = now_s - self._looked_s if self._looked_s is not None else 0.0
        self._looked_s = now_s
        for outlet in outlets:
            if outlet.window is None:
                continue  # the task does not run, so nothing tells its pace
            sent_bytes = outlet.window.sent_bytes
            pace = before.get(outlet.task_id)
            if pace is None or sent_bytes < pace.sent_bytes or elapsed_s <= 0.0:  # the first look, or a new session
                pace = _Pace(pace.capacity if pace is not None else self._widest(), sent_bytes)
                outlet.set_marks(self._marks_at(pace.capacity.current_bytes))
            elif not pace.rests:
                former_bytes = pace.capacity.current_bytes
                pace.capacity.adapt(sent_bytes - pace.sent_bytes, elapsed_s, ran_dry=not outlet.queue, largest_bytes=0)
                if pace.capacity.current_bytes != former_bytes:
                    outlet.set_marks(self._marks_at(pace.capacity.current_bytes))
            pace.sent_bytes = sent_bytes
            pace.rests = not outlet.queue and pace.capacity.current_bytes == self._marks.high_bytes
            self._paces[outlet.task_id] = pace

    def _widest(self) -> QueueCapacity:
        capacity = QueueCapacity(self._least_bytes, self._marks.high_bytes, self._target_s)
        capacity.widen()
        return capacity

    def _marks_at(self, high_bytes: int) -> Watermarks:
        low_bytes = high_bytes * self._marks.low_bytes // self._marks.high_bytes
        return replace(self._marks, low_bytes=low_bytes, high_bytes=high_bytes)
