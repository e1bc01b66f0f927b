"""What a capture keeps of flushes: every arrival, as many values as the time allows, and no value in a shape."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import cast
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.spi.inspected_task import InspectedTask, TaskIdentity
from heron.spi.task_capture import CaptureShape
from heron_task_inspector.load_capture import LoadCapture, RowBudget, capture_of
from heron_task_inspector.plain_pickle import UnkeptError, plain_pickle
from heron_task_inspector.value_shape import ValueShape
from heron_testing.waiting import Eventually

pytestmark = pytest.mark.leaks_nothing

MIB = 1 << 20
SHAPE = CaptureShape(frozenset({("default", "word")}), b"salt")
KEYS: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.decimals(allow_nan=False),
    st.uuids(),
)


class OfTheAuthor:
    """Its own code may do anything, so a capture runs none of it."""

    def _called(self, *_: object) -> bool:
        raise AssertionError

    __repr__ = __eq__ = __len__ = __bool__ = __hash__ = __iter__ = __reduce__ = _called  # type: ignore[assignment]  # none of them returns


class Text(str):
    """A subclass of a plain type is none."""

    __slots__ = ()


def test_a_capture_has_every_arrival_and_what_it_kept(eventually: Eventually) -> None:
    """The sample is set for the time of the capture only."""
    task = InspectedTask(TaskIdentity("t", "words", 3), outputs=1)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(capture_of, task, 60.0, MIB, None, stop)
        eventually(lambda: task.sample is not None)
        sample = task.sample
        assert sample is not None
        sample.emit("default", ("word",), ["a", "b"])
        sample.emit("pairs", ("word", "n"), [("c", 1)])
        sample.emit_columns("default", ("word",), pa.record_batch({"word": ["d"]}))
        stop.set()
        capture = asked.result(30.0)
    assert task.sample is None
    assert [(each.name, each.fields) for each in capture.streams] == [("default", ("word",)), ("pairs", ("word", "n"))]
    assert [(each.stream, each.tuples, each.kept) for each in capture.flushes] == [(0, 2, 2), (1, 1, 1), (0, 1, 1)]
    assert [pickle.loads(each.rows) for each in capture.flushes] == [["a", "b"], [("c", 1)], ["d"]]
    assert (capture.component, capture.task_id, capture.after_limit, capture.unkept) == ("words", 3, 0, {})


def test_the_limit_ends_the_values_and_counts_what_comes_later() -> None:
    """A task must not fill its memory."""
    capture = LoadCapture(1024, None)
    capture.emit("default", ("word",), ["x" * 400])
    capture.emit("default", ("word",), ["x" * 400])
    capture.emit("default", ("word",), ["x" * 400, "y"])
    capture.emit("default", ("word",), ["z"])
    assert [each.tuples for each in capture.flushes] == [1, 1]
    assert capture.after_limit == 3


def test_frequent_flushes_without_time_for_their_rows_are_one_record() -> None:
    """Else the records alone would cost more than the rows may. Every arrival is counted, also the last ones."""
    capture = LoadCapture(MIB, None)
    capture._budget.spend(0, 60.0)
    for number in range(100):
        capture.emit("default", ("word",), ["a"] * (1 + number % 2))
    capture.end()
    assert sum(each.tuples for each in capture.flushes) == 150
    assert len(capture.flushes) < 100
    assert {each.kept for each in capture.flushes} == {0}


@pytest.mark.parametrize("value", [OfTheAuthor(), Text("a"), object, [OfTheAuthor()], {"a": Text("b")}])
def test_values_of_other_types_are_counted_by_their_type(value: object) -> None:
    """Their arrival is known. No code of their class runs, and no class is in the pickle."""
    capture = LoadCapture(MIB, None)
    capture.emit("default", ("word",), [value, "b"])
    assert [(each.tuples, each.kept, each.rows) for each in capture.flushes] == [(2, 0, b"")]
    assert list(capture.unkept.values()) == [2]


@pytest.mark.parametrize("as_key", [True, False])
def test_a_shape_runs_no_code_of_an_author(as_key: bool) -> None:
    """Also where the value is a key, or inside one."""
    shape = ValueShape(SHAPE)
    of = shape.key if as_key else shape.shape
    for value in (OfTheAuthor(), (OfTheAuthor(),), Text("a")):
        with pytest.raises(UnkeptError):
            of(value)


@given(st.integers(min_value=1, max_value=10**6), st.floats(min_value=0.0, max_value=300.0))
def test_a_flush_never_gets_more_than_a_millisecond(row_ns: int, now_s: float) -> None:
    """A call of a sampler is that short, however much of the budget is left."""
    budget = RowBudget(0.0)
    for _ in range(40):  # it has learnt what a row costs
        budget.spend(100, 100 * row_ns / 1e9)
    assert budget.rows(now_s + 300.0) * row_ns / 1e9 <= 0.001 * 1.01


@given(st.lists(st.tuples(st.floats(1e-4, 0.01), st.floats(1e-7, 1e-4)), min_size=1, max_size=200))
def test_a_capture_spends_at_most_a_hundredth(flushes: list[tuple[float, float]]) -> None:
    """Beside the first millisecond, and the one flush that turns out dearer than those before it."""
    budget, now_s, spent_s, dearest_s = RowBudget(0.0), 0.0, 0.0, 0.0
    for pause_s, row_s in flushes:
        now_s += pause_s
        rows = budget.rows(now_s)
        budget.spend(rows, rows * row_s)
        spent_s += rows * row_s
        dearest_s = max(dearest_s, rows * row_s)
    assert spent_s <= 0.01 * now_s + 0.001 + dearest_s + 1e-9


@given(st.lists(KEYS, max_size=50))
def test_hashes_keep_skew_and_types_of_keys(keys: list[object]) -> None:
    """Equal keys of a type stay equal, and others stay different."""
    shape = ValueShape(SHAPE)
    hashed = list(map(shape.key, keys))
    assert list(map(type, hashed)) == list(map(type, keys))
    kinds = [each for each in keys if type(each) is not date]  # there are few dates, so two may have one hash
    before, after = (Counter((type(each), each) for each in some) for some in (kinds, map(shape.key, kinds)))
    assert sorted(before.values()) == sorted(after.values())
    assert [shape.key(each) for each in keys] == hashed


@given(KEYS)
def test_another_salt_makes_other_hashes(key: object) -> None:
    """Who knows the hash of a key in one topology knows nothing about another one."""
    one, other = (ValueShape(CaptureShape(frozenset(), salt)) for salt in (b"one", b"other"))
    if key is not None and not isinstance(key, bool | date):
        assert one.key(key) != other.key(key)


def test_numbers_that_are_one_key_stay_one_key() -> None:
    """A grouping takes 1 and 1.0 to the same task."""
    shape = ValueShape(SHAPE)
    assert shape.key(7) == shape.key(7.0) == shape.key(Decimal(7))
    assert shape.key((7, "a")) == (shape.key(7), shape.key("a"))


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("secret", "xxxxxx"),
        (b"abc", b"\0\0\0"),
        (41, 0),
        (2.5, 0.0),
        (True, False),
        (None, None),
        (["a", ("bc", 1)], ["x", ("xx", 0)]),
        ({1, 2, 3}, {0, 1, 2}),
        (Decimal("1.5"), Decimal(0)),
        (date(2020, 2, 2), date(1970, 1, 1)),
        (datetime(2020, 2, 2, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
        (timedelta(1), timedelta()),
        (UUID(int=5), UUID(int=0)),
    ],
)
def test_a_shape_has_type_and_length_alone(value: object, left: object) -> None:
    """Nothing else of a value leaves the task."""
    found = ValueShape(SHAPE).shape(value)
    assert (type(found), found) == (type(left), left)


def test_rows_have_hashes_in_key_fields_and_shapes_elsewhere() -> None:
    """The key of one stream is none of another one."""
    shape = ValueShape(SHAPE)
    (row,) = shape.rows("default", ("word", "text"), [("ann", "ann")])
    assert row == (shape.key("ann"), "xxx")
    assert shape.rows("other", ("word",), ["ann"]) == ["xxx"]
    assert len(cast("str", shape.key("n" * 40))) == 40


def test_a_mapping_keeps_its_number_of_names() -> None:
    """Names may be data, and two of the same length are two."""
    left = ValueShape(SHAPE).shape({"ann": "x", "bob": 1})
    assert isinstance(left, dict)
    assert (len(left), sorted(map(str, left.values())), "ann" in left) == (2, ["0", "x"], False)


def _cycle() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


def _deep() -> list[object]:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


def _shared() -> list[object]:
    value: list[object] = ["x"]
    for _ in range(30):
        value = [value, value]
    return value


@pytest.mark.parametrize("make", [_cycle, _deep, _shared])
def test_a_value_without_an_end_is_refused(make: Callable[[], list[object]]) -> None:
    """Without a memo it would be written for ever."""
    with pytest.raises(UnkeptError):
        plain_pickle([make()])
