"""Levels of stages mean what the reference says: in one batch, in many, and when attempts fail in between."""

from __future__ import annotations

import operator
import random
import re
import tempfile
import threading
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from heron.errors import ConfigError, UserCodeError
from heron_engine_spark.batch_log import BatchLog, BatchRecord
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.data_source import PipelineSource, write_plan
from heron_engine_spark.parcels import SlotVersion, unpacked
from heron_engine_spark.slot_states import SlotStates
from heron_engine_spark.source_task import ReadPin, read_partition
from heron_engine_spark.spark_host import SparkHost
from heron_streamlet import (
    Builder,
    Items,
    Streamlet,
    TextFiles,
    TextFolder,
    session_window,
    sliding_window,
    tumbling_window,
)
from heron_streamlet.plan.graph import Graph
from heron_streamlet.plan.operators import Log
from heron_streamlet.runtime.keyed_stage import KeyedStage
from heron_streamlet.runtime.stage_code import StageCode
from heron_streamlet.windowing.window import SessionWindow, SlidingWindow
from heron_testing.pipelines.level_runs import LevelRun, plan_of
from heron_testing.pipelines.random_chains import CHAINS, RECORDS, STATEFUL, WINDOWED, chained, timed_source
from heron_testing.pipelines.reference_engine import results_of

CUTS = st.sampled_from([None, 1, 2, 5, 100])
"""Rows that a batch reads of each partition; None for one batch without saved state."""


def logged(stream: Streamlet[Any], name: str) -> None:
    """Log elements with the name of their stream."""
    stream.map(lambda each: (name, each)).log()


def expected(graph: Graph) -> list[str]:
    """What the reference logs."""
    values = results_of(graph)
    return sorted(str(each) for node in graph.nodes if isinstance(node.operator, Log) for each in values[node.name])


def check(graph: Graph, cut: int | None, slots: int, seed: int) -> LevelRun:
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(graph, slots, uuid.uuid4().hex, cut)
        run = LevelRun(plan, Path(folder), random.Random(seed) if cut is not None else None)
        assert run.run() == expected(graph)
    assert run.failures == []
    return run


@settings(max_examples=60, deadline=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=3),
    steps=CHAINS,
    lag=st.sampled_from([0, 4, 100]),
    cut=CUTS,
    slots=st.integers(1, 4),
    seed=st.integers(0, 5),
)
def test_a_chain_means_the_same_however_it_is_cut(
    inputs: list[list[Any]], steps: list[tuple[str, int]], lag: float, cut: int | None, slots: int, seed: int
) -> None:
    """Batches, slots and failed attempts change when results appear, and never what they are."""
    builder = Builder()
    logged(chained(timed_source(builder, inputs, lag, 1), steps), "results")
    check(builder.graph(), cut, slots, seed)


@pytest.mark.parametrize(
    "window",
    [session_window(5), tumbling_window(10).allow_lateness(15), sliding_window(10, 5).allow_lateness(5)],
    ids=str,
)
def test_windows_behind_windows_that_close_late_wait_for_them(window: SessionWindow | SlidingWindow) -> None:
    """A batch for each element: the watermark is behind the end of the second window before the first one closes."""
    builder = Builder()
    times = (1, 2, 11, 12, 20, 21, 30, 50, 51, 56, 80, 120)
    elements = timed_source(builder, [[(time, key, 1) for time in times for key in "ab"[: 1 + time % 2]]], 0, 1)
    first = elements.reduce_by_key_and_window(window, operator.add).map(lambda each: ("all", each[1]))
    for second in (tumbling_window(10), session_window(3)):
        logged(first.reduce_by_key_and_window(second, operator.add), str(second))
    joined = first.join(first.clone(1)[0], tumbling_window(10), operator.add).map(lambda each: ("all", each[1]))
    logged(joined.count_by_key_and_window(tumbling_window(10)), "third")
    assert check(builder.graph(), 1, 2, 0).late == 0


