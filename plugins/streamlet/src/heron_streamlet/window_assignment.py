"""Assigns elements to windows, before they travel to the task of their key; combines them where that is safe."""

from __future__ import annotations

from collections.abc import Callable

from heron_streamlet.fold import Fold
from heron_streamlet.window import SessionWindow, SlidingWindow

__all__ = ["Combiner", "SessionAssignment", "WindowAssignment"]

_COMBINED_AT_MOST = 10_000  # accumulators in memory; a few MB


class Combiner:
    """Accumulators by key and window that have not left the task.

    They leave before a watermark, a checkpoint and the end, so nothing that depends on them is early. Results appear
    only with a watermark, so waiting costs no latency.
    """

    __slots__ = ("_accumulators", "_fold", "_send")

    def __init__(self, fold: Fold, send: Callable[[tuple[object, int, object]], object]) -> None:
        """`send` takes rows ``(key, start, accumulator)``."""
        self._fold = fold
        self._send = send
        self._accumulators: dict[tuple[object, int], object] = {}

    def add(self, key: object, start_us: int, value: object) -> None:
        """Adds a value to the accumulator of its key and window."""
        accumulators, place = self._accumulators, (key, start_us)
        if place in accumulators:
            accumulators[place] = self._fold.add(accumulators[place], value)
        else:
            accumulators[place] = self._fold.first(value)
            if len(accumulators) > _COMBINED_AT_MOST:
                self.flush()

    def flush(self) -> None:
        """Sends all accumulators."""
        rows = [(key, start_us, each) for (key, start_us), each in self._accumulators.items()]
        self._accumulators.clear()
        for row in rows:
            self._send(row)


class WindowAssignment:
    """Assigns the values of a key to windows of event time. Rows are ``(key, start, accumulator)``.

    `wrap` makes the accumulator of one value. With a combiner, values are added to its accumulators instead.
    """

    __slots__ = ("_combiner", "_send", "_span_us", "_window", "_wrap")

    def __init__(
        self,
        window: SlidingWindow,
        wrap: Callable[[object], object],
        send: Callable[[tuple[object, int, object]], object],
        combiner: Combiner | None,
    ) -> None:
        self._window = window
        self._span_us = window.size_us + window.allowed_lateness_us
        self._wrap = wrap
        self._send = send
        self._combiner = combiner

    def add(self, key: object, value: object, time_us: int, bound_us: int) -> int:
        """Assigns a value; returns for how many windows it is late."""
        late = 0
        for start_us in self._window.starts_of(time_us):
            if start_us + self._span_us <= bound_us:
                late += 1
            elif self._combiner is not None:
                self._combiner.add(key, start_us, value)
            else:
                self._send((key, start_us, self._wrap(value)))
        return late


class SessionAssignment:
    """Passes the elements that are not late for a session of their own. Rows are ``(key, value, time)``."""

    __slots__ = ("_send", "_span_us")

    def __init__(self, window: SessionWindow, send: Callable[[tuple[object, object, int]], object]) -> None:
        self._span_us = window.gap_us + window.allowed_lateness_us
        self._send = send

    def add(self, key: object, value: object, time_us: int, bound_us: int) -> int:
        """Passes a value; returns 1 if it is late."""
        if time_us + self._span_us <= bound_us:
            return 1
        self._send((key, value, time_us))
        return 0
