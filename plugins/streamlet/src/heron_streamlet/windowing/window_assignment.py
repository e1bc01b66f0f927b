"""Assigns elements to windows, before they travel to the task of their key; combines them where that is safe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from heron.errors import HeronError
from heron_streamlet.failures import OperatorError, failed_at, in_one
from heron_streamlet.windowing.failed_window import FailedWindow, failed_window
from heron_streamlet.windowing.fold import Fold
from heron_streamlet.windowing.window import SessionWindow, SlidingWindow

__all__ = ["COMBINED_AT_MOST", "Combiner", "SessionAssignment", "WindowAssignment", "WindowRow", "send_each"]

WindowRow: TypeAlias = tuple[object, int, int, object]
"""Key, start of the first window, number of windows that begin one slide after the other, and what they all get.

A negative number says that so many windows have failed: then they get a `FailedWindow`.
"""

COMBINED_AT_MOST = 10_000
"""Accumulators in memory, of one outlet; a few MB."""


class Combiner:
    """Accumulators by window and key that have not left the task.

    They leave before a watermark, a checkpoint and the end, so nothing that depends on them is early. Results appear
    only with a watermark, so waiting costs no latency.

    Attributes:
        windows: the accumulators by key, by the windows that they belong to: the start of the first one, and their
            number. Always the same dict. A key whose fold failed is not among them.
    """

    __slots__ = ("_failed", "_operator", "_sender", "_size", "fold", "windows")

    def __init__(self, operator: object, fold: Fold, sender: Callable[[], Callable[[WindowRow], object]]) -> None:
        """`sender` gives the function that takes rows now; errors name `operator`."""
        self._operator = operator
        self.fold = fold
        self._sender = sender
        self._size = 0
        self.windows: dict[tuple[int, int], dict[object, object]] = {}
        self._failed: dict[tuple[int, int], dict[object, FailedWindow]] = {}

    def add(self, key: object, start_us: int, windows: int, value: object) -> None:
        """Adds a value to the accumulator of a key and its windows; if that fails, the windows of the key fail."""
        place = start_us, windows
        accumulators = self.windows.setdefault(place, {})
        try:
            if key in accumulators:
                accumulators[key] = self.fold.add(accumulators[key], value)
                return
            if self._failed and key in self._failed.get(place, ()):
                return
            accumulators[key] = self.fold.first(value)
        except Exception as error:
            hash(key)  # a key that cannot be one is no failure of the fold
            self.fail(place, key, error)
        self._size += 1
        if self._size >= COMBINED_AT_MOST and (failed := self.flush()):
            raise in_one(failed)

    def fail(self, place: tuple[int, int], key: object, error: Exception) -> None:
        """The fold of a key and its windows failed. The task of the key reports it."""
        self.windows[place].pop(key, None)
        self._failed.setdefault(place, {})[key] = failed_window(error)

    def flush(self) -> list[OperatorError]:
        """Sends all accumulators and failed windows; returns an error for each whose key is refused."""
        rows = [
            (key, start_us, windows, each)
            for (start_us, windows), keys in self.windows.items()
            for key, each in keys.items()
        ]
        for (start_us, windows), failures in self._failed.items():
            rows += [(key, start_us, -windows, each) for key, each in failures.items()]
        self.windows.clear()
        self._failed.clear()
        self._size = 0
        return send_each(rows, self._sender(), self._operator)


def send_each(rows: Iterable[WindowRow], send: Callable[[WindowRow], object], operator: object) -> list[OperatorError]:
    """Sends rows; returns an error of `operator` for each row that is refused."""
    rest = iter(rows)
    failed: list[OperatorError] = []
    at: WindowRow | tuple[()] = ()
    while True:
        try:
            for at in rest:
                send(at)
        except HeronError as error:
            failed.append(failed_at(operator, error, *at[:1]))
        else:
            return failed


class WindowAssignment:
    """Assigns the values of a key to windows of event time. Rows are `WindowRow`.

    `wrap` makes the accumulator of one value. With a combiner, values are added to its accumulators instead. Values of
    one pane, the time between two starts of windows, have the same windows, so they have one accumulator for all of
    them, unless their order counts.

    Attributes:
        window: the windows.
        span_us: the time from the start of a window to its close.
        in_panes: whether the combiner has one accumulator for all windows of a value.
        pane_windows: how many windows all values of a pane have; 0 if their number differs, or not `in_panes`.
    """

    __slots__ = ("_send", "_wrap", "combiner", "in_panes", "pane_windows", "span_us", "window")

    def __init__(
        self,
        window: SlidingWindow,
        wrap: Callable[[object], object],
        send: Callable[[WindowRow], object],
        combiner: Combiner | None,
    ) -> None:
        self.window = window
        self._wrap = wrap
        self._send = send
        self.combiner = combiner
        self.span_us = window.size_us + window.allowed_lateness_us
        one = window.size_us == window.slide_us
        self.in_panes = combiner is not None and (one or combiner.fold.in_any_order)
        even = self.in_panes and window.size_us % window.slide_us == 0
        self.pane_windows = window.size_us // window.slide_us if even else 0

    def add(self, key: object, value: object, time_us: int, bound_us: int) -> int:
        """Assigns a value; returns for how many windows it is late. They are the first, because they close first.

        The generated stage counts them (`StageCode._assign`), and sends the element to the late stream if there is one.
        """
        starts = self.window.starts_of(time_us)
        late = sum(start_us + self.span_us <= bound_us for start_us in starts)
        starts = starts[late:]
        if not starts:
            return late
        if self.combiner is None:
            self._send_alone(key, starts, value)
        elif self.in_panes:
            self.combiner.add(key, starts[0], len(starts), value)
        else:
            for start_us in starts:
                self.combiner.add(key, start_us, 1, value)
        return late

    def _send_alone(self, key: object, starts: Sequence[int], value: object) -> None:
        """Sends the accumulator of one value."""
        try:
            row = key, starts[0], len(starts), self._wrap(value)
        except Exception as error:
            row = key, starts[0], -len(starts), failed_window(error)
        self._send(row)


class SessionAssignment:
    """Passes the elements that are not late for a session of their own. Rows are ``(key, value, time)``."""

    __slots__ = ("_send", "span_us")
    combiner = None

    def __init__(self, window: SessionWindow, send: Callable[[tuple[object, object, int]], object]) -> None:
        self.span_us = window.gap_us + window.allowed_lateness_us
        self._send = send

    def add(self, key: object, value: object, time_us: int, bound_us: int) -> int:
        """Passes a value; returns 1 if it is late."""
        if time_us + self.span_us <= bound_us:
            return 1
        self._send((key, value, time_us))
        return 0
