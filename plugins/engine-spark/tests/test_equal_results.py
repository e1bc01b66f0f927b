"""Spark itself gives the results of the reference: as one batch, and as a query cut into micro-batches."""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException

from heron.errors import ConfigError, UsageError
from heron_engine_spark.batch_log import BatchLog
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.driver_spout import spark_location
from heron_engine_spark.options import BatchOptions
from heron_engine_spark.pipeline_job import BatchResult, PipelineJob
from heron_engine_spark.session import start_session
from heron_spark_kit.java import check_java
from heron_streamlet import Builder, Items, TextFiles, TextFolder, count_window
from heron_streamlet.plan.graph import Graph
from heron_streamlet.plan.operators import Log
from heron_testing.pipelines.level_runs import plan_of
from heron_testing.pipelines.random_chains import CHAINS, RECORDS, STATEFUL, chained, timed_source
from heron_testing.pipelines.reference_engine import results_of
from heron_testing_servers.absence import not_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.servers,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

PHASES = (Phase.explicit, Phase.generate)
"""A failure is made small by test_levels.py, which needs no seconds for each example."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all cases."""
    try:
        check_java()
    except UsageError as error:
        not_here(str(error))
    with pytest.MonkeyPatch.context() as patched:
        for name in ("SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON"):
            patched.delenv(name, raising=False)
        patched.setattr(tempfile, "tempdir", None)
        options = BatchOptions(master="local[2]", conf={"spark.ui.enabled": False})
        session = start_session("tests", options, tmp_path_factory.mktemp("spark"))
        yield session
        session.stop()


