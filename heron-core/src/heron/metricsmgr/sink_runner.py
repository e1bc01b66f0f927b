"""Runs one sink on its own thread behind a bounded queue, so that a slow or failing sink loses only its own records.

Lost records are counted by reason: ``full`` (the sink is too slow), ``failed`` (a call raised), ``closed`` (the time to
finish was over), and the reasons that the sink gives itself (`heron.errors.SinkError`). A sink has an outage while its
flushes fail, or while one of its calls does not return.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heron.clock import Clock, SystemClock
from heron.driver_kit.redaction import redact
from heron.errors import SinkError
from heron.ipc.documents.metric_names import SINK_DROPPED, SINK_OUTAGE
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, MetricsSink

__all__ = ["HANG_S", "QUEUE_RECORDS", "SinkRunner"]

QUEUE_RECORDS = 1000
"""Records that may wait for one sink: one minute of a busy container, at most some megabytes."""

HANG_S = 8.0
"""The time after which a call hangs. The contract allows 10 s, and `heron status` names a hanging sink within them."""

_CALL_S = 10.0  # the longest call that the contract allows
_FAILURES_LOGGED = 20  # distinct ones; a sink whose every record fails must not fill the disk
_REASONS = ("full", "failed", "closed")
_REASON_LENGTH = 300  # characters of an error that are shown in the status

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the sink that has not returned."""

    name: str
    since_s: float


