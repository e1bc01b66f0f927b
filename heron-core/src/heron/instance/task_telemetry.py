"""What a task tells others: reports of its phase to the topology manager, and its metrics, events and spans."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from heron.clock import monotonic_s, wall_s
from heron.errors import HeronError
from heron.instance.garbage import GarbagePauses
from heron.instance.gateway.gateway import Gateway
from heron.instance.metrics.spans import SpanBuffer
from heron.instance.metrics.task_metrics import TaskMetrics, trace_metrics
from heron.instance.output.emitter import Emitter
from heron.instance.queues.data_queue import LettersAsked
from heron.instance.user.user_errors import UserErrors
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.letter_line import encode_letters_answer
from heron.ipc.documents.metric_names import (
    CONSUMED_BYTES,
    HELD_BACK,
    IN_QUEUE_BYTES,
    IN_QUEUE_CAPACITY,
    OUT_QUEUE_BYTES,
    OUT_QUEUE_CAPACITY,
    OUTPUT_HELD,
)
from heron.ipc.envelope import Envelope
from heron.ipc.frames.metrics_codec import publish_message
from heron.ipc.process_metrics import process_metrics
from heron.kernel.role_spec import InstanceSpec
from heron.kernel.settings import EngineSettings
from heron.spi.metricsink import Event, Metric, MetricKind, MetricsRecord, Source

__all__ = ["TaskTelemetry"]


class TakeLetters(Protocol):
    """`heron.instance.spout_replays.SpoutReplays.take_letters`."""

    def __call__(self, ids: Collection[str], *, drop: bool) -> dict[str, str]:
        """Drops stored dead letters, or emits them again; returns the ids that were found, with why they stay."""
        ...


class TaskTelemetry:
    """The metrics, errors and spans of one task until they are sent, and its last report."""

    def __init__(
        self,
        spec: InstanceSpec,
        settings: EngineSettings,
        gateway: Gateway,
        restores: Callable[[], int],
        *,
        is_spout: bool,
    ) -> None:
        """`restores` gives the number of the last restore of the task."""
        self._spec = spec
        self._settings = settings
        self._gateway = gateway
        self._restores = restores
        self._is_spout = is_spout
        self.metrics = TaskMetrics()
        self.spans = SpanBuffer(spec.component, spec.task_id)
        self.pauses = GarbagePauses()
        self.errors = UserErrors(spec.topology, spec.component, spec.task_id, spec.incarnation)
        self.metrics.on_broken = self._metric_failed
        self._events: list[Event] = []
        self._final_events: list[Event] = []
        """Sent again at the end: a short run may end before the metrics path delivers them."""
        self._has_executed = False
        self._next_publish_s = monotonic_s() + settings.metrics_export_s
        self._last_report: pb.TaskReport | None = None

    def report(self, phase: pb.TaskPhase, emitter: Emitter, error: str = "") -> None:
        """Reports the phase of the task; the report is repeated to each new stream manager."""
        report = pb.TaskReport(
            task_id=self._spec.task_id,
            incarnation=self._spec.incarnation,
            phase=phase,
            error=error,
            restores=self._restores(),
        )
        if phase != pb.TASK_PHASE_RUNNING:
            report.totals.CopyFrom(publish_message(self.record(emitter, final=True)))
        self._last_report = report
        self.repeat_report()

    def report_failure(self, error: str) -> None:
        """Reports that the task failed; its process ends after this."""
        report = pb.TaskReport(
            task_id=self._spec.task_id,
            incarnation=self._spec.incarnation,
            phase=pb.TASK_PHASE_FAILED,
            error=error,
            restores=self._restores(),
        )
        self._gateway.data_out.put_control(Envelope(task_report=report))

    def repeat_report(self) -> None:
        """Sends the last report again, to a stream manager that may be new."""
        if self._last_report is not None:
            self._gateway.data_out.put_control(Envelope(task_report=self._last_report))

    def answer_letters(self, asked: LettersAsked, take: TakeLetters) -> None:
        """Answers a command about dead letters; a refusal says which task it is."""
        answer = pb.TaskAnswer(request_id=asked.request_id)
        try:
            answer.document = encode_letters_answer(take(asked.ids, drop=asked.drop))
        except HeronError as error:
            answer.refusal = f"task {self._spec.component}/{self._spec.task_id}: {error}"
        self._gateway.data_out.put_control(Envelope(task_answer=answer))

    def note_tuple(self) -> None:
        """Records that a bolt has executed its first tuple, once."""
        if self._has_executed:
            return
        self._has_executed = True
        task_id = self._spec.task_id
        first = Event(f"first-{task_id}-{self._spec.incarnation}", "first-tuple", wall_s(), f"task-{task_id}")
        self._events.append(first)
        self._final_events.append(first)
        self._next_publish_s = 0.0

    def wait_s(self, now_s: float) -> float:
        """Seconds until the metrics are due."""
        return max(0.0, self._next_publish_s - now_s)

    def publish_if_due(self, emitter: Emitter, now_s: float) -> None:
        """Sends the metrics, once per export period."""
        if now_s >= self._next_publish_s:
            self._next_publish_s = now_s + self._settings.metrics_export_s
            self.publish(emitter)

    def publish(self, emitter: Emitter, *, final: bool = False) -> None:
        """Sends the metrics, and the events and spans since the last record."""
        self._gateway.publish(replace(self.record(emitter, final=final), spans=self.spans.take()))

    def record(self, emitter: Emitter, *, final: bool = False) -> MetricsRecord:
        """The task's metrics and new events now."""
        spec, gauge = self._spec, MetricKind.GAUGE
        emitted = [(name, emitter.emitted(name)) for name in emitter.streams]
        metrics = self.metrics.snapshot(emitted, monotonic_s(), final=final)
        tuples_in = None if self._is_spout else self.metrics.executed_total()
        metrics += emitter.time.metrics(tuples_in, sum(count for _, count in emitted))
        metrics += emitter.column_metrics()
        metrics += trace_metrics(self.spans)
        metrics += self.errors.metrics()
        data_in, data_out = self._gateway.data_in, self._gateway.data_out
        metrics += [
            Metric(IN_QUEUE_BYTES, gauge, "bytes", data_in.queued_bytes()),
            Metric(IN_QUEUE_CAPACITY, gauge, "bytes", data_in.capacity.current_bytes),
            Metric(OUT_QUEUE_BYTES, gauge, "bytes", data_out.queued_bytes),
            Metric(OUT_QUEUE_CAPACITY, gauge, "bytes", data_out.capacity_bytes),
        ]
        if data_out.limit is not None:
            metrics.append(Metric(OUTPUT_HELD, MetricKind.COUNTER, "s", data_out.limit.delayed_s()))
        metrics.extend(self.pauses.metrics())
        metrics.extend(self._gateway.violations.metrics())
        metrics.extend(self._gateway.debugger.metrics())
        if self._is_spout:
            metrics.append(Metric(HELD_BACK, MetricKind.COUNTER, "s", self._gateway.throttle.total_s()))
        else:
            metrics.append(Metric(CONSUMED_BYTES, MetricKind.COUNTER, "bytes", data_in.consumed_bytes))
        metrics.extend(process_metrics())
        if final:
            self._events[:0] = [event for event in self._final_events if event not in self._events]
        new_errors = self.errors.take_events()
        self._final_events.extend(new_errors)  # bounded by UserErrors
        events, self._events = (*self._events, *new_errors), []
        process = f"{spec.component}-{spec.task_id}"
        source = Source(spec.topology, spec.container_id, process, spec.incarnation, spec.component, spec.task_id)
        return MetricsRecord(source, wall_s(), tuple(metrics), events)

    def _metric_failed(self, what: str, error: Exception, remedy: str) -> None:
        self.errors.report(what, error, remedy)
