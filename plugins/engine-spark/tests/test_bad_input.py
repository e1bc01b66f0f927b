"""What the engines refuse before Spark starts: libraries that its version does not know, and checkpoints of others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow as pa
import pytest

from heron.errors import ConfigError, TopologyError, UsageError
from heron.spi.engine import PipelineEngine
from heron_engine_spark.batch_log import BatchLog
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.compiler import BatchEngine, StreamingEngine
from heron_engine_spark.spark_plan import SparkPlan, spark_plan, spark_stages
from heron_streamlet import Builder, Generator, Items, Reader, Source, StageContext, tumbling_window
from heron_streamlet.plan.graph import Graph
from heron_streamlet.topology.topology_compiler import compile_topology


def counts(source: str = "numbers", counted: str = "counts") -> Graph:
    """Counts elements, with names for what has state."""
    builder = Builder()
    pairs = builder.new_source(Items([1, 2])).set_name(source).key_by(lambda each: each)
    pairs.count_by_key().set_name(counted).log()
    return builder.graph()


@pytest.mark.usefixtures("some_java")
@pytest.mark.parametrize("engine", [BatchEngine, StreamingEngine])
@pytest.mark.parametrize(
    ("library", "version", "message"),
    [
        (pd, "4.0.1", r"pandas 4.0.1 does not work with this pyspark; install pandas>=2,<4"),
        (pd, "1.5.3", r"pandas 1.5.3 does not work"),
        (pa, "27.0.0.dev3", r"pyarrow 27.0.0.dev3 does not work with this pyspark; install pyarrow>=18,<27"),
        (pa, "17.0.0", r"pyarrow 17.0.0 does not work"),
    ],
)
def test_a_library_that_this_spark_does_not_know_is_refused(
    monkeypatch: pytest.MonkeyPatch, engine: type[PipelineEngine], library: ModuleType, version: str, message: str
) -> None:
    """When the pipeline is compiled: `heron plan` says it too."""
    monkeypatch.setattr(library, "__version__", version)
    with pytest.raises(UsageError, match=message):
        engine.open({}).compile("counts", counts(), {})


def planned(name: str = "counts", groups: int = 64, **names: str) -> SparkPlan:
    return spark_plan(spark_stages(counts(**names)), name, "a run", 2, groups, saves=True, row_limit=10)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: planned("clicks"), r"belongs to pipeline 'counts', and this is 'clicks'; give it a folder of its own"),
        (lambda: planned(groups=32), r"topology.key.groups was 64 and is 32; set it to 64"),
        (lambda: planned(counted="totals"), r"has the state of operator 'counts', which was removed"),
        (lambda: planned(source="words"), r"has the positions of source 'numbers', which was removed"),
    ],
)
def test_the_checkpoint_of_another_pipeline_is_refused(
    tmp_path: Path, other: Callable[[], SparkPlan], message: str
) -> None:
    """The message has the folder, and what differs by its name; the checkpoint stays that of the first."""
    log = BatchLog(CheckpointFolder(str(tmp_path)))
    log.begin(planned())
    with pytest.raises(ConfigError, match=f"engine.checkpoint: {tmp_path}.* {message}"):
        log.begin(other())
    log.begin(planned())


class Counter(Generator[int]):
    """A source as in heronpy: it has no end, and no positions."""

    def get(self) -> int:
        return 1


class Numbers(Source[int]):
    """Has positions; says whether it has an end, and whether it can be read again."""

    def __init__(self, *, bounded: bool, repeatable: bool) -> None:
        self.bounded, self.repeatable = bounded, repeatable

    def open(self, partition: str, position: object, context: StageContext) -> Reader[int]:
        return Items([1, 2]).open(partition, position, context)


Given = Source[int] | Generator[int] | Callable[[], int]


def logged(source: Given) -> Graph:
    builder = Builder()
    builder.new_source(source).log()
    return builder.graph()


def by_clock(source: Given, *, timed: bool = False) -> Graph:
    builder = Builder()
    numbers = builder.new_source(source)
    numbers = numbers.event_time(lambda each: each) if timed else numbers
    window = tumbling_window(1).by_clock() if timed else tumbling_window(1)
    numbers.key_by(lambda each: each).count_by_key_and_window(window).log()
    return builder.graph()


def by_event_time(source: Given) -> Graph:
    builder = Builder()
    timed = builder.new_source(source).event_time(lambda each: each).key_by(lambda each: each)
    timed.count_by_key_and_window(tumbling_window(1)).log()
    return builder.graph()


ENDLESS, ONCE = Numbers(bounded=False, repeatable=True), Numbers(bounded=True, repeatable=False)
ENGINES: dict[str, Callable[[Graph], object]] = {
    "heron": lambda graph: compile_topology("pipeline", graph, {}),
    "spark-batch": lambda graph: BatchEngine.open({}).compile("pipeline", graph, {}),
    "spark-streaming": lambda graph: StreamingEngine.open({}).compile("pipeline", graph, {}),
}


@pytest.mark.usefixtures("some_java")
@pytest.mark.parametrize(
    ("engine", "refused", "able", "changed"),
    [
        ("spark-batch", logged(Counter()), {"heron"}, ("use a source with an end", logged(Items([1])))),
        ("spark-batch", logged(lambda: 1), {"heron"}, ("use a source with an end", logged(ONCE))),
        (
            "spark-batch",
            logged(ENDLESS),
            {"heron", "spark-streaming"},
            ("use a source with an end", logged(Items([1]))),
        ),
        (
            "spark-streaming",
            logged(lambda: 1),
            {"heron"},
            ("write a Source whose readers have positions", logged(ENDLESS)),
        ),
        ("spark-streaming", logged(Counter()), {"heron"}, ("write a Source whose readers have", logged(ENDLESS))),
        ("spark-streaming", logged(ONCE), {"heron", "spark-batch"}, ("write a Source whose", logged(Items([1])))),
        (
            "spark-batch",
            by_clock(Items([1])),
            {"heron", "spark-streaming"},
            ("call event_time", by_event_time(Items([1]))),
        ),
        ("spark-batch", by_clock(ONCE), {"heron"}, ("call event_time", by_event_time(ONCE))),
        (
            "spark-batch",
            by_clock(Items([1]), timed=True),
            {"heron", "spark-streaming"},
            (r"leave out by_clock\(\)", by_event_time(Items([1]))),
        ),
    ],
)
def test_what_a_refusal_advises_works(engine: str, refused: Graph, able: set[str], changed: tuple[str, Graph]) -> None:
    """The engines that it names run the pipeline, all others refuse it, and the change that it names is accepted."""
    with pytest.raises(TopologyError, match=changed[0]) as error:
        ENGINES[engine](refused)
    named = set(str(error.value).rpartition("or use the engine ")[2].split(" or "))
    assert named == able
    for name, compiled in ENGINES.items():
        with contextlib.nullcontext() if name in able else pytest.raises(TopologyError):
            compiled(refused)
    ENGINES[engine](changed[1])