class Lines:
    """What a job reports."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.results: list[BatchResult] = []
        self.letters: list[bytes] = []

    def show(self, line: str) -> None:
        """`Listener.show`."""
        self.lines.append(line)

    def keep(self, letters: Sequence[bytes]) -> None:
        """`Listener.keep`."""
        self.letters += letters

    def done(self, result: BatchResult) -> None:
        """`Listener.done`."""
        self.results.append(result)


def expected(graph: Graph) -> list[str]:
    """What the reference logs."""
    values = results_of(graph)
    return sorted(str(each) for node in graph.nodes if isinstance(node.operator, Log) for each in values[node.name])


def run(session: SparkSession, graph: Graph, folder: Path, cut: int | None, slots: int = 2) -> Lines:
    """Run a pipeline to its end.

    `cut` is the number of rows that a micro-batch reads of each partition; None is one batch.
    """
    plan, heard = plan_of(graph, slots, uuid.uuid4().hex, cut), Lines()
    job = PipelineJob(session, plan, BatchLog(CheckpointFolder(str(folder))), folder, heard)
    if cut is None:
        job.run_batch()
        return heard
    stream = job.stream(0.01).writeStream.foreachBatch(lambda read, number: job.process(read, number + 1))
    query = stream.option("checkpointLocation", spark_location(str(folder))).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert job.ended.is_set()
    return heard


def check(session: SparkSession, graph: Graph, cut: int | None, slots: int = 2) -> None:
    with tempfile.TemporaryDirectory() as folder:
        heard = run(session, graph, Path(folder), cut, slots)
    assert sorted(heard.lines) == expected(graph)
    assert sum(each.failed for each in heard.results) == 0


@settings(max_examples=25, deadline=None, phases=PHASES, derandomize=True, database=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=3),
    steps=CHAINS,
    lag=st.sampled_from([0, 4, 100]),
    slots=st.integers(1, 3),
)
def test_a_batch_gives_the_results_of_the_reference(
    session: SparkSession, inputs: list[list[Any]], steps: list[tuple[str, int]], lag: float, slots: int
) -> None:
    """Random chains over late, equal and unordered input."""
    builder = Builder()
    chained(timed_source(builder, inputs, lag, 1), steps).log()
    check(session, builder.graph(), None, slots)


@settings(max_examples=8, deadline=None, phases=PHASES, derandomize=True, database=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=3),
    steps=CHAINS,
    lag=st.sampled_from([0, 4, 100]),
    cut=st.sampled_from([6, 11, 100]),
)
def test_a_query_gives_the_results_of_the_reference(
    session: SparkSession, inputs: list[list[Any]], steps: list[tuple[str, int]], lag: float, cut: int
) -> None:
    """The same, in random micro-batches."""
    builder = Builder()
    chained(timed_source(builder, inputs, lag, 1), steps).log()
    check(session, builder.graph(), cut)


def test_every_operator_at_once(session: SparkSession) -> None:
    """Each in a branch of its own, with its late elements: the levels of a wide graph are one job."""
    records = [(time, key, value) for time, value in ((0, 1), (12, 2), (3, -1), (25, 0), (1, 3)) for key in (None, "я")]
    for cut in (None, 3):
        builder = Builder()
        timed = timed_source(builder, [records, records[::-1]], 4, 1)
        for name, step in STATEFUL.items():
            results: Any = step(timed)
            results.map(lambda each, name=name: (name, each)).log()
            if name in ("tumbling", "sliding", "session", "join"):
                results.late.map(lambda each, name=name: (f"late {name}", each)).log()
        check(session, builder.graph(), cut)


def test_a_query_goes_on_where_it_was_stopped(session: SparkSession, tmp_path: Path) -> None:
    """Another query on the same checkpoint, as after the death of the driver: each line is in the folder once."""
    (tmp_path / "in.txt").write_text("".join(f"line {number}\n" for number in range(50)))
    builder = Builder()
    lines = builder.new_source(TextFiles(tmp_path / "in.txt"))
    counts = lines.key_by(lambda _: "all").reduce_by_key_and_window(
        count_window(10), lambda one, other: f"{one} {other}"
    )
    counts.map(lambda each: each[1]).to_sink(TextFolder(tmp_path / "out"))
    graph, folder = builder.graph(), tmp_path / "checkpoint"
    folder.mkdir()
    log, number = BatchLog(CheckpointFolder(str(folder))), 0
    while not log.newest().ended:
        number += 1
        plan = plan_of(graph, 2, f"stopped {number}", 8)
        job = PipelineJob(session, plan, log, folder, Lines())
        stopped = log.newest().number + 1

        def process(read: Any, batch: int, job: PipelineJob = job, last: int = stopped) -> None:  # noqa: ANN401  # Spark's
            job.process(read, batch + 1)
            if batch + 1 == last and not job.ended.is_set():
                msg = "stopped behind the record, before Spark knows"
                raise RuntimeError(msg)

        query = job.stream(0.01).writeStream.foreachBatch(process)
        started = query.option("checkpointLocation", spark_location(str(folder))).trigger(availableNow=True).start()
        with contextlib.suppress(StreamingQueryException):
            started.awaitTermination(60)
        failure = started.exception()
        assert failure is None or "stopped behind the record" in str(failure)
    assert number > 3
    written = [line for path in (tmp_path / "out").glob("*.txt") for line in path.read_text().splitlines()]
    assert sorted(written) == sorted(
        " ".join(f"line {each}" for each in range(start, start + 10)) for start in range(0, 50, 10)
    )


def test_a_changed_pipeline_on_its_old_checkpoint_is_refused(session: SparkSession, tmp_path: Path) -> None:
    """The state of an operator belongs to what the operator did then."""
    log = BatchLog(CheckpointFolder(str(tmp_path)))

    def graph(size: int) -> Graph:
        builder = Builder()
        pairs = builder.new_source(Items(["a"])).key_by(lambda each: each)
        pairs.reduce_by_key_and_window(count_window(size), max).set_name("largest").log()
        return builder.graph()

    PipelineJob(session, plan_of(graph(3), 2, "first", 1), log, tmp_path, Lines())
    with pytest.raises(ConfigError, match=r"operator 'largest', which was .*size=3.* and is .*size=4"):
        PipelineJob(session, plan_of(graph(4), 2, "second", 1), log, tmp_path, Lines())
    kept = PipelineJob(session, plan_of(graph(3), 5, "third", 1), log, tmp_path, Lines())
    assert kept.slots == 2  # the number of slots belongs to the state
