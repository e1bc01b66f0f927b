"""The only task of a pipeline on Spark: the driver of its application, as a spout.

A restarted task begins a new application, which goes on behind the last complete batch.
"""

from __future__ import annotations

import base64
import re
import shutil
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import cloudpickle

from heron.api import AssignableMetrics, Spout, TopologyContext
from heron.clock import monotonic_s
from heron.errors import CheckpointError, HeronError, UserCodeError
from heron_engine_spark.options import BatchOptions, StreamingOptions
from heron_engine_spark.spark_plan import SparkPlan
from heron_spark_kit.jvm_output import expect_end
from heron_streamlet.failures import OperatorError
from heron_streamlet.runtime.total_count import TotalCount
from heron_streamlet.windowing.event_time import END_OF_TIME_US

if TYPE_CHECKING:  # the command that compiles a pipeline loads this module, but not Spark
    from pyspark.sql import DataFrame, SparkSession

    from heron_engine_spark.pipeline_job import BatchResult, PipelineJob

__all__ = ["SCRATCH", "SETUP_KEY", "BatchDriver", "DriverSetup", "StreamingDriver"]

SETUP_KEY = "heron.engine.spark.setup"
"""The component's configuration: its `DriverSetup`."""

SCRATCH = ".heron-spark-"
"""The folders in which Spark keeps files while it runs."""

_PYTHON = re.compile(r"^((?:[A-Za-z_][\w.]*\.)?\w*(?:Error|Exception|Exit)\b: .*)$", re.MULTILINE)
_WRAPPERS = ("org.apache.", "java.", "py4j.", "pyspark.")  # of the errors that they report

_LOOK_S = 0.2
_METRIC_S = 1.0
_STOP_S = 3.0


@dataclass(frozen=True, slots=True)
class DriverSetup:
    """What the compiler gives the driver."""

    plan: SparkPlan
    options: BatchOptions


class _Metrics:
    """What operators see of the batches."""

    def __init__(self, context: TopologyContext) -> None:
        self._rows, self._late, self._failed, self._batches, self._dropped = (TotalCount() for _ in range(5))
        self._keys, self._batch_s, self._watermark_s = (AssignableMetrics(0.0) for _ in range(3))
        self._begin_s = monotonic_s()
        for name, metric in (
            ("rows", self._rows),
            ("late", self._late),
            ("failed", self._failed),
            ("batches", self._batches),
            ("letters-dropped", self._dropped),
            ("state-keys", self._keys),
            ("batch-s", self._batch_s),
            ("watermark-s", self._watermark_s),
        ):
            context.register_metric(name, metric, _METRIC_S)

    def done(self, result: BatchResult) -> None:
        """A batch is complete."""
        now_s = monotonic_s()
        self._batch_s.update(now_s - self._begin_s)
        self._begin_s = now_s
        self._rows.incr(result.rows)
        self._late.incr(result.late)
        self._failed.incr(result.failed)
        self._batches.incr()
        self._dropped.incr(result.dropped)
        self._keys.update(float(result.keys))
        if result.watermark_us is not None and 0 < result.watermark_us < END_OF_TIME_US:
            self._watermark_s.update(result.watermark_us / 1_000_000)


