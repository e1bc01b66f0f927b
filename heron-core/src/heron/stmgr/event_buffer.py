"""The events of a stream manager until the next export of metrics."""

from __future__ import annotations

import itertools

from heron.clock import wall_s
from heron.spi.metricsink import Event
from heron.stmgr.back_pressure import PressureChanged
from heron.stmgr.peer_reach import ReachChanged
from heron.stmgr.stmgr_metrics import pressure_event, reach_event, violation_event

__all__ = ["EventBuffer"]


class EventBuffer:
    """Gives each event its number and its time."""

    def __init__(self, container_id: int) -> None:
        self._container_id = container_id
        self._numbers = itertools.count(1)
        self._events: list[Event] = []

    def pressure_changed(self, change: PressureChanged, cause: str) -> None:
        """A task became a culprit, or stopped being one."""
        self._events.append(pressure_event(self._container_id, next(self._numbers), change, cause, wall_s()))

    def reach_changed(self, change: ReachChanged) -> None:
        """A peer is no longer reached, or is reached again."""
        self._events.append(reach_event(self._container_id, next(self._numbers), change, wall_s()))

    def take(self, violations: list[str]) -> tuple[Event, ...]:
        """All events since the last call, and those of the sessions that ended because of a frame; clears both."""
        for message in violations:
            self._events.append(violation_event(self._container_id, next(self._numbers), message, wall_s()))
        violations.clear()
        events, self._events = tuple(self._events), []
        return events
