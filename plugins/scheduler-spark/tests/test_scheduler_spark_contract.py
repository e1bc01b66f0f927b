"""The scheduler contract on a Spark of this machine; every case has an application of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.testing.contracts.scheduler import FAKE_EXECUTOR, SchedulerContract
from heron_scheduler_spark.scheduler import SparkScheduler

pytestmark = pytest.mark.servers


class TestSparkScheduler(SchedulerContract):
    name = "spark"
    driver_class = SparkScheduler

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"root": str(tmp_path / "jobs"), "executor": [*FAKE_EXECUTOR], "stop_grace_s": 1.0, "start_s": 60}
