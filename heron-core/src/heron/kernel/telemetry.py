"""The metrics and events that an engine process sends to the metrics manager of its container."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable

from heron.clock import Clock, SystemClock
from heron.ipc.envelope import Envelope, control_frame
from heron.ipc.frames.metrics_codec import publish_message
from heron.ipc.process_metrics import process_metrics
from heron.ipc.socket import Push
from heron.spi.metricsink import Event, Metric, MetricsRecord, Source

__all__ = ["EventLog", "Telemetry"]

_EVENTS_KEPT = 1000  # a process has few events (starts, ends, plans), so these cover hours


class EventLog:
    """The newest events of a process. Their ids are unique in the topology."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self._prefix = f"{source.process}-{source.container_id}-{source.incarnation}"
        self._clock = clock
        self._numbers = itertools.count(1)
        self._unpublished: deque[Event] = deque(maxlen=_EVENTS_KEPT)
        self._last_of: dict[str, str] = {}

    def note(self, name: str, subject: str, **attributes: str) -> Event:
        """Adds an event of `subject`; its cause is the last event of the same subject."""
        event_id = f"{self._prefix}-{next(self._numbers)}"
        event = Event(event_id, name, self._clock.wall_s(), subject, self._last_of.get(subject, ""), attributes)
        self._last_of[subject] = event_id
        self._unpublished.append(event)
        return event

    def take(self) -> tuple[Event, ...]:
        """The events since the last call, oldest first. Dropped events are missing."""
        taken = tuple(self._unpublished)
        self._unpublished.clear()
        return taken


class Telemetry:
    """Sends records on request, each with the events since the last record."""

    def __init__(self, push: Push, source: Source, clock: Clock | None = None) -> None:
        self._push = push
        self._source = source
        self._clock = clock or SystemClock()
        self.events = EventLog(source, self._clock)

    def record(self, metrics: Iterable[Metric] = ()) -> MetricsRecord:
        """A record with `metrics` and the metrics that every process has."""
        return MetricsRecord(self._source, self._clock.wall_s(), (*metrics, *process_metrics()), self.events.take())

    def publish(self, metrics: Iterable[Metric] = ()) -> None:
        """Sends the record to the metrics manager."""
        self._push.send(control_frame(Envelope(metrics_publish=publish_message(self.record(metrics)))))
