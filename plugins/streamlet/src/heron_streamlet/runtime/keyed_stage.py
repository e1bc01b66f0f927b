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
        receive: takes the values of a row that another task sent: the key, and what the operator needs. It raises as
            `add` does.
    """

    def __init__(self, operator: KeyedOperator, code: StageCode, states: States) -> None:
        self.operator = operator
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
            failed = []
            for row in self.shared_out(operator, start_us, windows, value):
                try:
                    self.add(key, row)
                except OperatorError as error:  # the other windows are not lost
                    failed.append(error)
            if failed:
                raise in_one(failed)

        return receive

    def shared_out(
        self, operator: AlignedWindows, start_us: int, windows: int, value: object
    ) -> list[tuple[int, object]]:
        """The rows of `AlignedWindows.rows`.

        Raises:
            OperatorError: when an author's accumulator cannot be copied.
        """
        try:
            return list(operator.rows(start_us, windows, value))
        except Exception as error:
            raise self.code.located(error) from error

    def add(self, key: object, row: tuple[Any, ...]) -> Any:  # noqa: ANN401
        """Add a row to the state of its key, unless its window is closed; return the state, or None.

        Raises:
            OperatorError: when an author's function fails. If the operator calls it, the state is as before; operators
                behind it fail alone, whether they share its stage or not.
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
        except Exception as error:
            self._held.clear()
            raise self.code.located(error) from error
        if after is not state:
            self.states.put(key, after)
        if self._held:
            held = self._held.copy()
            self._held.clear()
            for result in held:
                self.follow(*result)
        return after

    def _hold(self, element: object, time_us: int, bound_us: int) -> None:
        self._held.append((element, time_us, bound_us))

    def reach(self, watermark_us: int) -> list[OperatorError]:
        """Give the results of the windows that this watermark closes. One that fails is lost alone; return failures."""
        if watermark_us < END_OF_TIME_US:
            watermark_us -= self._behind_us
        self.watermark_us = max(watermark_us, self.watermark_us)
        failed: list[OperatorError] = []
        for key in self.timers.due(watermark_us):
            for window in self._take_closed(key, watermark_us):
                try:
                    self.close(key, window)
                except OperatorError as error:
                    failed.append(error)
                except Exception as error:  # of an author's function
                    failed.append(self.code.located(error))
        return failed

    def close(self, key: object, window: Any) -> None:  # noqa: ANN401  # of the operator
        """Give the results of a window that has left the state."""
        for element, time_us in self.operator.results(key, window):
            self.follow(element, time_us, START_OF_TIME_US)

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

    def _take_closed(self, key: object, watermark_us: int) -> list[Any]:
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
        return (row[1],) if isinstance(operator.fold, Reduce) else ()
    return (row[0],)
