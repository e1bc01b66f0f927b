"""What the driver of a pipeline shows of its batches: every count, and each operator that failed."""

from __future__ import annotations

import base64
from typing import Any, ClassVar

import cloudpickle
import pytest

from heron.api import TopologyBuilder
from heron_engine_spark.driver_spout import SETUP_KEY, BatchDriver, DriverSetup
from heron_engine_spark.options import BatchOptions
from heron_engine_spark.parcels import Failure
from heron_engine_spark.pipeline_job import BatchResult
from heron_simulator import Simulation
from heron_streamlet import Builder, Items
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.level_runs import plan_of

TEN = tuple(
    Failure(
        f"operator 'divide-{each}' (file.py:{each}): ZeroDivisionError: 0",
        "trace",
        f"'divide-{each}'",
        "file.py, line 1",
    )
    for each in range(10)
)


class Ending(BatchDriver):
    """Its only batch is done at the moment at which the driver asks whether the job has ended."""

    result: ClassVar[BatchResult] = BatchResult(1, rows=100, late=3, failed=26, failures=TEN)

    @property
    def ended(self) -> bool:
        if not self.__dict__.get("is_done"):
            self.__dict__["is_done"] = True
            self.done(self.result)
        return True

    @ended.setter
    def ended(self, value: bool) -> None:
        pass


def packed() -> dict[str, Any]:
    builder = Builder()
    builder.new_source(Items([1])).log()
    setup = DriverSetup(plan_of(builder.graph(), 1, "a run"), BatchOptions())
    return {SETUP_KEY: base64.b64encode(cloudpickle.dumps(setup)).decode()}


def test_each_operator_that_failed_in_the_last_batch_is_shown_and_counts_stay() -> None:
    """A batch job has one batch, and ends with it: its counts must not be those of an empty period behind it."""
    builder = TopologyBuilder("pipeline")
    builder.add_spec(Ending.spec("spark-batch", 1, packed()))
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        for _ in range(2):
            metrics = simulation.read_metrics("spark-batch")
            assert {name: metrics[name] for name in ("rows", "late", "failed", "batches")} == {
                "rows": 100,
                "late": 3,
                "failed": 26,
                "batches": 1,
            }
        errors = simulation.errors()
    assert len(errors) == 10
    assert all("at file.py, line 1" in error for error in errors)


@pytest.mark.parametrize("again", [TEN[:1], TEN[:1] * 3])
def test_an_operator_that_fails_again_at_its_line_is_counted_and_not_shown_again(again: tuple[Failure, ...]) -> None:
    """A batch each second would otherwise fill the log."""
    builder = TopologyBuilder("pipeline")
    builder.add_spec(Ending.spec("spark-batch", 1, packed()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Ending, "result", BatchResult(1, failed=len(again), failures=again))
        with Simulation(builder, clock=FakeClock()) as simulation:
            simulation.run_until_finished()
            assert len(simulation.errors()) == 1
            assert simulation.read_metrics("spark-batch")["failed"] == len(again)
