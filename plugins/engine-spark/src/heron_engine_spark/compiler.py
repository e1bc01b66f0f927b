"""The engines: they compile a pipeline to a topology with one task, which is the driver of a Spark application.

So a pipeline on Spark is submitted, watched, restarted and killed as any other topology. Spark does the work.
"""

from __future__ import annotations

import base64
import secrets
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar, Generic, Self, TypeVar

import cloudpickle

from heron.api import TopologyBuilder, api_constants
from heron.errors import ConfigError, TopologyError, UsageError
from heron.planner.key_group import DEFAULT_KEY_GROUPS
from heron.spi.engine import PIPELINE_KEY, PipelineEngine
from heron.spi.options import decode_options
from heron_engine_spark.driver_spout import SETUP_KEY, BatchDriver, DriverSetup, StreamingDriver
from heron_engine_spark.options import BatchOptions, StreamingOptions
from heron_engine_spark.spark_plan import SparkPlan, spark_plan, spark_stages
from heron_spark_kit.java import check_java
from heron_streamlet.plan.graph import Graph, check_picklable
from heron_streamlet.plan.operators import Read, Windowed
from heron_streamlet.plan.stages import Stage, StagePlan

__all__ = ["BatchEngine", "StreamingEngine"]

O = TypeVar("O", bound=BatchOptions)  # noqa: E741  # the options of an engine

_OF_HERON = (
    api_constants.TOPOLOGY_RELIABILITY_MODE,
    api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
    api_constants.TOPOLOGY_STMGRS,
)
"""Keys about the processes and the delivery of Heron; Spark has its own."""

_PANDAS = 2, 4  # of Spark 4
_PYARROW = 18, 27


class _SparkEngine(PipelineEngine, Generic[O]):
    """What both engines do alike."""

    spi_version = 1
    name: ClassVar[str]

    def __init__(self, options: O) -> None:
        self._options = options

    def compile(self, name: str, pipeline: object, config: Mapping[str, object]) -> TopologyBuilder:
        """`PipelineEngine.compile`."""
        if not isinstance(pipeline, Graph):
            msg = f"topology {name!r}: {pipeline!r:.60} is not a graph of heron_streamlet"
            raise TopologyError(msg)
        stages = spark_stages(pipeline)
        for stage in stages.stages:
            if (reason := self.refusal(stage)) is not None:
                raise TopologyError(_refused(stages, stage, self.name, *reason))
        _check_installed()
        groups = config.get(api_constants.TOPOLOGY_KEY_GROUPS, DEFAULT_KEY_GROUPS)
        if type(groups) is not int or groups < 1:
            msg = f"topology {name!r}: {api_constants.TOPOLOGY_KEY_GROUPS} {groups!r} is not an integer above 0"
            raise ConfigError(msg)
        own = {key: value for key, value in config.items() if key not in _OF_HERON}
        run = f"{name}-{secrets.token_hex(4)}"
        plan = self._limited(spark_plan(stages, name, run, self._options.slots, groups, config=own))
        builder = TopologyBuilder(name)
        builder.set_config({**own, PIPELINE_KEY: stages.text()})
        builder.add_spec(self._driver().spec(self.name, 1, {SETUP_KEY: _packed(stages, plan, self._options)}))
        return builder

    @abstractmethod
    def _driver(self) -> type[BatchDriver]:
        """The component that runs the plan."""

    @abstractmethod
    def _limited(self, plan: SparkPlan) -> SparkPlan:
        """The plan with the limits of a batch."""

    @staticmethod
    @abstractmethod
    def refusal(stage: Stage) -> tuple[str, str] | None:
        """Why this engine cannot run a stage, and what the author can change; None if it can."""


class BatchEngine(_SparkEngine[BatchOptions]):
    """One Spark job over all data that the sources have."""

    options_type = BatchOptions
    name = "spark-batch"

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """`Driver.open`."""
        return cls(decode_options(options, BatchOptions, "engine"))

    def _driver(self) -> type[BatchDriver]:
        return BatchDriver

    def _limited(self, plan: SparkPlan) -> SparkPlan:
        return plan

    @staticmethod
    def refusal(stage: Stage) -> tuple[str, str] | None:
        """`_SparkEngine.refusal`."""
        operator = stage.head.operator
        if isinstance(operator, Read) and not operator.source.bounded:
            return "reads sources to their end, and this one has none", "use a source with an end"
        if stage.by_clock:
            assert isinstance(operator, Windowed)  # noqa: S101  # no others have windows
            change = "leave out by_clock()" if operator.window.clock else "call event_time on the stream"
            return "has no windows by the clock: all elements of the past would be in the window of today", change
        return None


class StreamingEngine(_SparkEngine[StreamingOptions]):
    """A Structured Streaming query."""

    capabilities = frozenset({"live"})
    options_type = StreamingOptions
    name = "spark-streaming"

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """`Driver.open`.

        Raises:
            ConfigError: also when workers on other machines could not reach the checkpoint.
        """
        decoded = decode_options(options, StreamingOptions, "engine")
        if not decoded.is_local and not decoded.checkpoint:
            msg = (
                f"engine.checkpoint: missing; the workers of {decoded.master} need a folder that all of them reach, "
                "such as hdfs://namenode:8020/checkpoints/NAME"
            )
            raise ConfigError(msg)
        return cls(decoded)

    def _driver(self) -> type[BatchDriver]:
        return StreamingDriver

    def _limited(self, plan: SparkPlan) -> SparkPlan:
        options = self._options
        return replace(plan, saves=True, row_limit=options.batch_rows, time_limit_s=options.batch_s)

    @staticmethod
    def refusal(stage: Stage) -> tuple[str, str] | None:
        """`_SparkEngine.refusal`."""
        operator = stage.head.operator
        if isinstance(operator, Read) and not operator.source.repeatable:
            return (
                "opens a source for each micro-batch at the position where the last one ended, and this one has no "
                "positions"
            ), "write a Source whose readers have positions"
        return None


def _refused(stages: StagePlan, stage: Stage, engine: str, reason: str, change: str) -> str:
    """The message of a refusal; it names the engines that run the pipeline as it is."""
    others: tuple[type[_SparkEngine[Any]], ...] = (BatchEngine, StreamingEngine)
    able = [each.name for each in others if all(each.refusal(one) is None for one in stages.stages)]
    able_ones = " or ".join(["heron", *able])
    return f"operator {stage.head}: engine {engine!r} {reason}; {change}, or use the engine {able_ones}"


def _check_installed() -> None:
    """Refuse a machine without a Java for Spark, or with libraries that its version does not know.

    Raises:
        UsageError: names what is missing or too new.
    """
    for name, (oldest, too_new) in (("pandas", _PANDAS), ("pyarrow", _PYARROW)):
        found = str(import_module(name).__version__)
        if not oldest <= int(found.partition(".")[0]) < too_new:
            msg = f"{name} {found} does not work with this pyspark; install {name}>={oldest},<{too_new}"
            raise UsageError(msg)
    check_java()


def _packed(stages: StagePlan, plan: SparkPlan, options: BatchOptions) -> str:
    """The pickled plan.

    Raises:
        TopologyError: when an operator cannot be pickled; names it.
    """
    try:
        pickled = cloudpickle.dumps(DriverSetup(plan, options))
    except Exception as error:  # pickling runs the code of the author's objects
        for node in stages.graph.nodes:
            check_picklable(node)
        msg = f"pipeline {plan.name!r} cannot be pickled: {error}"
        raise TopologyError(msg) from error
    return base64.b64encode(pickled).decode("ascii")
