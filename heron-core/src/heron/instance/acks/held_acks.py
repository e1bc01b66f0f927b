"""The acks of a spout whose topology takes checkpoints at least once: they wait for a checkpoint.

A complete tree has changed state that only a later checkpoint saves. If the state goes back, the root must be emitted
again, so its `ack` is called when a checkpoint that contains its effect is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from heron.instance.acks.pending_roots import PendingRoots, RootCallbacks
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.ipc.frames.tracking import RootOutcome

if TYPE_CHECKING:  # loaded where topology.replay.attempts is set
    from heron.instance.replay.kept_roots import KeptRoot

__all__ = ["HeldRootCallbacks"]


class _Held(NamedTuple):
    """Complete roots: their ids, or `KeptRoot`s if the engine replays."""

    ids: list[object]
    roots: list[KeptRoot]
    latency_s: float


class HeldRootCallbacks(RootCallbacks):
    """`RootCallbacks` that hold the complete roots back; see the module. The ids stay in memory until then."""

    def __init__(
        self, pending: PendingRoots, metrics: TaskMetrics, failed_call: Callable[[str, BaseException, object], None]
    ) -> None:
        super().__init__(pending, metrics, failed_call)
        self._unsaved: list[_Held] = []
        self._saved: dict[int, list[_Held]] = {}

    def saved(self, number: int) -> None:
        """The task saves this checkpoint now, before it sends the marker: all trees complete so far are part of it.

        Every task saves its state behind that marker, so behind its work on these trees.
        """
        self._saved[number], self._unsaved = self._unsaved, []

    def complete(self, number: int) -> None:
        """This checkpoint is complete: calls `ack` for what it and earlier ones contain."""
        for each in sorted(self._saved):
            if each <= number:
                for held in self._saved.pop(each):
                    self._release(held)

    def restored(self) -> None:
        """The state is that of the newest complete checkpoint: calls `fail` for every root that it may not contain."""
        held = [*(entry for each in sorted(self._saved) for entry in self._saved[each]), *self._unsaved]
        self._saved, self._unsaved = {}, []
        for each in held:
            if self.replayer is not None:
                self._fail_kept(self.replayer, each.roots, RootOutcome.LOST, each.latency_s)
            else:
                self._fail(each.ids, RootOutcome.LOST, each.latency_s)
        self.lose_all()

    def _complete(self, counters: range | list[int], now_s: float) -> None:
        """`RootCallbacks._complete`."""
        if self.replayer is not None:
            found = [_Held([], roots, now_s - since_s) for roots, _, since_s in self._pending.settle_kept(counters, {})]
        else:
            found = [_Held(ids, [], now_s - since_s) for ids, since_s in self._pending.settle(counters)]
        listeners = (self.on_ack, self.on_ack_all, self.on_fail, self.hook_calls)
        heard = any(each is not None for each in listeners)
        for each in found:
            self._metrics.complete_latency.add(each.latency_s, len(each.ids) + len(each.roots))
            if heard or self.replayer is not None:
                self._unsaved.append(each)
            else:
                self._release(each)

    def _release(self, held: _Held) -> None:
        if self.replayer is not None:
            self.replayer.kept_bytes -= sum(root.size_bytes for root in held.roots)
        self._ack([*held.ids, *(root.tup_id for root in held.roots)], held.latency_s)
