"""What an engine process reports of itself to its container's metrics manager: metrics and events."""

from __future__ import annotations

from collections.abc import Iterable

from heron.clock import Clock, SystemClock
from heron.ipc.envelope import Envelope, control_frame
from heron.ipc.metrics_codec import publish_message
from heron.ipc.process_metrics import process_metrics
from heron.ipc.socket import Push
from heron.kernel.event_log import EventLog
from heron.spi.metricsink import Metric, MetricsRecord, Source

__all__ = ["Telemetry"]


class Telemetry:
    """Sends a record each time it is told to, with the events since the last one."""

    def __init__(self, push: Push, source: Source, clock: Clock | None = None) -> None:
        self._push = push
        self._source = source
        self._clock = clock or SystemClock()
        self.events = EventLog(source, self._clock)

    def record(self, metrics: Iterable[Metric] = ()) -> MetricsRecord:
        """The record that is due: `metrics` and those that every process has."""
        return MetricsRecord(self._source, self._clock.wall_s(), (*metrics, *process_metrics()), self.events.take())

    def publish(self, metrics: Iterable[Metric] = ()) -> None:
        """Sends that record."""
        self._push.send(control_frame(Envelope(metrics_publish=publish_message(self.record(metrics)))))
