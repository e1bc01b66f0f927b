"""The same random pipelines twice: on records, and on columns in batches that are cut anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from heron_streamlet import Aggregate, Builder, Streamlet, sliding_window, tumbling_window
from heron_streamlet.columns import ColumnStreamlet, max_of, mean_of, min_of, row_count, sum_of
from heron_streamlet.windowing.window import SlidingWindow
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.random_chains import Partitions

__all__ = ["COLUMN_STEPS", "SCHEMA", "TABLES", "WINDOWS", "in_batches", "on_columns", "on_records"]

SCHEMA = pa.schema([("time", pa.int64()), ("key", pa.string()), ("value", pa.int64())])
Record = dict[str, Any]

RECORDS = st.lists(
    st.tuples(
        st.integers(-30, 60),
        st.sampled_from([None, "", "ключ", "b"]),
        st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([2**63 - 1, -(2**63)])),
    ),
    max_size=25,
).map(lambda rows: [dict(zip(SCHEMA.names, row, strict=True)) for row in rows])
TABLES = st.lists(RECORDS, min_size=1, max_size=3)
WINDOWS = [tumbling_window(10), sliding_window(10, 5), sliding_window(10, 4), sliding_window(3, 7)]


class Totals(Aggregate[Record, list[Any], Record]):
    """What `on_columns` asks Arrow for, of records."""

    def zero(self) -> list[Any]:
        return []

    def add(self, accumulator: list[Any], value: Record) -> list[Any]:
        return [*accumulator, value["value"]]

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return left + right

    def result(self, accumulator: list[Any]) -> Record:
        values = [each for each in accumulator if each is not None]
        total = sum(values) if values else None
        mean = total / len(values) if total is not None else None
        least, most = min(values, default=None), max(values, default=None)
        return {"rows": len(accumulator), "total": total, "least": least, "most": most, "mean": mean}


class Step(NamedTuple):
    """One step, on records and on columns."""

    records: Callable[[Streamlet[Record]], Streamlet[Record]]
    columns: Callable[[ColumnStreamlet], ColumnStreamlet]


def doubled(batch: pa.RecordBatch) -> dict[str, Any]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    small = pc.less(pc.abs(pc.fill_null(pc.shift_right(batch["value"], 8), 0)), 1)
    return {**columns, "value": pc.if_else(small, pc.multiply(batch["value"], 2), batch["value"])}


def small_doubled(record: Record) -> Record:
    value = record["value"]
    return record if value is None or abs(value >> 8) >= 1 else {**record, "value": value * 2}


COLUMN_STEPS: dict[str, Step] = {
    "map": Step(lambda stream: stream.map(small_doubled), lambda stream: stream.map_columns(doubled)),
    "filter": Step(
        lambda stream: stream.filter(lambda each: each["key"] != "b" if each["key"] is not None else False),
        lambda stream: stream.filter_columns(lambda batch: pc.not_equal(batch["key"], "b")),
    ),
    "select": Step(lambda stream: stream, lambda stream: stream.select("value", "key", "time")),
    "there and back": Step(lambda stream: stream, lambda stream: stream.rows().to_columns(SCHEMA, 3)),
    "union": Step(lambda stream: stream.union(stream), lambda stream: stream.union(stream)),
    "repartition": Step(lambda stream: stream.repartition(2), lambda stream: stream.repartition(2)),
}


def in_batches(records: Sequence[Record], cuts: Sequence[int]) -> list[pa.RecordBatch]:
    """The records, in batches of these sizes in turn."""
    batches, at, turn = [], 0, 0
    while at < len(records):
        size = cuts[turn % len(cuts)]
        batches.append(pa.RecordBatch.from_pylist(list(records[at : at + size]), schema=SCHEMA))
        at, turn = at + size, turn + 1
    return batches


def on_records(
    builder: Builder, tables: list[list[Record]], steps: Sequence[str], window: SlidingWindow, lag: float, tasks: int
) -> None:
    """A pipeline of records, into the collections rows, counts, totals, whole and late."""
    stream = builder.new_source(Partitions(tables)).set_num_partitions(tasks)
    stream = stream.event_time(lambda each: each["time"], lag=lag)
    for step in steps:
        stream = COLUMN_STEPS[step].records(stream)
    stream.to_sink(Collect("rows"))
    keyed = stream.key_by(lambda each: each["key"])
    keyed.count_by_key_and_window(window).to_sink(Collect("counts"))
    totals = keyed.aggregate_by_key_and_window(window, Totals())
    totals.to_sink(Collect("totals"))
    totals.late.map(lambda pair: pair[1]).to_sink(Collect("late"))
    one = stream.key_by(lambda _: 0).aggregate_by_key_and_window(window, Totals())
    one.map(lambda pair: (pair[0].window, pair[1])).to_sink(Collect("whole"))


def on_columns(
    builder: Builder,
    tables: list[list[pa.RecordBatch]],
    steps: Sequence[str],
    window: SlidingWindow,
    lag: float,
    tasks: int,
) -> None:
    """The pipeline of `on_records`, of columns."""
    stream = builder.new_columns(Partitions(tables)).set_num_partitions(tasks).event_time("time", lag=lag)
    for step in steps:
        stream = COLUMN_STEPS[step].columns(stream)
    stream.select("time", "key", "value").rows().to_sink(Collect("rows"))
    stream.count_by_key_and_window("key", window).to_sink(Collect("counts"))
    every = {
        "rows": row_count(),
        "total": sum_of("value"),
        "least": min_of("value"),
        "most": max_of("value"),
        "mean": mean_of("value"),
    }
    totals = stream.aggregate_by_key_and_window("key", window, **every)
    totals.to_sink(Collect("totals"))
    totals.late.select("time", "key", "value").rows().to_sink(Collect("late"))
    stream.aggregate_by_window(window, **every).to_sink(Collect("whole"))
