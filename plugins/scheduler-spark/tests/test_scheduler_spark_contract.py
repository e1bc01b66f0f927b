"""The scheduler contract on a Spark of this machine; every case has an application of its own."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from heron.spi.scheduler import Scheduler
from heron.testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract
from heron_scheduler_spark.scheduler import SparkScheduler

pytestmark = pytest.mark.servers


class TestSparkScheduler(SchedulerContract):
    name = "spark"
    driver_class = SparkScheduler
    root: Path

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        self.root = tmp_path / "jobs"
        return {"root": str(self.root), "executor": [*FAKE_EXECUTOR], "stop_grace_s": 1.0, "start_s": 60}

    def test_update_adds_and_removes(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """A driver that comes later begins with the containers that there are then."""
        super().test_update_adds_and_removes(scheduler, other, bench)
        _driver(self.root / "t").kill()
        assert [bench.wait("t", each, attempt=2).attempt for each in (0, 2)] == [2, 2]
        assert [each.container_id for each in scheduler.status("t").containers if each.running] == [0, 2]


def _driver(folder: Path) -> psutil.Process:
    """The process that has the Spark application of a job."""
    mine = {"heron_scheduler_spark.spark_driver", str(folder / "job.json")}
    (found,) = (each for each in psutil.process_iter(["cmdline"]) if mine <= set(each.info["cmdline"] or ()))
    return found
