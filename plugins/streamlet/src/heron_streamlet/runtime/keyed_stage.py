"""A stage that begins with an operator with state: the states of its keys, their windows, and the times they close.

Engines keep the states and know the watermark; what happens with a row and with a window is the same on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from heron.errors import UsageError
from heron_streamlet.failures import OperatorError, in_one
from heron_streamlet.plan.graph import LATE
from heron_streamlet.plan.operators import Keyed
from heron_streamlet.runtime.stage_code import StageCode
from heron_streamlet.runtime.timers import Timers
from heron_streamlet.windowing.event_time import END_OF_TIME_US, START_OF_TIME_US
from heron_streamlet.windowing.failed_window import (
    REPORTED,
    FailedWindow,
    GuardedFold,
    WindowFailed,
    failed_window,
    window_error,
)
from heron_streamlet.windowing.fold import Reduce
from heron_streamlet.windowing.keyed_operators import AlignedWindows, KeyedOperator, WindowFold, WindowJoin
from heron_streamlet.windowing.window_assignment import WindowRow

__all__ = ["KeyedStage", "States", "rows_by_clock"]


class States(Protocol):
    """The states by key; those that an operator changes in place need no `put`."""

    def get(self, key: Any) -> Any:  # noqa: ANN401  # states belong to operators
        """The state of a key, or None."""
        ...

    def put(self, key: Any, value: Any) -> None:  # noqa: ANN401
        """Keep a state."""
        ...

    def remove(self, key: Any) -> None:  # noqa: ANN401
        """Forget a key."""
        ...

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All keys with their states."""
        ...


