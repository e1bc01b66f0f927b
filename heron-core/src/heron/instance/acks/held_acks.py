"""The acks of a spout whose topology takes checkpoints at least once: they wait for a checkpoint.

A complete tree has changed state that only a later checkpoint saves. If the state goes back, the root must be emitted
again, so its `ack` is called when a checkpoint that contains its effect is complete.
"""

from __future__ import annotations

from collections.abc import Callable

from heron.instance.acks.pending_roots import PendingRoots, RootCallbacks
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.ipc.frames.tracking import RootOutcome

__all__ = ["HeldRootCallbacks"]

_Held = list[tuple[list[object], float]]


class HeldRootCallbacks(RootCallbacks):
    """`RootCallbacks` that hold the complete roots back; see the module. The ids stay in memory until then."""

    def __init__(
        self, pending: PendingRoots, metrics: TaskMetrics, failed_call: Callable[[str, BaseException, object], None]
    ) -> None:
        super().__init__(pending, metrics, failed_call)
        self._unsaved: _Held = []
        self._saved: dict[int, _Held] = {}

    def saved(self, number: int) -> None:
        """The task saves this checkpoint now, before it sends the marker: all trees complete so far are part of it.

        Every task saves its state behind that marker, so behind its work on these trees.
        """
        self._saved[number], self._unsaved = self._unsaved, []

    def complete(self, number: int) -> None:
        """This checkpoint is complete: calls `ack` for what it and earlier ones contain."""
        for each in sorted(self._saved):
            if each <= number:
                for ids, latency_s in self._saved.pop(each):
                    self._ack(ids, latency_s)

    def restored(self) -> None:
        """The state is that of the newest complete checkpoint: calls `fail` for every root that it may not contain."""
        held = [*(pair for each in sorted(self._saved) for pair in self._saved[each]), *self._unsaved]
        self._saved, self._unsaved = {}, []
        for ids, latency_s in held:
            self._fail(ids, RootOutcome.LOST, latency_s)
        self.lose_all()

    def _completed(self, ids: list[object], latency_s: float) -> None:
        heard = self.on_ack is not None or self.on_fail is not None or self.hook_calls is not None
        if not heard and self.replayer is None:
            self._ack(ids, latency_s)
        else:
            self._unsaved.append((ids, latency_s))
