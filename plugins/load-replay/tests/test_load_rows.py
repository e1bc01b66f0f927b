"""What tasks have captured, as rows of a file: each tuple once, in the order of the times, with plain values only."""

from __future__ import annotations

import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.api.definition import ComponentDefinition, ComponentKind
from heron.spi.task_capture import CapturedFlush, CapturedStream, TaskCapture
from heron_load_replay.load_rows import CapturedTask, LoadRow, load_rows, spread_us
from heron_load_replay.plain_rows import LoadFileError, packed_row, read_plain

FLUSHES = st.lists(st.tuples(st.integers(0, 50_000), st.integers(1, 200), st.integers(0, 20)), min_size=1, max_size=20)


def captured(*flushes: CapturedFlush, began_at_s: float = 0.0, fields: tuple[str, ...] = ("word",)) -> TaskCapture:
    streams = (CapturedStream("default", fields),)
    return TaskCapture("t", "words", 1, 1, 1, 1, "host", began_at_s, 1.0, streams, flushes, 0, {})


def rows_of(*captures: TaskCapture) -> list[LoadRow]:
    return list(load_rows([CapturedTask(each, place) for place, each in enumerate(captures)]))


@given(FLUSHES)
def test_rows_stand_for_every_tuple(flushes: list[tuple[int, int, int]]) -> None:
    """Also for those of flushes that kept no row; the times are those of the flushes, and ascend."""
    at_us, made = 0, []
    for number, (pause_us, tuples, most) in enumerate(flushes):
        at_us += pause_us
        kept = max(1, min(most, tuples)) if not number else min(most, tuples)
        made.append(CapturedFlush(at_us, 0, tuples, kept, pickle.dumps(list(range(kept))) if kept else b""))
    rows = rows_of(captured(*made))
    assert sum(each.tuples for each in rows) == sum(each.tuples for each in made)
    assert min(each.tuples for each in rows) >= 1
    assert [each.due_us for each in rows] == sorted(each.due_us for each in rows)
    assert rows[-1].due_us <= at_us


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 1000))
def test_a_flush_is_spread_over_at_most_the_linger(before_us: int, pause_us: int, tuples: int) -> None:
    """No tuple has waited longer for it, and none was emitted after it."""
    at_us = before_us + pause_us
    times = [spread_us(before_us, at_us, number, tuples) for number in range(tuples)]
    assert times == sorted(times)
    assert times[-1] == at_us
    assert times[0] >= max(before_us, at_us - 10_000)


def test_a_flush_without_rows_has_those_of_its_neighbours() -> None:
    """A replay then has as many arrivals, with the keys of the moments around."""
    none = CapturedFlush(10, 0, 4, 0, b"")
    some = CapturedFlush(20, 0, 2, 2, pickle.dumps(["a", "b"]))
    rows = rows_of(captured(none, some, none))
    assert [(read_plain(each.values), each.tuples) for each in rows] == [
        (("a",), 2),
        (("b",), 2),
        (("a",), 1),
        (("b",), 1),
        (("a",), 2),
        (("b",), 2),
    ]


def test_tasks_are_merged_by_their_clocks() -> None:
    """A task that began later has later times."""
    flush = CapturedFlush(1000, 0, 1, 1, pickle.dumps(["a"]))
    rows = rows_of(captured(flush, began_at_s=5.5), captured(flush, began_at_s=5.0))
    assert [(each.due_us, each.partition) for each in rows] == [(1000, 1), (501_000, 0)]


def test_a_stream_without_any_value_is_refused_with_the_reason() -> None:
    """There is nothing to replay."""
    capture = captured(CapturedFlush(1, 0, 5, 0, b""))
    capture.unkept["my.Visit"] = 5
    with pytest.raises(LoadFileError, match=r"no values of stream 'default' of words/1 can be captured: my\.Visit"):
        rows_of(capture)


@pytest.mark.parametrize(
    "rows", [b"", b"\x80", pickle.dumps(("a",)), pickle.dumps(["a", "b"]), pickle.dumps([1]), pickle.dumps([(1, 2, 3)])]
)
def test_a_task_that_sends_other_rows_is_refused(rows: bytes) -> None:
    """It runs other code."""
    with pytest.raises(LoadFileError):
        rows_of(captured(CapturedFlush(1, 0, 1, 1, rows), fields=("a", "b")))


@pytest.mark.parametrize(
    "value", [os.system, ComponentKind.SPOUT, ComponentDefinition("a", ComponentKind.SPOUT, "m:C", 1), ValueError("a")]
)
def test_a_pickle_with_another_class_is_refused(value: object) -> None:
    """A file of strangers must not run code."""
    with pytest.raises(LoadFileError, match="which is none of a capture"):
        read_plain(pickle.dumps(value))


PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.uuids(),
        st.datetimes(), st.dates(), st.times(), st.timedeltas(), st.decimals(allow_nan=False),
        st.complex_numbers(allow_nan=False),
    ),
    lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner)),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(PLAIN))
def test_plain_values_come_back(values: list[object]) -> None:
    """With their types: a tuple stays a tuple, because a list is no key."""
    assert read_plain(packed_row(values)) == tuple(values)
