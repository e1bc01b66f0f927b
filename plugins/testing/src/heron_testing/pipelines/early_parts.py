"""What holds for early results on every engine: each is a part of the final one, and has more than the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from heron_streamlet import Aggregate, KeyedWindow, WindowResult, session_window, sliding_window, tumbling_window
from heron_streamlet.windowing.window import SessionWindow, SlidingWindow
from heron_testing.pipelines.random_chains import KEYS

__all__ = ["EVENTS", "WINDOWS", "Gathered", "check_growth", "comparable", "numbered", "parts"]

WINDOWS: dict[str, SlidingWindow | SessionWindow] = {
    "tumbling": tumbling_window(10),
    "late by 8": tumbling_window(10).allow_lateness(8),
    "sliding": sliding_window(10, 4),
    "session": session_window(5),
}

EVENTS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(KEYS[:4])), max_size=15)
"""Seconds of event time, and key."""

Parts = tuple[str, int, int, list[Any], bool]
"""Key, begin and end of a window, values so far, and whether they are final."""


class Gathered(Aggregate[object, list[object], list[object]]):
    """All values; its accumulators are changed in place, and also when the result is made."""

    def zero(self) -> list[object]:
        """`Aggregate.zero`."""
        return []

    def add(self, accumulator: list[object], value: object) -> list[object]:
        """`Aggregate.add`."""
        accumulator.append(value)
        return accumulator

    def merge(self, left: list[object], right: list[object]) -> list[object]:
        """`Aggregate.merge`."""
        left.extend(right)
        return left

    def result(self, accumulator: list[object]) -> list[object]:
        """`Aggregate.result`."""
        accumulator.append("result")
        return accumulator


def numbered(inputs: Sequence[Sequence[tuple[int, Any]]]) -> list[list[Any]]:
    """Triples of time, key and a value that no other element has, for pairs of time and key."""
    return [[(time, key, (side, at)) for at, (time, key) in enumerate(one)] for side, one in enumerate(inputs)]


def parts(each: WindowResult[KeyedWindow[Any], list[Any]]) -> Parts:
    """A result as plain values."""
    return repr(each.window.key), *each.window.window, each.result, each.final


def comparable(results: Iterable[Parts]) -> list[str]:
    """Results with their values in any order, since these come from several partitions."""
    return sorted(f"{each[:3]} {sorted(map(repr, each[3]))}" for each in results)


def check_growth(results: Iterable[Parts]) -> None:
    """Each result of a window has more values than the one before it; the last one is final."""
    latest: dict[tuple[str, int, int], Parts] = {}
    for each in results:
        before = latest.get(each[:3])
        if before is not None:
            assert not before[4]
            assert Counter(before[3]) <= Counter(each[3])
            assert each[4] or len(before[3]) < len(each[3])
        latest[each[:3]] = each
    for key, start_us, end_us, values, _ in latest.values():
        assert any(
            final
            and whole_key == key
            and whole_start_us <= start_us
            and end_us <= whole_end_us
            and Counter(values) <= Counter(all_values)
            for whole_key, whole_start_us, whole_end_us, all_values, final in latest.values()
        )
