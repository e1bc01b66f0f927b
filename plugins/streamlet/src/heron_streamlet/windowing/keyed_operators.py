"""The operators that keep state for each key: an element and the key's state in, results and the new state out.

They are the same on every engine. An engine keeps the states, and calls `add` for the rows of a key in their order.
When the watermark has reached a time that `timer_us` gave, it calls `take_closed`, and `results` for each window that
this returns. No author's function is called while windows leave a state, so one that fails costs one window.

If a fold fails for one value, its windows fail as a whole: `add` raises `WindowFailed` with a state that says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Self, TypeVar

from heron_streamlet.windowing.event_time import START_OF_TIME_US
from heron_streamlet.windowing.failed_window import REPORTED, FailedWindow, GuardedFold, WindowFailed, has_failed
from heron_streamlet.windowing.fold import Fold
from heron_streamlet.windowing.window import CountWindow, KeyedWindow, SessionWindow, SlidingWindow, Window

__all__ = [
    "AlignedWindows",
    "CountFold",
    "Distinct",
    "FoldedWindows",
    "KeyedOperator",
    "MapWithState",
    "Results",
    "RunningFold",
    "SessionFold",
    "WindowFold",
    "WindowJoin",
]

O = TypeVar("O", bound="KeyedOperator")  # noqa: E741  # an operator

_SESSION_TIMERS_PER_GAP = 8  # a session closes at most an eighth of its gap later; each further timer costs memory


Results = Callable[[Any, int, int], object]
"""Receives the results of an operator, each with event time and bound."""


class KeyedOperator(ABC):
    """The operator of one node of the graph; it keeps nothing itself. States are picklable; None is no state.

    A row consists of the values behind the key; each class describes its own.
    """

    keyed = True
    """Whether the results begin with the key; reductions of a whole stream have the key None, and do not show it."""

    @property
    def delay_us(self) -> int:
        """How far the watermark may be ahead of the time of a result, at most."""
        return 0

    @abstractmethod
    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """Take one row; return the new state of its key.

        Raises:
            WindowFailed: when a fold fails; it has the new state. After any other error the state is as before.
        """

    def take_closed(self, state: Any, watermark_us: int) -> tuple[Any, list[Any]]:  # noqa: ANN401
        """The state without the windows that are closed at this watermark, or None; and these windows, by time."""
        del watermark_us
        return state, []

    def results(self, key: object, closed: Any) -> Iterable[tuple[object, int]]:  # noqa: ANN401
        """The results of a closed window, each with its event time. Calls authors' functions."""
        del key, closed
        return ()

    def timer_us(self, row: tuple[Any, ...]) -> int:
        """When `take_closed` has to be called because of this row; `START_OF_TIME_US` for never."""
        return START_OF_TIME_US

    def timers_us(self, state: Any) -> Iterable[int]:  # noqa: ANN401  # a state of this operator
        """When `take_closed` has to be called for a state that was saved."""
        return ()

    def has_failed(self, state: Any) -> bool:  # noqa: ANN401
        """Whether a state has failed windows; then the engine goes on with the operator that `guarded` returns."""
        del state
        return False

    def guarded(self) -> Self:
        """An operator that does the same, also with states that have failed windows."""
        return self


class FoldedWindows(KeyedOperator):
    """An operator whose windows have one result each, and therefore a result so far."""

    fold: Fold

    def guarded(self) -> Self:
        """`KeyedOperator.guarded`."""
        return _guarded(self)

    def results(self, key: object, closed: Any) -> Iterable[tuple[object, int]]:  # noqa: ANN401
        """`KeyedOperator.results`: that of the accumulator."""
        window, accumulator = closed
        place = KeyedWindow(key, window) if self.keyed else window
        return [((place, self.fold.result(accumulator)), window.end_us - 1)]

    @abstractmethod
    def starts(self, state: Any) -> Iterable[int]:  # noqa: ANN401  # a state of this operator
        """The starts of the open windows of a key."""

    @abstractmethod
    def changed(self, state: Any, row: tuple[Any, ...]) -> int:  # noqa: ANN401
        """The start of the window that a row has changed; `state` is that behind the row."""

    @abstractmethod
    def so_far(self, state: Any, time_us: int) -> Any:  # noqa: ANN401
        """The open window that starts at this time or contains it, for `results`; None if there is none.

        `results` leaves the state as it is.
        """


