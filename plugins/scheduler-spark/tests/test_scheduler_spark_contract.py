"""The scheduler contract on Spark, on this machine and on a cluster; every case has a separate application."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.links import encode_keys, new_keys
from heron.spi.driver import DriverRef
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import NodeKind
from heron_scheduler_spark.scheduler import SparkScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract
from heron_testing.waiting import wait_until
from heron_testing_servers.spark import SparkCluster

pytestmark = pytest.mark.servers

_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_OPTIONS = {"executor": [*FAKE_EXECUTOR], "stop_grace_s": 1.0, "start_s": 60, "restart_limit": 2}
_GONE_S = 10.0
_BACK_S = 60.0


class TestSparkScheduler(SchedulerContract):
    name = "spark"
    driver_class = SparkScheduler
    root: Path

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        self.root = tmp_path / "jobs"
        return {"root": str(self.root), **_OPTIONS}

    def test_a_container_that_crashes_is_started_again_with_its_reason(
        self, scheduler: Scheduler, bench: Bench
    ) -> None:
        """After too many failures it is given up."""
        super().test_a_container_that_crashes_is_started_again_with_its_reason(scheduler, bench)
        wait_until(
            lambda: "given up after 3 failures in a row" in scheduler.status("t").containers[0].last_error,
            _BACK_S,
            "container 0 is given up",
        )

    def test_update_adds_and_removes(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """A new driver starts with the present containers."""
        super().test_update_adds_and_removes(scheduler, other, bench)
        _driver(self.root / "t").kill()

        def back() -> bool:
            containers = scheduler.status("t").containers
            return [each.container_id for each in containers if each.running and each.attempts > 1] == [0, 2]

        wait_until(back, _BACK_S, "both containers are back")


@pytest.mark.soak
class TestSparkSchedulerOnStandalone(TestSparkScheduler):
    """All cases on a master and two workers, which do not see the job folder and read the keys from the state."""

    @pytest.fixture
    def options(self, tmp_path: Path, spark: SparkCluster) -> Iterator[dict[str, object]]:
        self.root = tmp_path / "jobs"
        spark.start()
        yield {"root": str(self.root), "master": spark.url, **_OPTIONS}
        wait_until(lambda: not spark.applications(), _GONE_S, "no application is left in the cluster")

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        state = DriverRef("statemgr", "localfs", _LOCALFS, {"root": str(tmp_path / "state")})
        statemgr = open_statemgr(state)
        for topology in ("t", "t-2"):
            statemgr.set(NodeKind.KEYS, topology, encode_keys(new_keys()))
        statemgr.close()
        with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
            yield Bench(tmp_path, Path(run_root), state)


def _driver(folder: Path) -> psutil.Process:
    """Return the process that holds the Spark application of a job."""
    mine = {"heron_scheduler_spark.spark_driver", str(folder / "job.json")}
    (found,) = (each for each in psutil.process_iter(["cmdline"]) if mine <= set(each.info["cmdline"] or ()))
    return found
