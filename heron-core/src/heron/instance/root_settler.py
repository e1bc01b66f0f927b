"""Tells the author of settled roots: `ack` and `fail`, in the order of completion. Belongs to the task thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from heron.clock import monotonic_s
from heron.instance.data_queue import RootsSettled
from heron.instance.hook_calls import SpoutHookCalls
from heron.instance.root_book import RootBook
from heron.instance.task_metrics import TaskMetrics
from heron.ipc.tracking import RootOutcome

__all__ = ["RootSettler"]

Told = Callable[[object], None]


class RootSettler:
    """Between the book of roots and the author's `ack` and `fail`; None where they do not override one."""

    def __init__(
        self, book: RootBook, metrics: TaskMetrics, failed_call: Callable[[str, Exception, object], None]
    ) -> None:
        self._book = book
        self._metrics = metrics
        self._failed_call = failed_call
        self.on_ack: Told | None = None
        self.on_fail: Told | None = None
        self.hook_calls: SpoutHookCalls | None = None

    def take(self, settled: RootsSettled) -> None:
        """Takes what became of roots."""
        for outcome, counters in settled.news:
            now_s = monotonic_s()
            for ids, since_s in self._book.settle(counters):
                if outcome is RootOutcome.COMPLETE:
                    self._metrics.acked += len(ids)
                    self._metrics.complete_latency.add(now_s - since_s, len(ids))
                    self._tell("ack", self.on_ack, ids)
                    if self.hook_calls is not None:
                        self._tell("spout_ack", partial(self.hook_calls.acked, latency_s=now_s - since_s), ids)
                else:
                    self._fail(ids, outcome, now_s - since_s)

    def lose_all(self) -> None:
        """The stream manager is a new one: of what was in flight nobody knows any more."""
        now_s = monotonic_s()
        for ids, since_s in self._book.settle_all():
            self._fail(ids, RootOutcome.LOST, now_s - since_s)

    def _fail(self, ids: list[object], outcome: RootOutcome, latency_s: float) -> None:
        self._metrics.failed += len(ids)
        self._metrics.failed_by[outcome.name.lower()] = self._metrics.failed_by.get(outcome.name.lower(), 0) + len(ids)
        self._tell("fail", self.on_fail, ids)
        if self.hook_calls is not None:
            self._tell("spout_fail", partial(self.hook_calls.failed, latency_s=latency_s), ids)

    def _tell(self, doing: str, told: Told | None, ids: list[object]) -> None:
        if told is None:
            return
        for tup_id in ids:
            try:
                told(tup_id)
            except Exception as error:
                self._failed_call(doing, error, tup_id)