class AlignedWindows(KeyedOperator):
    """An operator whose windows begin at the same times for all keys.

    Rows are ``(start, value)``, for one window; the state is a dict by the start of windows.
    """

    window: SlidingWindow

    @property
    def delay_us(self) -> int:
        """`KeyedOperator.delay_us`."""
        return self.window.allowed_lateness_us

    def take_closed(self, state: Any, watermark_us: int) -> tuple[Any, list[Any]]:  # noqa: ANN401
        """`KeyedOperator.take_closed`."""
        return _taken(state, self.window, watermark_us)

    def timer_us(self, row: tuple[Any, ...]) -> int:
        """`KeyedOperator.timer_us`."""
        start_us: int = row[0]
        return start_us + self.window.size_us + self.window.allowed_lateness_us

    def timers_us(self, state: Any) -> Iterable[int]:  # noqa: ANN401
        """`KeyedOperator.timers_us`."""
        return [self.timer_us((start_us,)) for start_us in state]

    def rows(self, start_us: int, windows: int, value: object) -> Iterator[tuple[int, object]]:
        """The rows of a value that belongs to several windows, of which the first begins at `start_us`."""
        *others, last = range(start_us, start_us + windows * self.window.slide_us, self.window.slide_us)
        for each in others:
            yield each, self.copied(value)
        yield last, value

    def copied(self, value: object) -> object:
        """A value that can be changed without the other."""
        return value

    def window_at(self, start_us: int) -> Window:
        """The window that begins then."""
        return Window(start_us, start_us + self.window.size_us)


@dataclass(frozen=True, slots=True)
class RunningFold(KeyedOperator):
    """Folds the values of a key; each gives the result so far. Rows are ``(value, time, bound)``."""

    fold: Fold

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        value, time_us, bound_us = row
        state = self.fold.first(value) if state is None else self.fold.add(state, value)
        results((key, self.fold.result(state)), time_us, bound_us)
        return state


@dataclass(frozen=True, slots=True)
class Distinct(KeyedOperator):
    """Passes the first of equal elements. Rows are ``(element, time, bound)``; the key is the element."""

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        if state is None:
            results(*row)
        return True


@dataclass(frozen=True, slots=True)
class MapWithState(KeyedOperator):
    """Calls ``function(state, value)``, which returns the new state and a result. Rows are ``(value, time, bound)``."""

    function: Callable[[Any, Any], tuple[Any, Any]]
    initial: Callable[[], Any]

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        value, time_us, bound_us = row
        (held,) = (self.initial(),) if state is None else state
        held, result = self.function(held, value)
        results((key, result), time_us, bound_us)
        return (held,)  # an author's state may be None


