"""Columns with input that does not fit: each one clear error, and the rest goes on."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from heron.errors import TopologyError, UsageError, UserCodeError
from heron_streamlet import Builder, Items, StageContext, session_window, tumbling_window
from heron_streamlet.arrow.batches import without_rest
from heron_streamlet.arrow.gatherer import Gatherer
from heron_streamlet.arrow.times import column_times
from heron_streamlet.columns import ColumnStreamlet, ParquetFiles, row_count, sum_of
from heron_streamlet.failures import Step
from heron_streamlet.windowing.event_time import START_OF_TIME_US, EventClock
from heron_streamlet.windowing.window import Window
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.simulated_runs import run_simulated

BATCH = pa.RecordBatch.from_pydict({"time": [1, 12, 5], "key": ["a", "b", "a"], "value": [1, 2, 4]})
WINDOW = tumbling_window(10)


def begun(*batches: Any) -> tuple[Builder, ColumnStreamlet]:  # noqa: ANN401  # also wrong ones
    builder = Builder()
    return builder, builder.new_columns(Items(list(batches) or [BATCH]))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, None]), "event time of row 1 of the batch is null"),
        (pa.array([1.0, float("nan")]), "event time nan is neither a datetime"),
        (pa.array([float("inf")]), "event time inf is neither"),
        (pa.array([1_700_000_000_000]), "are these milliseconds instead of seconds?"),
        (pa.array([2**63 - 1, -(2**63)]), "beyond the years 1684 and 2255"),
        (pa.array(["now"]), "event time of the type string; give timestamps with a time zone"),
        (pa.array([datetime(2020, 1, 1)], pa.timestamp("us")), "has no time zone; use pyarrow.compute.assume_timezone"),  # noqa: DTZ001
        (pa.array([2**62], pa.timestamp("s", "UTC")), "beyond the years 1684 and 2255"),
        (pa.array([3_000_000_000]), "in the future, and would make all other elements late"),
    ],
)
def test_a_time_that_cannot_be_is_refused_and_moves_no_clock(column: pa.Array, message: str) -> None:
    clock = EventClock(5, ahead_us=1, now_s=lambda: 2_000_000_000.0)
    with pytest.raises(UserCodeError, match=re.escape(message)):
        column_times(column, clock)
    assert (clock.latest_us, clock.bound_us) == (START_OF_TIME_US, START_OF_TIME_US)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_all_units_are_the_same_times(unit: str) -> None:
    moments = [datetime(2020, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)]
    clock = EventClock(0)
    times, bounds = column_times(pa.chunked_array([pa.array(moments, pa.timestamp(unit, "UTC"))]), clock)
    assert times.tolist() == [round(each.timestamp()) * 1_000_000 for each in moments]
    assert bounds.tolist() == [START_OF_TIME_US, times[0]]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda stream: stream.map_columns(lambda _: 3), "the function returned int, not a RecordBatch"),
        (lambda stream: stream.map_columns(lambda batch: batch[:1]), "returned 1 rows for 3; behind event_time"),
        (lambda stream: stream.filter_columns(lambda _: [True]), "returned 1 values of the type bool for 3 rows"),
        (lambda stream: stream.filter_columns(lambda batch: batch["value"]), "3 values of the type int64 for 3 rows"),
        (lambda stream: stream.select("value", "price"), "no single column 'price' in the batch; its columns are"),
        (
            lambda stream: stream.rows().to_columns({"key": pa.int64(), "time": pa.int64()}),
            "is no mapping of key, time",
        ),
        (
            lambda stream: stream.select("key").rows().to_columns({"key": pa.int64()}),
            "a str does not fit the column 'key' of type int64",
        ),
    ],
)
def test_a_step_that_fails_names_operator_and_reason(
    step: Callable[[ColumnStreamlet], ColumnStreamlet], message: str
) -> None:
    builder, stream = begun()
    step(stream.event_time("time")).aggregate_by_window(WINDOW, rows=row_count()).to_sink(Collect("counts"))
    run = run_simulated(builder)
    assert message in "\n".join(run.errors)
    assert "test_column_steps.py" in "\n".join(run.errors)
    assert run["counts"] == []


def test_records_that_fit_go_on_without_those_that_do_not() -> None:
    """A batch of records fails only in the records that are wrong, which the error shows."""
    builder = Builder()
    records = builder.new_source(Items([{"key": 1}, {"key": "x"}, {"key": 2}, ("3",), (4,), 5])).event_time(lambda _: 1)
    columns = records.to_columns({"key": pa.int64()})
    columns.aggregate_by_window(WINDOW, total=sum_of("key")).to_sink(Collect("totals"))
    run = run_simulated(builder)
    assert run["totals"] == [(Window(0, 10_000_000), {"total": 7})]
    assert "to_columns: a int is no mapping of key" in "\n".join(run.errors)


def test_a_dead_letter_has_the_value_only_among_its_values() -> None:
    """Arrow's error has the value in its text, and a trace is shown without the values."""
    gatherer = Gatherer(Step("columns", 1, "clicks.py:4", "dead_letter"), pa.schema({"key": pa.int64()}), 9, print)
    gatherer.add(("ada-lovelace",), None, None)
    failed = gatherer.flush()
    ((letter,),) = [each.letters for each in failed]
    assert letter.values == [{"key": "ada-lovelace"}]
    shown = "".join(traceback.format_exception(failed[0]))
    assert not [text for text in (letter.error, letter.trace, shown) if "ada-lovelace" in text]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda _, stream: stream.select(), "select: () are not the names of columns"),
        (lambda _, stream: stream.select("a", "a"), "('a', 'a') are not the names of columns, each once"),
        (lambda _, stream: stream.map_columns(3), "map_columns: 3 cannot be called"),
        (lambda _, stream: stream.count_by_key_and_window("key", session_window(3)), "is not a window for it"),
        (lambda _, stream: stream.count_by_key_and_window("key", WINDOW.by_clock()), "windows by the clock have no"),
        (lambda _, stream: stream.aggregate_by_key_and_window("key", WINDOW), "give aggregates by name"),
        (lambda _, stream: stream.aggregate_by_key_and_window("key", WINDOW, total="value"), "give aggregates by name"),
        (lambda _, stream: stream.union(stream.rows()), "of records is not a stream of columns, as the left one"),
        (lambda _, stream: stream.rows().union(stream), "of columns is not a stream of records, as the left one"),
        (lambda _, stream: stream.rows().to_columns(3), "to_columns: 3 is neither a pyarrow.Schema nor a mapping"),
        (lambda _, stream: stream.rows().to_columns({}), "the schema has no field, or one name twice"),
        (lambda _, stream: stream.rows().to_columns({"a": pa.int8()}, 0), "rows=0 is not an integer from 1"),
        (lambda _, stream: stream.to_sink(print), "not a Sink; for a function use consume"),
        (lambda builder, _: builder.new_columns([BATCH]), "is no source"),
        (
            lambda builder, stream: (stream.count_by_key_and_window("key", WINDOW).log(), builder.graph()),
            "windows of columns need event time, which 'source-1' has not",
        ),
        (
            lambda builder, stream: (
                stream.rows().to_columns({"time": pa.int64()}).event_time("time").log(),
                builder.graph(),
            ),
            "event_time after 'tocolumns-1' cannot know the order of the source",
        ),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_written(
    wrong: Callable[[Builder, ColumnStreamlet], object], message: str
) -> None:
    builder, stream = begun()
    with pytest.raises(TopologyError, match=re.escape(message)):
        wrong(builder, stream)


