"""Levels of stages mean what the reference says: in one batch, in many, and when attempts fail in between."""

from __future__ import annotations

import operator
import random
import tempfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import UserCodeError
from heron_engine_spark.batch_log import BatchLog
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.source_task import ReadPin, read_partition
from heron_streamlet import Builder, Items, Streamlet, TextFiles, TextFolder, tumbling_window
from heron_streamlet.graph import Graph
from heron_streamlet.operators import Log
from pipelines.level_runs import LevelRun, plan_of
from pipelines.random_chains import CHAINS, RECORDS, STATEFUL, chained, timed_source
from pipelines.reference_engine import results_of

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


@settings(max_examples=120, deadline=None)
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


@pytest.mark.parametrize("name", ["tumbling", "sliding", "session", "join"])
@settings(max_examples=30, deadline=None)
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
    pin = ReadPin(CheckpointFolder(str(tmp_path / "checkpoint")), 1, 0)
    first = list(read_partition(plan_of(builder.graph(), 2, "first attempt", 100), 0, None, pin))
    file.write_text("one\ntwo\nthree\n")
    second = list(read_partition(plan_of(builder.graph(), 2, "another worker", 100), 0, None, pin))
    assert second == first
    file.write_text("one\n")
    with pytest.raises(UserCodeError, match=r"source 'source-1'.*: 2 elements were read, and 1 when it was read again"):
        list(read_partition(plan_of(builder.graph(), 2, "a third", 100), 0, None, pin))
