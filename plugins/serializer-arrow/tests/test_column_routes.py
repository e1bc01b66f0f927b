"""Batches and rows take the same ways: the same key reaches the same task, whatever form it is emitted in."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.api.context import TopologyContext
from heron.api.definition import GroupingDefinition, GroupingKind, InputDefinition
from heron.api.stream import ICustomGrouping
from heron.errors import EmitError
from heron.instance.output.column_routes import ColumnRoutes
from heron.instance.output.stream_routes import StreamRoutes, routes_of
from heron_serializer_arrow import ArrowSerializer
from heron_testing.builders import bolt, plan_index, spout, stream, subscription, topology

TASKS = (11, 12, 13)
SERIALIZER = ArrowSerializer.open({})

_datetimes = st.datetimes(timezones=st.sampled_from([datetime.UTC]))
VALUES: Sequence[tuple[pa.DataType, st.SearchStrategy[object]]] = (
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), st.text(st.characters(exclude_categories=["Cs"]))),
    (pa.large_string(), st.text(st.characters(exclude_categories=["Cs"]))),
    (pa.binary(), st.binary()),
    (pa.decimal128(20, 3), st.decimals(-1000, 1000, places=3)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "UTC"), _datetimes),
    (pa.timestamp("ms"), st.datetimes().map(lambda each: each.replace(microsecond=0))),
)


class ByLength(ICustomGrouping):
    """Chooses by the length of the key: no task for an empty one, two for a long one."""

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Nothing to prepare."""

    def choose_tasks(self, values: tuple[object, ...]) -> list[int]:
        """Tasks for one row."""
        length = len(str(values[0])) if values[0] is not None else 0
        return [] if not length else [TASKS[length % 3]] if length < 5 else [TASKS[0], TASKS[1]]


class InColumns(ByLength):
    """Chooses for all rows at once."""

    def __init__(self, tasks: object) -> None:
        self.tasks = tasks

    def choose_columns(self, batch: pa.RecordBatch) -> Sequence[int] | None:
        """What the test wants."""
        return self.tasks  # type: ignore[return-value]  # also wrong ones


def routes(grouping: GroupingDefinition, custom: ICustomGrouping | None = None) -> StreamRoutes:
    """The routes of task 1 to the tasks of one consumer."""

    def found(_consumer: str, _subscription: InputDefinition) -> ICustomGrouping:
        assert custom is not None
        return custom

    definition = topology(
        spout("spout", stream("key", "n")), bolt("bolt", subscription("spout", grouping), parallelism=len(TASKS))
    )
    index = plan_index(definition, {"spout": [1], "bolt": TASKS})
    return routes_of(index, 1, definition.component("spout").outputs[0], found)


def in_columns(given: StreamRoutes, batch: pa.RecordBatch) -> dict[int, list[int]]:
    """The row numbers that each task gets of a batch; the parts must have the values of their rows."""
    found: dict[int, list[int]] = {}
    for part in ColumnRoutes(given, SERIALIZER).parts(batch, None):
        numbers = list(map(int, part.numbers))
        assert str(part.batch.to_pylist()) == str([batch.slice(each, 1).to_pylist()[0] for each in numbers])
        for task in part.tasks:
            found.setdefault(task, []).extend(numbers)
    return found


def in_rows(given: StreamRoutes, batch: pa.RecordBatch) -> dict[int, list[int]]:
    """The same for rows, as the generated emit places them."""
    rows = list(zip(*SERIALIZER.to_columns(batch), strict=True))
    for edge in given.keyed:
        for row in rows:
            key = row[0] if len(edge.positions) == 1 else tuple(row[at] for at in edge.positions)
            assert edge.picks is not None
            edge.picks.append(edge.memo[key])
    for choose, picks in given.choosers:
        picks.extend(choose(row) for row in rows)
    found: dict[int, list[int]] = {task: list(range(len(rows))) for task in given.whole}
    for splitter in given.splitters:
        for task, numbers in splitter.split(list(range(len(rows)))):
            found[task] = list(numbers)  # type: ignore[arg-type]  # numbers
    return found