@pytest.mark.parametrize("name", ["tumbling", "sliding", "session", "join"])
@settings(max_examples=15, deadline=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=3),
    lag=st.sampled_from([0, 4]),
    cut=CUTS,
    slots=st.integers(1, 3),
)
def test_late_elements_are_the_same_however_the_input_is_cut(
    name: str, inputs: list[list[Any]], lag: float, cut: int | None, slots: int
) -> None:
    """An element is late by the order of its source partition alone."""
    builder = Builder()
    results: Any = STATEFUL[name](timed_source(builder, inputs, lag, 1))
    logged(results.late, "late")
    logged(results, "results")
    again = results.late.count_by_key_and_window(tumbling_window(20))
    logged(again, "late counts")
    logged(again.late, "late again")
    check(builder.graph(), cut, slots, 1)


@settings(max_examples=30, deadline=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=2),
    steps=st.lists(st.tuples(st.sampled_from(WINDOWED), st.just(1)), min_size=2, max_size=3),
    lag=st.sampled_from([0, 4]),
    cut=st.sampled_from([1, 2]),
)
def test_windows_of_windows_miss_nothing(
    inputs: list[list[Any]], steps: list[tuple[str, int]], lag: float, cut: int
) -> None:
    """A session, and a window with a lateness, give results that are older than the watermark which closed them."""
    builder = Builder()
    logged(chained(timed_source(builder, inputs, lag, 1), steps), "results")
    check(builder.graph(), cut, 2, 1)


@pytest.mark.parametrize("cut", [None, 1])
def test_streams_meet_themselves(cut: int | None) -> None:
    """In a union, in a join, and with two event times."""
    builder = Builder()
    source = builder.new_source(Items([(5, "a", 100), (1, "b", 3), (9, "a", 50)]))
    logged(source.union(source), "union")
    timed = source.event_time(operator.itemgetter(0)).key_by(operator.itemgetter(1))
    logged(timed.join(timed, tumbling_window(10), lambda one, other: (one, other)), "join")
    other = source.event_time(operator.itemgetter(2)).key_by(operator.itemgetter(1), lambda _: None)
    logged(other.reduce_by_key_and_window(tumbling_window(7), lambda *_: None), "other time")
    check(builder.graph(), cut, 3, 1)