@dataclass(frozen=True, slots=True)
class WindowFold(AlignedWindows, FoldedWindows):
    """Merges accumulators by window. Rows are ``(start, accumulator)``; the state is a dict of them."""

    window: SlidingWindow
    fold: Fold
    keyed: bool = True

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        start_us, accumulator = row
        if state is None:
            return {start_us: accumulator}
        if start_us in state:
            try:
                accumulator = self.fold.merge(state[start_us], accumulator)
            except Exception as error:
                state[start_us] = REPORTED
                raise WindowFailed(state, self.window_at(start_us), error) from error
        state[start_us] = accumulator
        return state

    def has_failed(self, state: Any) -> bool:  # noqa: ANN401
        """`KeyedOperator.has_failed`."""
        return has_failed(state.values())

    def copied(self, value: object) -> object:
        """`AlignedWindows.copied`."""
        return self.fold.copied(value)

    def starts(self, state: Any) -> Iterable[int]:  # noqa: ANN401
        """`FoldedWindows.starts`."""
        return list(state)

    def changed(self, state: Any, row: tuple[Any, ...]) -> int:  # noqa: ANN401
        """`FoldedWindows.changed`."""
        del state
        start_us: int = row[0]
        return start_us

    def so_far(self, state: Any, time_us: int) -> Any:  # noqa: ANN401
        """`FoldedWindows.so_far`; the time is a start."""
        if time_us not in state:
            return None
        return self.window_at(time_us), self.fold.copied(state[time_us])