class SinkRunner:
    """Owns the sink; only the thread that is started here calls it."""

    def __init__(
        self,
        name: str,
        open_sink: Callable[[], MetricsSink],
        flush_s: float,
        *,
        queue_records: int = QUEUE_RECORDS,
        secrets: Iterable[str] = (),
        clock: Clock | None = None,
    ) -> None:
        """Opens the sink on its thread and calls `flush` every `flush_s` seconds.

        `secrets` are removed from the errors that `problem` returns.
        """
        self.name = name
        self._open_sink = open_sink
        self._flush_s = flush_s
        self._secrets = tuple(secrets)
        self._clock = clock or SystemClock()
        self._queue: queue.Queue[MetricsRecord] = queue.Queue(queue_records)
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._dropped = dict.fromkeys(_REASONS, 0)  # "full" is written by the owner, the others by the thread
        self._unflushed = 0  # records processed since the last flush that returned or raised
        self._failures: set[str] = set()
        self._failure = ""  # the last one since the last flush
        self._problem = ""  # the failure of the last flush period
        self._call: _Call | None = None
        self._worked_s = self._clock.monotonic_s()  # when a flush last succeeded
        self._reported_problem = ""
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

    def problem(self) -> str:
        """Why the sink delivers nothing: a call that hangs, the last error, or its slowness; "" while it works."""
        if hanging := self._hanging():
            return hanging
        if not self._problem and self._clock.monotonic_s() - self._worked_s > self._flush_s + _CALL_S:
            return "too slow: records arrive faster than the sink takes them"
        return self._problem

    def check(self) -> bool:
        """Logs a call that hangs or has returned; True when the problem has changed since the last check."""
        problem, before = self.problem(), self._reported_problem
        if problem == before:
            return False
        self._reported_problem = problem
        if not problem:
            _log.info("sink %s delivers again", self.name)
        elif problem == self._hanging():
            _log.error("sink %s hangs and delivers nothing: %s", self.name, problem)
        return True

    def metrics(self, *, with_problem: bool = False) -> tuple[Metric, ...]:
        """The dropped records by reason, and the duration of the outage.

        With `with_problem`, the outage carries the problem as the label ``reason``. A monitoring system would make a
        new time series of each text, so sinks receive none.
        """
        dropped = (
            Metric(SINK_DROPPED, MetricKind.COUNTER, "records", count, {"sink": self.name, "reason": reason})
            for reason, count in self._dropped.copy().items()
        )
        problem = self.problem()
        outage_s = self._clock.monotonic_s() - self._worked_s if problem else 0.0
        labels = {"sink": self.name} | ({"reason": problem} if with_problem and problem else {})
        return *dropped, Metric(SINK_OUTAGE, MetricKind.GAUGE, "s", outage_s, labels)

    def close(self) -> None:
        """Ends the input: the thread processes the queue, flushes and closes the sink."""
        self._closing.set()
        self._wake.set()

    def join(self, timeout_s: float) -> bool:
        """Waits until the thread has ended; False after `timeout_s`, and then the queued records count as dropped."""
        self._thread.join(max(0.0, timeout_s))
        if not self._thread.is_alive():
            return True
        left = self._queue.qsize()
        self._dropped["closed"] += left
        _log.error("sink %s did not finish in time: %d records are lost", self.name, left)
        return False

    def _hanging(self) -> str:
        call = self._call
        if call is None or self._clock.monotonic_s() - call.since_s < HANG_S:
            return ""
        return f"{call.name} has not returned for more than {HANG_S:g} s"

    def _run(self) -> None:
        opened: list[MetricsSink] = []
        if self._guarded("open", lambda: opened.append(self._open_sink())):
            self._serve(opened[0])
        else:
            self._problem, self._failure = self._failure, ""
            _log.error("metrics sink left out: %s: %s", self.name, self._problem)
            self._refuse()

    def _refuse(self) -> None:
        """Drops the records of a sink that could not be opened."""
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            while not self._queue.empty():
                self._queue.get_nowait()
                self._dropped["failed"] += 1

    def _serve(self, sink: MetricsSink) -> None:
        flush_at_s = self._clock.monotonic_s() + self._flush_s
        while True:
            closing = self._closing.is_set()  # read before the queue is emptied: earlier records are still processed
            self._drain(sink)
            if closing:
                break
            now_s = self._clock.monotonic_s()
            if now_s >= flush_at_s:
                flush_at_s = now_s + self._flush_s
                self._flush(sink)
            self._wake.wait(max(0.0, flush_at_s - self._clock.monotonic_s()))
            self._wake.clear()
        self._flush(sink)
        self._guarded("close", sink.close)

    def _drain(self, sink: MetricsSink) -> None:
        while True:
            try:
                record = self._queue.get_nowait()
            except queue.Empty:
                return
            if self._guarded("process", sink.process, record):
                self._unflushed += 1

    def _flush(self, sink: MetricsSink) -> None:
        if self._guarded("flush", sink.flush):
            self._unflushed = 0
        self._problem, self._failure = self._failure, ""
        if not self._problem:
            self._worked_s = self._clock.monotonic_s()

    def _guarded(self, name: str, call: Callable[..., object], *arguments: MetricsRecord) -> bool:
        """Calls the sink; False when the call raised, with its losses counted."""
        self._call = _Call(name, self._clock.monotonic_s())
        try:
            call(*arguments)
        except SinkError as error:
            self._failed(f"{name}: {error}", error.lost, error.reason)
        except (Exception, SystemExit) as error:  # SystemExit would end the thread without a word
            self._failed(f"{name}: {type(error).__name__}: {error}", self._lost_in(name), "failed")
        else:
            return True
        finally:
            self._call = None
        return False

    def _lost_in(self, name: str) -> int:
        """How many records an unexpected error costs: in `process` one, in `flush` all that were not flushed."""
        if name != "flush":
            return 1 if name == "process" else 0
        lost, self._unflushed = self._unflushed, 0
        return lost

    def _failed(self, text: str, lost: int, reason: str) -> None:
        self._failure = redact(" ".join(text.split()), self._secrets)[:_REASON_LENGTH]
        self._dropped[reason] = self._dropped.get(reason, 0) + lost
        if len(self._failures) < _FAILURES_LOGGED and text not in self._failures:
            self._failures.add(text)
            _log.exception("sink %s failed in %s", self.name, text)