@pytest.mark.parametrize("kind", range(len(VALUES)), ids=[str(kind) for kind, _ in VALUES])
@settings(max_examples=40)
@given(data=st.data())
def test_a_key_reaches_the_same_task_in_rows_and_columns(kind: int, data: st.DataObject) -> None:
    """Of any type, with None and NaN, sliced, and as a dictionary with unused and repeated entries."""
    arrow_type, strategy = VALUES[kind]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=30))
    keys = pa.array(values, arrow_type)
    if data.draw(st.booleans()):
        codes = data.draw(st.lists(st.none() | st.integers(0, len(values) - 1), min_size=1, max_size=30))
        keys = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), keys)
    start = data.draw(st.integers(0, len(keys) - 1))
    batch = pa.record_batch({"key": keys, "n": pa.array(range(len(keys)))}).slice(start)
    fields = data.draw(st.sampled_from([("key",), ("key", "n")]))
    grouping = GroupingDefinition(GroupingKind.FIELDS, fields)
    assert in_columns(routes(grouping), batch) == in_rows(routes(grouping), batch)


@given(keys=st.lists(st.none() | st.text("abc", max_size=7), min_size=1, max_size=50))
def test_a_custom_grouping_chooses_for_columns_as_for_rows(keys: list[str | None]) -> None:
    """Row by row if it has no method for columns; a row may go to no task or to several."""
    batch = pa.record_batch({"key": pa.array(keys, pa.string()), "n": pa.array(range(len(keys)))})
    grouping = GroupingDefinition(GroupingKind.CUSTOM, entry="m:ByLength")
    assert in_columns(routes(grouping, ByLength()), batch) == in_rows(routes(grouping, ByLength()), batch)


def test_a_custom_grouping_may_choose_for_all_rows_at_once() -> None:
    """With an array of task ids, one for each row."""
    batch = pa.record_batch({"key": ["a", "b", "c"], "n": [1, 2, 3]})
    grouping = GroupingDefinition(GroupingKind.CUSTOM, entry="m:InColumns")
    assert in_columns(routes(grouping, InColumns(np.array([12, 11, 12]))), batch) == {11: [1], 12: [0, 2]}
    for wrong, message in (
        ([11, 12], r"InColumns: choose_columns returned \(2,\) task ids for 3 rows"),
        ([11, 12, 99], r"InColumns chose tasks \[99\], which are not of 'bolt'"),
        (["a", "b", "c"], r"InColumns: choose_columns returned a list, which is no array of task ids"),
    ):
        with pytest.raises(EmitError, match=message):
            in_columns(routes(grouping, InColumns(wrong)), batch)


@given(sizes=st.lists(st.one_of(st.integers(0, 50), st.sampled_from([767, 768, 2000])), max_size=8))
def test_shuffle_gives_each_row_to_one_task_in_slices(sizes: list[int]) -> None:
    """Large batches are divided evenly; small ones go to the tasks in turn."""
    given_routes = routes(GroupingDefinition(GroupingKind.SHUFFLE))
    received: Counter[int] = Counter()
    for size in sizes:
        found = in_columns(given_routes, pa.record_batch({"key": pa.array(range(size)), "n": pa.array(range(size))}))
        assert sorted(number for numbers in found.values() for number in numbers) == list(range(size))
        received.update({task: len(numbers) for task, numbers in found.items()})
        if size >= 768:
            assert max(map(len, found.values())) - min(map(len, found.values())) <= 1


@given(st.lists(st.lists(st.sampled_from(["hot"] * 8 + ["a", "b", "c", None]), min_size=1), min_size=1, max_size=5))
def test_partial_key_gives_each_key_at_most_two_tasks_and_balances_them(batches: list[list[str | None]]) -> None:
    """The two tasks of a key are those of rows, and the rows of a batch bring their loads together."""
    grouping = GroupingDefinition(GroupingKind.PARTIAL_KEY, ("key",))
    given_routes, of_rows = routes(grouping), routes(grouping)
    pairs = {key: set(of_rows.keyed[0].memo._pair(key)) for key in ("hot", "a", "b", "c", None)}  # type: ignore[union-attr]
    for keys in batches:
        batch = pa.record_batch({"key": pa.array(keys, pa.string()), "n": pa.array(range(len(keys)))})
        found = in_columns(given_routes, batch)
        assert sorted(number for numbers in found.values() for number in numbers) == list(range(len(keys)))
        for task, numbers in found.items():
            assert all(task in pairs[keys[number]] for number in numbers)
    everything = pa.record_batch({"key": ["hot"] * 999, "n": range(999)})
    found = in_columns(routes(grouping), everything)
    assert sorted(map(len, found.values())) == [499, 500]
