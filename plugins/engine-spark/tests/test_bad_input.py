"""What the engines refuse before Spark starts: libraries that its version does not know, and checkpoints of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow as pa
import pytest

from heron.errors import ConfigError, UsageError
from heron.spi.engine import PipelineEngine
from heron_engine_spark.batch_log import BatchLog
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.compiler import BatchEngine, StreamingEngine
from heron_engine_spark.spark_plan import SparkPlan, spark_plan, spark_stages
from heron_streamlet import Builder, Items
from heron_streamlet.plan.graph import Graph


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