class BatchDriver(Spout):
    """Runs a pipeline as one job. Emits each complete batch, so that its counts show the progress."""

    outputs: ClassVar = ["batch", "rows"]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Load the plan. Spark starts with the first `next_tuple`."""
        self.setup: DriverSetup = cloudpickle.loads(base64.b64decode(config[SETUP_KEY]))
        self.metrics = _Metrics(context)
        self.failures: deque[OperatorError] = deque()
        self.batches: deque[tuple[int, int]] = deque()
        self.letters: deque[Sequence[bytes]] = deque()
        self.stored, self.closed = threading.Event(), threading.Event()
        self.known: set[tuple[str, str]] = set()
        file = getattr(sys.modules["__main__"], "__file__", None)  # of the package, which is removed with the container
        self.scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=Path(file).parent if file else None))
        self.session: SparkSession | None = None
        self.thread: threading.Thread | None = None
        self.over, self.stopping = threading.Event(), threading.Event()
        self.error: Exception | None = None
        self.ended = context.get_task_index() > 0  # of an update: a pipeline has one driver

    def show(self, line: str) -> None:
        """Print an element of `log`."""
        print(line, flush=True)  # noqa: T201  # what `log` is for

    def keep(self, letters: Sequence[bytes]) -> None:
        """Wait until `next_tuple` has stored dead letters: their batch may not be complete before them.

        A pause or back pressure may delay `next_tuple` for any time, so only the end of the task ends the wait.

        Raises:
            CheckpointError: when the task closes first; the batch is not complete and is repeated.
        """
        self.stored.clear()
        self.letters.append(letters)
        while not self.stored.wait(_LOOK_S):
            if self.closed.is_set() and not self.stored.is_set():  # they may be stored since the wait ended
                msg = f"{len(letters)} dead letters are not stored, because the task ends; their batch is repeated"
                raise CheckpointError(msg)

    def done(self, result: BatchResult) -> None:
        """Count a batch; `next_tuple` reports the failures that are new: an author's function failed in another way."""
        self.metrics.done(result)
        self.batches.append((result.number, result.rows))
        for each in result.failures:
            if (each.operator, each.place) not in self.known:
                self.known.add((each.operator, each.place))
                error = OperatorError(each.message)
                error.part, error.place, error.stops = each.operator, each.place, each.stops
                error.add_note(each.trace)
                self.failures.append(error)

    def next_tuple(self) -> None:
        """Look after the job, which has its own thread.

        Raises:
            UserCodeError: when Spark gave the job up; the next call begins again behind the last complete batch.
            SystemExit: when Spark's JVM is gone; the executor restarts the task.
        """
        ended = self.ended  # before the last batch is looked for: it may be done between two lines
        while self.batches:
            self.emit(self.batches.popleft())
        if self.letters:
            self._store(self.letters.popleft())
        while self.failures:
            self.report_error(self.failures.popleft())
        if ended:
            self.end()
            return
        if self.thread is None:
            self.over.clear()
            self.thread = threading.Thread(target=self._work, name="pipeline", daemon=True)
            self.thread.start()
        if self.over.wait(_LOOK_S) and not (self.failures or self.batches):
            self.thread = None
            self._conclude()

    def deactivate(self) -> None:
        """Finish the batch at hand, then pause."""
        self.stopping.set()

    def activate(self) -> None:
        """Go on."""
        self.stopping.clear()

    def close(self) -> None:
        """Stop Spark."""
        self.stopping.set()
        self.closed.set()
        if self.thread is not None:
            self.over.wait(_STOP_S)
        if self.session is not None and not _is_gone(self.session):
            expect_end()
            self.session.stop()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def run_job(self, job: PipelineJob) -> None:
        """Run to the end, or until `stopping`. Has its own thread."""
        job.run_batch()

    @property
    def kept(self) -> str:
        """A checkpoint that outlives the run; empty for none."""
        return ""

    @property
    def folder(self) -> str:
        """The checkpoint of this pipeline: one that outlives the run, or that of the run alone."""
        return self.kept or str(Path(self.setup.options.root).expanduser() / self.setup.plan.run)

    def _work(self) -> None:
        from heron_engine_spark.batch_log import BatchLog  # noqa: PLC0415  # the command need not load Spark
        from heron_engine_spark.checkpoint_folder import CheckpointFolder  # noqa: PLC0415  # as above
        from heron_engine_spark.pipeline_job import PipelineJob  # noqa: PLC0415  # as above
        from heron_engine_spark.session import start_session  # noqa: PLC0415  # as above

        options = self.setup.options
        try:
            if self.session is None:
                self.session = start_session(self.setup.plan.name, options, self.scratch)
            slots = self.setup.plan.slots or self.session.sparkContext.defaultParallelism
            folder = CheckpointFolder(self.folder)
            job = PipelineJob(self.session, replace(self.setup.plan, slots=slots), BatchLog(folder), self.scratch, self)
            self.run_job(job)
            self.ended = job.ended.is_set()
            if self.ended and not self.kept:
                folder.remove_all()
        except Exception as error:  # of many kinds: pyspark's, py4j's, OSError, those of authors' sinks
            self.error = error
        finally:
            self.over.set()

    def _store(self, letters: Sequence[bytes]) -> None:
        from heron_engine_spark.failures import unpacked_letter  # noqa: PLC0415  # as `_work`

        try:
            found = tuple(unpacked_letter(each) for each in letters)
            error = OperatorError(f"records failed in steps with on_error('dead_letter'), {len(found)} in this batch")
            error.part, error.stops, error.letters = "dead letters", False, found
            self.report_error(error)
        finally:
            self.stored.set()

    def _conclude(self) -> None:
        error, self.error = self.error, None
        if error is None:
            return
        if self.session is None or _is_gone(self.session):
            msg = f"Spark's JVM is gone: {described(error)}"
            raise SystemExit(msg)
        if isinstance(error, HeronError):
            raise error
        if (stopped := _stopped(error)) is not None:
            raise stopped from error
        raise UserCodeError(described(error)) from error