class KeyedStage:
    """The head of one task's stage.

    Attributes:
        watermark_us: windows that end before it are closed: the largest watermark that `reach` got, less the delay of
            windows upstream.
        timers: when windows of which keys close.
        guarded: whether there were failed windows; from then on `operator` is the guarded one.
        receive: takes the values of a row that another task sent: the key, and what the operator needs. It raises as
            `add` does.
    """

    def __init__(self, operator: KeyedOperator, code: StageCode, states: States) -> None:
        self.operator = operator
        self.guarded = False
        self.states = states
        self.watermark_us = START_OF_TIME_US
        self.timers = Timers()
        self._behind_us = code.stage.behind_us
        self.code = code
        self._held: list[tuple[Any, int, int]] = []
        self.receive: Callable[[tuple[Any, ...]], object] = self._receiver()
        self.follow: Callable[[Any, int, int], None] = code.follow()
        head = code.stage.head.number  # others are for windows behind this stage, to which it assigns elements
        self._late = [outlet for outlet in code.stage.outlets if outlet.output == LATE and outlet.source == head]
        for key, state in states.items():
            for time_us in operator.timers_us(state):
                self.timers.add(time_us, key)
            if not self.guarded and operator.has_failed(state):
                self.guard()

    def _receiver(self) -> Callable[[tuple[Any, ...]], object]:
        head = self.code.stage.head
        if isinstance(self.operator, AlignedWindows):
            return self._windows_receiver(self.operator)
        if isinstance(head.operator, Keyed) and not head.timed:
            return lambda values: self.add(values[0], (*values[1:], START_OF_TIME_US, START_OF_TIME_US))
        return lambda values: self.add(values[0], values[1:])

    def _windows_receiver(self, operator: AlignedWindows) -> Callable[[WindowRow], None]:
        def receive(values: WindowRow) -> None:
            key, start_us, windows, value = values
            if windows < 0:
                self.fail_windows(key, start_us, -windows, value)
                return
            failed = []
            for row in self.shared_out(operator, key, start_us, windows, value):
                try:
                    self.add(key, row)
                except OperatorError as error:  # the other windows are not lost
                    failed.append(error)
            if failed:
                raise in_one(failed)

        return receive

    def shared_out(
        self, operator: AlignedWindows, key: object, start_us: int, windows: int, value: object
    ) -> list[tuple[int, object]]:
        """The rows of `AlignedWindows.rows`; none if an accumulator cannot be copied: its windows have failed."""
        try:
            return list(operator.rows(start_us, windows, value))
        except Exception as error:
            self.fail_windows(key, start_us, windows, failed_window(error))
            return []

    def fail_windows(self, key: object, start_us: int, windows: int, failed: object) -> None:
        """Aligned windows of a key have failed, the first of which begins at `start_us`; `failed` says why.

        Those that have not failed before are counted and reported.
        """
        operator = self.operator
        assert isinstance(operator, AlignedWindows)  # noqa: S101  # no others are combined before the shuffle
        assert isinstance(failed, FailedWindow)  # noqa: S101  # rows with a negative number of windows have one
        self.guard()
        for start in range(start_us, start_us + windows * operator.window.slide_us, operator.window.slide_us):
            timer_us = operator.timer_us((start,))
            if timer_us <= self.watermark_us:
                self.code.host.late(1)
                continue
            self.timers.add(timer_us, key)
            state = self.states.get(key) or {}
            if type(state.get(start)) is not FailedWindow:
                state[start] = REPORTED
                self.states.put(key, state)
                self.code.host.failed(self.window_failed(key, operator.window_at(start), failed))

    def window_failed(self, key: object, window: object, failed: FailedWindow) -> OperatorError:
        """The error that reports a window which has failed now."""
        return window_error(self.code.stage.head.step, key, window, failed, keyed=self.operator.keyed)

    def guard(self) -> None:
        """Go on with an operator that expects failed windows."""
        if not self.guarded:
            self.guarded = True
            self.operator = self.operator.guarded()

    def add(self, key: object, row: tuple[Any, ...]) -> Any:  # noqa: ANN401
        """Add a row to the state of its key, unless its window is closed; return the state, or None.

        Raises:
            OperatorError: when an author's function fails. If the operator calls it, the state is as before; operators
                behind it fail alone, whether they share its stage or not. A window that fails is counted and reported,
                and nothing is raised.
        """
        operator = self.operator
        timer_us = operator.timer_us(row)
        if timer_us > START_OF_TIME_US:
            if timer_us <= self.watermark_us:
                self.drop_late(key, row)
                return None
            self.timers.add(timer_us, key)
        state = self.states.get(key)
        try:
            after = operator.add(key, state, row, self._hold)
        except WindowFailed as failed:
            self._held.clear()
            self.states.put(key, failed.state)
            self.guard()
            self.code.host.failed(self.window_failed(key, failed.window, failed_window(failed.error)))
            return None
        except Exception as error:
            self._held.clear()
            raise self.code.located(error, ((key, row[0]),)) from error
        if after is not state:
            self.states.put(key, after)
        if self._held:
            held = self._held.copy()
            self._held.clear()
            for result in held:
                self.follow(*result)
        return after

    def add_by_clock(self, key: object, side: int, value: object, now_us: int) -> None:
        """Add a value to the windows of now. `side` is the input of a join that it comes from.

        Raises:
            OperatorError: as `add` does; the other windows are not lost.
        """
        operator = self.operator
        try:
            rows = rows_by_clock(operator, side, value, now_us)
        except Exception as error:
            assert isinstance(operator, WindowFold)  # noqa: S101  # the others call no author's function
            starts = operator.window.starts_of(now_us)
            self.fail_windows(key, starts[0], len(starts), failed_window(error))
            return
        failed = []
        for row in rows:
            try:
                self.add(key, row)
            except OperatorError as error:
                failed.append(error)
        if failed:
            raise in_one(failed)

    def _hold(self, element: object, time_us: int, bound_us: int) -> None:
        self._held.append((element, time_us, bound_us))

    def reach(self, watermark_us: int) -> list[OperatorError]:
        """Give the results of the windows that this watermark closes. One that fails is lost alone; return failures."""
        if watermark_us < END_OF_TIME_US:
            watermark_us -= self._behind_us
        self.watermark_us = max(watermark_us, self.watermark_us)
        return self.close_due()

    def close_due(self) -> list[OperatorError]:
        """Give the results of the windows that end before `watermark_us`; return failures."""
        failed: list[OperatorError] = []
        for key in self.timers.due(self.watermark_us):
            for window in self.take_closed(key, self.watermark_us):
                failed += self.close(key, window)
        return failed

    def close(self, key: object, window: Any) -> list[OperatorError]:  # noqa: ANN401  # of the operator
        """Give the results of a window that has left the state: all of them, or none; return failures."""
        failed: list[OperatorError] = []
        for element, time_us in self.closing(key, window, failed):
            try:
                self.follow(element, time_us, START_OF_TIME_US)
            except OperatorError as error:  # of an operator behind it; the other results are not lost
                failed.append(error)
        return failed

    def closing(self, key: object, window: Any, failed: list[OperatorError]) -> list[tuple[object, int]]:  # noqa: ANN401
        """The results of a window that has left the state; none if one of them fails."""
        if type(window[1]) is FailedWindow:  # reported when it failed
            return []
        try:
            return list(self.operator.results(key, window))
        except Exception as error:  # of an author's function
            failed.append(self.window_failed(key, window[0], failed_window(error)))
            return []

    def give_early(self, now_s: float) -> list[OperatorError]:
        """Give the early results that are due, if some are asked for; return failures. `now_s` is monotonic."""
        del now_s
        return []

    def drop_late(self, key: object, row: tuple[Any, ...]) -> None:
        """Drop and count a row that arrives after its window closed, or send it to the late stream.

        Its source was idle, or sends it again.
        """
        host = self.code.host
        host.late(1)
        value = _element(self.operator, row)
        for outlet in self._late if value else ():
            times = (START_OF_TIME_US, START_OF_TIME_US) if outlet.timed else ()
            element = (key, *value) if self.operator.keyed else value[0]
            host.sender(outlet)((element, *times))

    def take_closed(self, key: object, watermark_us: int) -> list[Any]:
        """Take the windows that are closed at this watermark out of the state of a key."""
        try:
            state = self.states.get(key)
        except UsageError:  # an update gave the key to another task
            return []
        if state is None:
            return []
        after, closed = self.operator.take_closed(state, watermark_us)
        if after is None:
            self.states.remove(key)
        elif after is not state:
            self.states.put(key, after)
        return closed


def rows_by_clock(operator: KeyedOperator, side: int, value: object, now_us: int) -> list[tuple[Any, ...]]:
    """The rows of a value that belongs to the windows of now. `side` is the input of a join that it comes from."""
    if isinstance(operator, WindowFold):
        return [(start_us, operator.fold.first(value)) for start_us in operator.window.starts_of(now_us)]
    if isinstance(operator, WindowJoin):
        return [(start_us, (side, value)) for start_us in operator.window.starts_of(now_us)]
    return [(value, now_us)]


def _element(operator: KeyedOperator, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The value of a row, in a tuple; empty if the row is an accumulator of other values."""
    if isinstance(operator, WindowJoin):
        return (row[1][1],)
    if isinstance(operator, WindowFold):
        fold = operator.fold.fold if isinstance(operator.fold, GuardedFold) else operator.fold
        return (row[1],) if isinstance(fold, Reduce) else ()
    return (row[0],)
