"""One sink on a thread of its own, behind a bounded queue: slow or failing, it loses its own records and nothing else.

What it loses is counted by reason: ``full`` (it is too slow), ``failed`` (it raised), ``closed`` (time was up), and
what the sink itself names (`heron.errors.SinkError`). How long it has delivered nothing is a metric, too.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from heron.clock import monotonic_s
from heron.errors import SinkError
from heron.ipc.metric_names import SINK_DROPPED, SINK_OUTAGE
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, MetricsSink

__all__ = ["QUEUE_RECORDS", "SinkRunner"]

QUEUE_RECORDS = 1000
"""Records that wait for one sink: a minute's worth of a busy container, some megabytes at most."""

_FAILURES_LOGGED = 20  # distinct ones; a sink whose every record fails must not fill the disk
_REASONS = ("full", "failed", "closed")
_HANGS_S = 10.0  # the longest that the contract allows a call to take

_log = logging.getLogger(__name__)


class SinkRunner:
    """Owns the sink: every call of it comes from the one thread that is started here."""

    def __init__(self, name: str, sink: MetricsSink, flush_s: float, queue_records: int = QUEUE_RECORDS) -> None:
        self.name = name
        self._sink = sink
        self._flush_s = flush_s
        self._queue: queue.Queue[MetricsRecord] = queue.Queue(queue_records)
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._dropped = dict.fromkeys(_REASONS, 0)  # "full" belongs to the owner, the others to the thread
        self._failures: set[str] = set()
        self._raised = False  # since the last flush
        self._failing = False
        self._good_s = monotonic_s()  # when it last worked
        self._thread = threading.Thread(target=self._run, name=f"sink-{name}", daemon=True)
        self._thread.start()

    def offer(self, record: MetricsRecord) -> None:
        """Queues a record, or drops and counts it; never blocks."""
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            if not self._dropped["full"]:
                _log.warning("sink %s is too slow: records are dropped and counted", self.name)
            self._dropped["full"] += 1
        self._wake.set()

    def metrics(self) -> tuple[Metric, ...]:
        """How much was dropped, by reason, and how long it has not worked."""
        dropped = (
            Metric(SINK_DROPPED, MetricKind.COUNTER, "records", count, {"sink": self.name, "reason": reason})
            for reason, count in self._dropped.copy().items()
        )
        return *dropped, Metric(SINK_OUTAGE, MetricKind.GAUGE, "s", self._outage_s(), {"sink": self.name})

    def close(self) -> None:
        """No more records come; the thread works off what is queued, flushes and closes the sink."""
        self._closing.set()
        self._wake.set()

    def join(self, timeout_s: float) -> bool:
        """Waits for that; False when it takes longer, and then what is left counts as dropped."""
        self._thread.join(max(0.0, timeout_s))
        if not self._thread.is_alive():
            return True
        left = self._queue.qsize()
        self._dropped["closed"] += left
        _log.error("sink %s did not finish in time: %d records are lost", self.name, left)
        return False

    def _outage_s(self) -> float:
        passed_s = monotonic_s() - self._good_s
        return passed_s if self._failing or passed_s > self._flush_s + _HANGS_S else 0.0

    def _run(self) -> None:
        flush_at_s = monotonic_s() + self._flush_s
        while True:
            closing = self._closing.is_set()  # looked at before the queue: what came earlier is still worked off
            self._drain()
            if closing:
                break
            now_s = monotonic_s()
            if now_s >= flush_at_s:
                flush_at_s = now_s + self._flush_s
                self._guarded("flush", self._sink.flush)
                self._failing, self._raised = self._raised, False
                if not self._failing:
                    self._good_s = monotonic_s()
            self._wake.wait(max(0.0, flush_at_s - monotonic_s()))
            self._wake.clear()
        self._guarded("flush", self._sink.flush)
        self._guarded("close", self._sink.close)

    def _drain(self) -> None:
        while True:
            try:
                record = self._queue.get_nowait()
            except queue.Empty:
                return
            self._guarded("process", self._sink.process, record)

    def _guarded(self, what: str, call: Callable[..., None], *arguments: MetricsRecord) -> None:
        try:
            call(*arguments)
        except SinkError as error:
            self._failed(f"{what}: {error}", error.lost, error.reason)
        except Exception as error:
            self._failed(f"{what}: {type(error).__name__}: {error}", 1 if what == "process" else 0, "failed")

    def _failed(self, text: str, lost: int, reason: str) -> None:
        self._raised = True
        self._dropped[reason] = self._dropped.get(reason, 0) + lost
        if len(self._failures) < _FAILURES_LOGGED and text not in self._failures:
            self._failures.add(text)
            _log.exception("sink %s failed in %s", self.name, text)