@dataclass(frozen=True, slots=True)
class SessionFold(FoldedWindows):
    """Folds sessions. Rows are ``(value, time)``; the state is a list of ``(start, end, accumulator)``, ascending.

    Two sessions of a key never overlap: an element that connects two makes them one. The end of a session is not part
    of it, so an element at the end begins another one.
    """

    window: SessionWindow
    fold: Fold
    keyed: bool = True

    @property
    def delay_us(self) -> int:
        """`KeyedOperator.delay_us`."""
        return self.window.gap_us + self.window.allowed_lateness_us + self._timer_step_us

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        value, start_us = row
        end_us = start_us + self.window.gap_us
        apart: list[Any] = []
        overlapping: list[Any] = []
        for session in state or ():
            (overlapping if session[0] < end_us and start_us < session[1] else apart).append(session)
        try:
            if overlapping:  # ascending, so that older values are on the left
                start_us, end_us = min(start_us, overlapping[0][0]), max(end_us, overlapping[-1][1])
                accumulator = overlapping[0][2]
                for session in overlapping[1:]:
                    accumulator = self.fold.merge(accumulator, session[2])
                accumulator = self.fold.add(accumulator, value)
            else:
                accumulator = self.fold.first(value)
        except Exception as error:
            state = sorted([*apart, (start_us, end_us, REPORTED)], key=itemgetter(0))
            raise WindowFailed(state, Window(start_us, end_us), error) from error
        return sorted([*apart, (start_us, end_us, accumulator)], key=itemgetter(0))

    def has_failed(self, state: Any) -> bool:  # noqa: ANN401
        """`KeyedOperator.has_failed`."""
        return has_failed(each for _, _, each in state)

    def take_closed(self, state: Any, watermark_us: int) -> tuple[Any, list[Any]]:  # noqa: ANN401
        """`KeyedOperator.take_closed`."""
        open_from_us = watermark_us - self.window.gap_us - self.window.allowed_lateness_us
        closed = [(Window(start_us, end_us), each) for start_us, end_us, each in state if end_us <= open_from_us]
        return [session for session in state if session[1] > open_from_us] or None, closed

    def timer_us(self, row: tuple[Any, ...]) -> int:
        """`KeyedOperator.timer_us`."""
        return self._timer_us(row[1] + self.window.gap_us)

    def timers_us(self, state: Any) -> Iterable[int]:  # noqa: ANN401
        """`KeyedOperator.timers_us`."""
        return [self._timer_us(end_us) for _, end_us, _ in state]

    def starts(self, state: Any) -> Iterable[int]:  # noqa: ANN401
        """`FoldedWindows.starts`."""
        return [start_us for start_us, _, _ in state]

    def changed(self, state: Any, row: tuple[Any, ...]) -> int:  # noqa: ANN401
        """`FoldedWindows.changed`."""
        time_us = row[1]
        starts: Iterator[int] = (start_us for start_us, end_us, _ in state if start_us <= time_us < end_us)
        return next(starts)

    def so_far(self, state: Any, time_us: int) -> Any:  # noqa: ANN401
        """`FoldedWindows.so_far`."""
        for start_us, end_us, accumulator in state:
            if start_us <= time_us < end_us:
                return Window(start_us, end_us), self.fold.copied(accumulator)
        return None

    @property
    def _timer_step_us(self) -> int:
        return max(1, self.window.gap_us // _SESSION_TIMERS_PER_GAP)

    def _timer_us(self, end_us: int) -> int:
        """The close of a session with this end, rounded up: neighbours share a timer."""
        step_us = self._timer_step_us
        return -(-(end_us + self.window.gap_us + self.window.allowed_lateness_us) // step_us) * step_us


@dataclass(frozen=True, slots=True)
class CountFold(KeyedOperator):
    """Folds every `size` values of a key, one window every `slide` values. Rows are ``(value, time, bound)``.

    The state is ``(values since the last window began, accumulators)``: one accumulator for each open window, oldest
    first. Windows that are not full at the end of the input give no result. A value for which the fold fails counts:
    the open windows that it fails have no result.
    """

    window: CountWindow
    fold: Fold

    def has_failed(self, state: Any) -> bool:  # noqa: ANN401
        """`KeyedOperator.has_failed`."""
        return has_failed(each for _, each in state[1])

    def guarded(self) -> Self:
        """`KeyedOperator.guarded`."""
        return _guarded(self)

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        value, time_us, bound_us = row
        size, slide = self.window.size, self.window.slide
        seen, before = state or (0, ())
        add, windows = self.fold.add, []
        failed: Exception | None = None
        for count, accumulator in before:
            try:
                windows.append((count + 1, add(accumulator, value)))
            except Exception as error:
                windows.append((count + 1, REPORTED))
                failed = error
        if seen == 0:
            try:
                windows.append((1, self.fold.first(value)))
            except Exception as error:
                windows.append((1, REPORTED))
                failed = error
        full = windows.pop(0)[1] if windows and windows[0][0] == size else REPORTED
        if type(full) is not FailedWindow:
            try:
                results((key, self.fold.result(full)), time_us, bound_us)
            except Exception as error:
                failed = error
        state = (seen + 1) % slide, windows
        if failed is not None:
            raise WindowFailed(state, f"a window of {size} values", failed) from failed
        return state


@dataclass(frozen=True, slots=True)
class WindowJoin(AlignedWindows):
    """Joins the values of two streams by key and window. Rows are ``(start, (side, value))``.

    The state is a dict of ``(left values, right values)`` by start. A window gives all pairs when it closes, in order
    of arrival. An outer side without a partner is paired with None.
    """

    window: SlidingWindow
    function: Callable[[Any, Any], Any]
    left_outer: bool = False
    right_outer: bool = False

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        start_us, (side, value) = row
        state = {} if state is None else state
        state.setdefault(start_us, ([], []))[side].append(value)
        return state

    def results(self, key: object, closed: Any) -> Iterable[tuple[object, int]]:  # noqa: ANN401
        """`KeyedOperator.results`."""
        window, (left, right) = closed
        if not left and self.right_outer:
            left = [None]
        if not right and self.left_outer:
            right = [None]
        place, time_us = KeyedWindow(key, window), window.end_us - 1
        for one in left:
            for other in right:
                yield (place, self.function(one, other)), time_us


def _guarded(operator: O) -> O:
    own: Any = operator  # a dataclass with a fold
    guarded: O = replace(own, fold=GuardedFold(own.fold))
    return guarded


def _taken(state: dict[int, Any], window: SlidingWindow, watermark_us: int) -> tuple[Any, list[Any]]:
    """Takes the closed windows out of a state by start."""
    open_from_us = watermark_us - window.size_us - window.allowed_lateness_us
    starts = sorted(start_us for start_us in state if start_us <= open_from_us)
    closed = [(Window(start_us, start_us + window.size_us), state.pop(start_us)) for start_us in starts]
    return state or None, closed