class StreamingDriver(BatchDriver):
    """Runs a pipeline as a Structured Streaming query."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """As `BatchDriver.initialize`.

        Raises:
            ConfigError: when the checkpoint is that of another pipeline; then the topology does not start.
        """
        super().initialize(config, context)
        from heron_engine_spark.batch_log import BatchLog  # noqa: PLC0415  # the command need not load it
        from heron_engine_spark.checkpoint_folder import CheckpointFolder  # noqa: PLC0415  # as above

        BatchLog(CheckpointFolder(self.folder)).check(self.setup.plan)

    @property
    def kept(self) -> str:
        """`BatchDriver.kept`."""
        return str(getattr(self.setup.options, "checkpoint", ""))

    def run_job(self, job: PipelineJob) -> None:
        """`BatchDriver.run_job`."""
        options = self.setup.options
        assert isinstance(options, StreamingOptions)  # noqa: S101  # by the compiler
        if job.ended.is_set():
            return
        cause: list[Exception] = []

        def process(read: DataFrame, number: int) -> None:
            try:
                job.process(read, number + 1)  # ours begin with 1
            except Exception as error:  # Spark would hand on only its text
                cause.append(error)
                raise

        writer = job.stream(options.idle_s).writeStream.foreachBatch(process)
        writer = writer.queryName(self.setup.plan.name).option("checkpointLocation", spark_location(self.folder))
        once = {"availableNow": True} if options.available_now else {"processingTime": f"{options.trigger_s} seconds"}
        query = writer.trigger(**once).start()
        try:
            while not (job.ended.is_set() or self.stopping.is_set()):
                if query.awaitTermination(1):
                    job.ended.set()  # available now: everything is read
        except Exception as error:
            raise (cause or [error])[-1] from error
        finally:
            query.stop()


def spark_location(folder: str) -> str:
    """The folder of Spark's own records, in a checkpoint."""
    if "://" not in folder:
        return Path(folder).expanduser().absolute().as_uri() + "/spark"
    return folder.replace("s3://", "s3a://") + "/spark"


def described(error: Exception) -> str:
    """What happened, without the stack of Java: the error of a worker's Python, or Spark's own message."""
    text = str(error)
    found = [line for line in _PYTHON.findall(text.partition("JVM stacktrace:")[0]) if not line.startswith(_WRAPPERS)]
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return found[-1] if found else f"{type(error).__name__}: {first}"


def _stopped(error: Exception) -> OperatorError | None:
    """The failure of a step that stops the pipeline, if that is why Spark gave up."""
    from heron_engine_spark.failures import StoppedError  # noqa: PLC0415  # the command need not load Arrow

    return StoppedError.found_in(str(error))


def _is_gone(session: SparkSession) -> bool:
    process = getattr(session.sparkContext._gateway, "proc", None)  # pyspark has no other way
    return process is not None and process.poll() is not None
