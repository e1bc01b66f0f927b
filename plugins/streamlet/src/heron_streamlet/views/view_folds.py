"""The folds of views: each side aggregates by key and span, and hands on what its sink writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from heron_streamlet.windowing.event_time import START_OF_TIME_US
from heron_streamlet.windowing.failed_window import FailedWindow, GuardedFold
from heron_streamlet.windowing.keyed_operators import Results, WindowFold

__all__ = ["HistoryFold", "LiveFold"]


@dataclass(frozen=True, slots=True)
class LiveFold(WindowFold):
    """Gives ``((start, key), accumulator)`` whenever an accumulator has changed, and nothing when a span closes.

    The accumulator is that of the state, which goes on changing: the sink encodes it when a checkpoint begins.
    """

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        state = WindowFold.add(self, key, state, row, results)
        results(((row[0], key), state[row[0]]), START_OF_TIME_US, START_OF_TIME_US)
        return state

    def results(self, key: object, closed: Any) -> Iterable[tuple[object, int]]:  # noqa: ANN401
        """`KeyedOperator.results`."""
        del key, closed
        return ()

    def guarded(self) -> LiveFold:
        """`KeyedOperator.guarded`."""
        return GuardedLiveFold(self.window, GuardedFold(self.fold), self.keyed)


@dataclass(frozen=True, slots=True)
class GuardedLiveFold(LiveFold):
    """`LiveFold`, also with spans that have failed: they give nothing more."""

    def add(self, key: object, state: Any, row: tuple[Any, ...], results: Results) -> Any:  # noqa: ANN401
        """`KeyedOperator.add`."""
        state = WindowFold.add(self, key, state, row, results)
        if type(state[row[0]]) is not FailedWindow:
            results(((row[0], key), state[row[0]]), START_OF_TIME_US, START_OF_TIME_US)
        return state


@dataclass(frozen=True, slots=True)
class HistoryFold(WindowFold):
    """Gives ``((start, key), accumulator)`` of each span that ends at or before `until_us`."""

    until_us: int = 0

    def results(self, key: object, closed: Any) -> Iterable[tuple[object, int]]:  # noqa: ANN401
        """`KeyedOperator.results`."""
        window, accumulator = closed
        if window.end_us > self.until_us:
            return []
        return [(((window.start_us, key), accumulator), window.end_us - 1)]