@pytest.mark.parametrize("cut", [None, 2])
def test_a_function_that_fails_costs_one_element(cut: int | None, tmp_path: Path) -> None:
    """As on Heron: it is counted and shown, with operator and line, and the others go on."""
    builder = Builder()
    numbers = builder.new_source(Items([1, 2, 0, 4, 0]))
    numbers.map(lambda number: 8 // number).set_name("divide").key_by(lambda each: each).count_by_key().log()
    run = LevelRun(plan_of(builder.graph(), 2, f"failing {cut}", cut), tmp_path)
    assert run.run() == ["(2, 1)", "(4, 1)", "(8, 1)"]
    assert {each.message for each in run.failures} == {run.failures[0].message}
    assert "'divide'" in run.failures[0].message
    assert "test_levels.py:" in run.failures[0].message
    assert "ZeroDivisionError" in run.failures[0].trace


@pytest.mark.parametrize("cut", [None, 2])
def test_an_element_that_cannot_travel_costs_itself(cut: int | None, tmp_path: Path) -> None:
    """As on Heron: the others of its parcel reach the next stage, and the error names the operator that gave it."""
    builder = Builder()
    numbers = builder.new_source(Items([1, 2, 3]))
    numbers.map(lambda number: threading.Lock() if number == 2 else number).set_name("lock").repartition(2).log()
    run = LevelRun(plan_of(builder.graph(), 2, f"unsent {cut}", cut), tmp_path)
    assert run.run() == ["1", "3"]
    (failure,) = run.failures
    assert re.search(
        r"operator 'lock' \(test_levels.py:\d+\): TypeError: cannot pickle '_thread.lock'", failure.message
    )


def test_results_that_fail_cost_one_window(tmp_path: Path) -> None:
    """The other windows are shown."""
    builder = Builder()
    timed = builder.new_source(Items([(1, "a"), (2, "b"), (30, "c")])).event_time(operator.itemgetter(0))
    pairs = timed.key_by(operator.itemgetter(1))
    pairs.join(pairs, tumbling_window(10), lambda one, _: 1 // (one[0] - 2)).map(lambda each: each[1]).log()
    run = LevelRun(plan_of(builder.graph(), 2, "failing window", None), tmp_path)
    assert run.run() == ["-1", "0"]
    assert len(run.failures) == 1


def test_a_partition_function_chooses_the_slot(tmp_path: Path) -> None:
    """A partition that does not exist fails its element."""
    builder = Builder()
    numbers = builder.new_source(Items(range(6)))
    numbers.repartition(3, lambda number, partitions: number % (partitions + 1)).log()
    run = LevelRun(plan_of(builder.graph(), 2, "partitions", None), tmp_path)
    assert run.run() == ["0", "1", "2", "4", "5"]
    assert "the partition 3 is not an integer from 0 to 2" in run.failures[0].message


def test_state_is_read_by_another_worker(tmp_path: Path) -> None:
    """Nothing that a worker keeps in memory is needed: files and records have everything."""
    builder = Builder()
    builder.new_source(Items([("a", number) for number in range(40)] + [("b", 1)])).count_by_key().log()
    log = BatchLog(CheckpointFolder(str(tmp_path)))
    while not (record := log.newest()).ended:
        LevelRun(plan_of(builder.graph(), 2, f"other worker {record.number}", 1), tmp_path).batch(record)
    assert max(len(version.files) for version in record.versions.values()) <= 10
    assert sum(version.keys for version in record.versions.values()) == 2
    states = {name for version in record.versions.values() for name in version.files}
    assert states <= set(log.folder.names("state"))


def test_text_files_reach_a_folder_once(tmp_path: Path) -> None:
    """Each slot writes a file for each batch; what attempts that failed have left is discarded."""
    (tmp_path / "in").mkdir()
    for name in ("one", "two"):
        (tmp_path / "in" / f"{name}.txt").write_text("".join(f"{name} {number}\n" for number in range(20)))
    builder = Builder()
    lines = builder.new_source(TextFiles(tmp_path / "in" / "*.txt"))
    lines.repartition(2).to_sink(TextFolder(tmp_path / "out"))
    plan = plan_of(builder.graph(), 2, "folder", 3)
    run = LevelRun(plan, tmp_path / "checkpoint", random.Random(3))
    run.run()
    written = (tmp_path / "out").glob("part-*")  # the driver would commit the last ones
    lines_written = sorted(line for path in written for line in path.read_text().splitlines())
    assert lines_written == sorted(f"{name} {number}" for name in ("one", "two") for number in range(20))


def test_a_second_attempt_reads_as_far_as_the_first(tmp_path: Path) -> None:
    """Spark repeats a task when its output is lost; others may have used that output."""
    file = tmp_path / "log.txt"
    file.write_text("one\ntwo\n")
    builder = Builder()
    lines = builder.new_source(TextFiles(file)).event_time(lambda line: float(len(line)), lag=0)
    lines.key_by(lambda line: line).count_by_key_and_window(tumbling_window(10)).log()
    plan = plan_of(builder.graph(), 2, "first attempt", 100)
    pin = ReadPin(CheckpointFolder(str(tmp_path / "checkpoint")), 1, plan.partitions[0])
    first = list(read_partition(plan, 0, None, pin))
    file.write_text("one\ntwo\nthree\n")
    second = list(read_partition(plan_of(builder.graph(), 2, "another worker", 100), 0, None, pin))
    assert second == first
    file.write_text("one\n")
    with pytest.raises(UserCodeError, match=r"source 'source-1'.*: 2 elements were read, and 1 when it was read again"):
        list(read_partition(plan_of(builder.graph(), 2, "a third", 100), 0, None, pin))


def files_of(pattern: Path) -> Graph:
    """Lines of files, as they are."""
    builder = Builder()
    logged(builder.new_source(TextFiles(pattern)), "lines")
    return builder.graph()


def test_a_run_with_another_file_ignores_how_far_other_files_were_read(tmp_path: Path) -> None:
    """A batch was interrupted, and the next run finds a file that is before the first one."""
    (tmp_path / "b.txt").write_text("b1\nb2\nb3\n")
    plan = replace(plan_of(files_of(tmp_path / "*.txt"), 1, "former", 1), saves=False)  # no worker keeps its file open
    pin = ReadPin(CheckpointFolder(str(tmp_path / "checkpoint")), 1, plan.partitions[0])
    assert list(read_partition(plan, 0, None, pin))
    (tmp_path / "a.txt").write_text("a1 is longer\na2\na3\n")
    run = LevelRun(plan_of(files_of(tmp_path / "*.txt"), 1, uuid.uuid4().hex, 1), tmp_path / "checkpoint")
    lines = ["a1 is longer", "a2", "a3", "b1", "b2", "b3"]
    assert run.run() == [str(("lines", line)) for line in lines]


def test_a_checkpoint_at_the_end_of_its_input_refuses_new_files(tmp_path: Path) -> None:
    """Its windows are closed, and nothing would be read."""
    (tmp_path / "a.txt").write_text("a\n")
    run = LevelRun(plan_of(files_of(tmp_path / "*.txt"), 1, uuid.uuid4().hex, 1), tmp_path / "checkpoint")
    run.log.begin(run.plan)
    run.run()
    assert run.log.check(run.plan)
    (tmp_path / "b.txt").write_text("b\n")
    plan = plan_of(files_of(tmp_path / "*.txt"), 1, uuid.uuid4().hex, 1)
    with pytest.raises(ConfigError, match=r"'source-1' has the new partition '.*b\.txt'; use a new folder"):
        run.log.check(plan)


def test_available_now_reads_what_came_after_the_former_run(tmp_path: Path) -> None:
    """Runs end with a batch that has read nothing; the next run begins behind it."""
    graph = files_of_one(tmp_path)
    write_plan(plan_of(graph, 1, "run", 1), tmp_path / "plan")
    BatchLog(CheckpointFolder(str(tmp_path / "checkpoint"))).write(BatchRecord(2, rows=0))
    options = {"plan": str(tmp_path / "plan"), "checkpoint": str(tmp_path / "checkpoint"), "idle_s": "0.001"}
    reader: Any = PipelineSource(options).streamReader(StructType())
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset({"batch": 2}, ReadAllAvailable()) == {"batch": 3}
    BatchLog(CheckpointFolder(str(tmp_path / "checkpoint"))).write(BatchRecord(3, rows=0))
    assert reader.latestOffset({"batch": 3}, ReadAllAvailable()) == {"batch": 3}


def files_of_one(folder: Path) -> Graph:
    (folder / "one.txt").write_text("one\n")
    return files_of(folder / "one.txt")


def test_an_element_that_a_window_misses_is_late_for_that_window_alone() -> None:
    """The stage also has an outlet for what the window behind it misses."""
    builder = Builder()
    elements = timed_source(builder, [[(1, "a", 1)]], 0, 1)
    first = elements.reduce_by_key_and_window(tumbling_window(10), operator.add)
    second = first.map(lambda each: ("all", each[1])).reduce_by_key_and_window(tumbling_window(20), operator.add)
    logged(first.late, "first")
    logged(second.late, "second")
    plan = plan_of(builder.graph(), 1, "run")
    stage = next(each for each in plan.stages if each.head.name == "reducebykeyandwindow-1")
    host = SparkHost(plan, stage, 0)
    keyed = KeyedStage(host.keyed_operator(), StageCode(stage, host), SlotStates(None, SlotVersion()))
    keyed.reach(60_000_000)
    keyed.add("a", (0, 1))
    targets = [unpacked(body).target for _, _, body in host.parcels(1)]
    assert [plan.stage(target).head.name for target in targets] == ["late-1"]
