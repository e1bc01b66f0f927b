"""Assigns elements to windows, before they travel to the task of their key; combines them where that is safe."""

from __future__ import annotations

from collections.abc import Callable

from heron.errors import HeronError
from heron_streamlet.failures import OperatorError, failed_at, in_one
from heron_streamlet.fold import Fold
from heron_streamlet.window import SessionWindow, SlidingWindow

__all__ = ["COMBINED_AT_MOST", "Combiner", "SessionAssignment", "WindowAssignment"]

COMBINED_AT_MOST = 10_000
"""Accumulators in memory, of one outlet; a few MB."""


class Combiner:
    """Accumulators by window and key that have not left the task.

    They leave before a watermark, a checkpoint and the end, so nothing that depends on them is early. Results appear
    only with a watermark, so waiting costs no latency.

    Attributes:
        windows: the accumulators by key, by the start of their window; always the same dict.
    """

    __slots__ = ("_operator", "_sender", "_size", "fold", "windows")

    def __init__(
        self, operator: object, fold: Fold, sender: Callable[[], Callable[[tuple[object, int, object]], object]]
    ) -> None:
        """`sender` gives the function that takes rows ``(key, start, accumulator)`` now; errors name `operator`."""
        self._operator = operator
        self.fold = fold
        self._sender = sender
        self._size = 0
        self.windows: dict[int, dict[object, object]] = {}

    def add(self, key: object, start_us: int, value: object) -> None:
        """Adds a value to the accumulator of a key and start."""
        accumulators = self.windows.get(start_us)
        if accumulators is None:
            accumulators = self.windows[start_us] = {}
        if key in accumulators:
            accumulators[key] = self.fold.add(accumulators[key], value)
            return
        accumulators[key] = self.fold.first(value)
        self._size += 1
        if self._size >= COMBINED_AT_MOST and (failed := self.flush()):
            raise in_one(failed)

    def flush(self) -> list[OperatorError]:
        """Sends all accumulators; returns an error for each whose key is refused."""
        rows = [(key, start_us, each) for start_us, keys in self.windows.items() for key, each in keys.items()]
        self.windows.clear()
        self._size = 0
        send, rest = self._sender(), iter(rows)
        failed: list[OperatorError] = []
        while True:
            try:
                for row in rest:
                    send(row)
            except HeronError as error:
                failed.append(failed_at(self._operator, error))
            else:
                return failed


class WindowAssignment:
    """Assigns the values of a key to windows of event time. Rows are ``(key, start, accumulator)``.

    `wrap` makes the accumulator of one value. With a combiner, values are added to its accumulators instead.

    Attributes:
        span_us: the time from the start of a window to its close.
        tumbling_us: the size of windows that are beside each other; 0 for others.
    """

    __slots__ = ("_send", "_window", "_wrap", "combiner", "span_us", "tumbling_us")

    def __init__(
        self,
        window: SlidingWindow,
        wrap: Callable[[object], object],
        send: Callable[[tuple[object, int, object]], object],
        combiner: Combiner | None,
    ) -> None:
        self._window = window
        self._wrap = wrap
        self._send = send
        self.combiner = combiner
        self.span_us = window.size_us + window.allowed_lateness_us
        self.tumbling_us = window.size_us if window.size_us == window.slide_us else 0

    def add(self, key: object, value: object, time_us: int, bound_us: int) -> int:
        """Assigns a value; returns for how many windows it is late."""
        late = 0
        for start_us in self._window.starts_of(time_us):
            if start_us + self.span_us <= bound_us:
                late += 1
            elif self.combiner is not None:
                self.combiner.add(key, start_us, value)
            else:
                self._send((key, start_us, self._wrap(value)))
        return late


class SessionAssignment:
    """Passes the elements that are not late for a session of their own. Rows are ``(key, value, time)``."""

    __slots__ = ("_send", "span_us")
    combiner = None
    tumbling_us = 0

    def __init__(self, window: SessionWindow, send: Callable[[tuple[object, object, int]], object]) -> None:
        self.span_us = window.gap_us + window.allowed_lateness_us
        self._send = send

    def add(self, key: object, value: object, time_us: int, bound_us: int) -> int:
        """Passes a value; returns 1 if it is late."""
        if time_us + self.span_us <= bound_us:
            return 1
        self._send((key, value, time_us))
        return 0