def test_wrong_arguments_of_sources_and_aggregates(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rows=0 is not an integer from 1 to 1048576"):
        ParquetFiles("*", rows=0)
    with pytest.raises(UsageError, match="no file matches"):
        ParquetFiles(tmp_path / "*.parquet").partitions(1)
    parquet.write_table(pa.table({"key": [1]}), tmp_path / "one.parquet")
    with pytest.raises(UsageError, match="has no column 'price'; it has key"):
        ParquetFiles(tmp_path / "*.parquet", ["price"]).partitions(1)
    wrong: Any = 3
    with pytest.raises(UsageError, match=r"sum_of\(3\): give the name of a column"):
        sum_of(wrong)


def test_a_source_gives_batches_tables_or_mappings() -> None:
    """Anything else costs the task, because nothing behind it could be right."""
    table = pa.table({"key": pa.chunked_array([["x"], ["y"]])})
    builder, stream = begun(table, {"key": ["z"]}, table.schema.empty_table(), {"key": table["key"]})
    stream.rows().map(lambda row: row["key"]).to_sink(Collect("keys"))
    assert run_simulated(builder)["keys"] == ["x", "x", "y", "y", "z"]


def test_parquet_is_read_again_from_each_position(tmp_path: Path) -> None:
    """In row groups that batches do not divide evenly."""
    parquet.write_table(pa.table({"n": range(25), "other": range(25)}), tmp_path / "n.parquet", row_group_size=10)
    source = ParquetFiles(tmp_path / "*.parquet", ["n"], rows=4)
    (path,) = source.partitions(1)
    context = StageContext("source")
    reader, rests = source.open(path, None, context), []
    while True:
        rests.append((reader.position, batch_values(reader.read(1))))
        if not rests[-1][1]:
            break
    assert list(chain(*[values for _, values in rests])) == list(range(25))
    assert max(len(values) for _, values in rests) == 4
    for number, (position, _) in enumerate(rests):
        again, values = source.open(path, position, context), []
        while batch := again.read(1):
            values += batch_values(batch)
        assert values == list(chain(*[each for _, each in rests[number:]]))
        again.close()


def batch_values(batches: Any) -> list[int]:  # noqa: ANN401
    return [value for batch in batches or () for value in batch["n"].to_pylist()]


def test_a_mask_of_numpy_and_nulls_in_a_mask() -> None:
    builder, stream = begun()
    kept = stream.filter_columns(lambda batch: batch["value"].to_numpy() > 1)
    kept.filter_columns(lambda batch: pc.if_else(pc.equal(batch["value"], 2), None, True)).rows().to_sink(
        Collect("rows")
    )
    assert run_simulated(builder)["rows"] == [{"time": 5, "key": "a", "value": 4}]


_IN_THEMSELVES = """
from heron_streamlet.arrow.batches import as_batch
from heron_streamlet.arrow.steps import FilterRows
from heron_streamlet.arrow.times import column_times
from heron_streamlet.windowing.event_time import EventClock

inside = []
inside.append(inside)
batch = as_batch({"n": iter([1, 2])}, "it gave")
for step in (
    lambda: as_batch({"n": [inside, 1]}, "it gave"),
    lambda: FilterRows(lambda _: [inside, True])(batch, None, None),
    lambda: column_times([inside, 1], EventClock(5, ahead_us=1, now_s=lambda: 0.0)),
):
    try:
        step()
    except ValueError as error:
        print("contains itself" in str(error))
print(batch.to_pydict() == {"n": [1, 2]})
"""


def test_columns_of_functions_that_contain_themselves_are_refused() -> None:
    """Arrow would end the process of the task again and again, so another one tries them."""
    program = [sys.executable, "-c", _IN_THEMSELVES]
    found = subprocess.run(program, check=False, capture_output=True, text=True, timeout=240)
    assert (found.returncode, found.stdout.split()) == (0, ["True"] * 4), found.stderr


def test_a_slice_leaves_its_stage_without_the_rest() -> None:
    """A pickled slice has all buffers of its batch: a thousand slices would send the batch a thousand times."""
    large = pa.RecordBatch.from_pydict({"text": pa.array(["word"] * 50_000).dictionary_encode(), "n": range(50_000)})
    builder, stream = begun(large)
    stream.map_columns(lambda batch: batch.slice(7, 3)).repartition(2).to_sink(Collect("batches"))
    (batch,) = run_simulated(builder)["batches"]
    assert batch.to_pylist() == [{"text": "word", "n": number} for number in (7, 8, 9)]
    assert len(pickle.dumps(batch)) < 5_000
    assert without_rest(BATCH) is BATCH
