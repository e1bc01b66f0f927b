"""What happened in a process: events with ids, each naming the event that caused it."""

from __future__ import annotations

import itertools
from collections import deque

from heron.clock import Clock
from heron.spi.metricsink import Event, Source

__all__ = ["EventLog"]

_KEPT = 1000  # newest events; those of a process are rare (starts, ends, plans), so this is hours


class EventLog:
    """The newest events of one process; ids are unique among all processes of the topology."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self._prefix = f"{source.process}-{source.container_id}-{source.incarnation}"
        self._clock = clock
        self._numbers = itertools.count(1)
        self._unpublished: deque[Event] = deque(maxlen=_KEPT)
        self._last_of: dict[str, str] = {}

    def note(self, name: str, subject: str, **attributes: str) -> Event:
        """Something happened to `subject`; its cause is what last happened to it."""
        event_id = f"{self._prefix}-{next(self._numbers)}"
        event = Event(event_id, name, self._clock.wall_s(), subject, self._last_of.get(subject, ""), attributes)
        self._last_of[subject] = event_id
        self._unpublished.append(event)
        return event

    def take(self) -> tuple[Event, ...]:
        """The events since the last call, oldest first, as many as are kept."""
        taken = tuple(self._unpublished)
        self._unpublished.clear()
        return taken
