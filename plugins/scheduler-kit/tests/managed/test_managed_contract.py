"""The scheduler contract on the bases for managed schedulers, with a folder in place of a cluster."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from folder_cluster import FolderScheduler, SealedFolderScheduler

from heron.errors import SchedulerError
from heron.spi.scheduler import Scheduler, SchedulerState
from heron.spi.statemgr import NodeKind
from heron_scheduler_kit.managed.container_records import ContainerRecords
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract, runs
from heron_testing.waiting import wait_until

pytestmark = pytest.mark.matrix  # some forty real jobs; the pure tests beside it run in `./dev test`

_GONE_S = 20.0


class TestFolderScheduler(SchedulerContract):
    name = "folder"
    driver_class = FolderScheduler
    uses_state = True

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        folder = tmp_path / "cluster"
        folder.mkdir()
        return {"folder": str(folder), "executor": [*FAKE_EXECUTOR], "stop_grace_s": 1.0, "start_s": 60.0}

    @pytest.fixture(autouse=True)
    def _second_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another process of the suite finds the driver."""
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("folder")))

    test_is_found_by_its_name = None  # type: ignore[assignment] # it is a part of the tests, without an entry point

    def test_an_orphan_ends_when_its_job_was_killed(self, scheduler: Scheduler, bench: Bench) -> None:
        """A machine that the cluster has lost still runs its launchers; they learn of the kill from the state.

        The folder does not start launchers again, as a cluster that has lost a machine.
        """
        scheduler.schedule(bench.job("t", "serve"))
        pid = bench.wait("t", 0).pid
        with bench.state() as statemgr:
            assert statemgr is not None
            ContainerRecords(statemgr, "t-1").remove()
        wait_until(lambda: not runs(pid), _GONE_S, "the executor of the orphan is gone")
        assert isinstance(scheduler, FolderScheduler)
        wait_until(lambda: not scheduler._cluster.remains("t"), _GONE_S, "its launcher is gone too")

    def test_a_copy_ends_when_another_one_has_the_next_attempt(self, scheduler: Scheduler, bench: Bench) -> None:
        """A cluster may start a container again while a cut-off machine still runs it."""
        scheduler.schedule(bench.job("t", "serve"))
        pid = bench.wait("t", 0).pid
        with bench.state() as statemgr:
            assert statemgr is not None
            records = ContainerRecords(statemgr, "t-1")
            records.change(0, lambda each: replace(each, attempts=2, host="elsewhere"))
            wait_until(lambda: not runs(pid), _GONE_S, "the older copy is gone")
            record = records.get(0)
        assert record is not None
        assert (record.attempts, record.host) == (2, "elsewhere")

    def test_what_a_container_prints_is_kept(self, scheduler: Scheduler, bench: Bench) -> None:
        """`heron logs` reads it on every machine; lines of a log have its name."""
        scheduler.schedule(bench.job("t", "parent"))
        bench.wait("t", 0)
        wait_until(lambda: any("starts, attempt 1" in each for each in scheduler.output("t", 0, 9)), _GONE_S, "its log")

    def test_a_restart_leaves_an_avoided_host(self, scheduler: Scheduler, bench: Bench) -> None:
        """The others stay; the older copy ends, because the new one has the next attempt."""
        if "avoid" not in scheduler.capabilities:
            return
        scheduler.schedule(bench.job("t", "serve", "serve"))
        pids = [bench.wait("t", number).pid for number in range(2)]
        scheduler.avoid_hosts(["left", "unknown"])
        scheduler.restart("t", 1)
        wait_until(lambda: not runs(pids[1]), _GONE_S, "the older copy is gone")
        found = scheduler.status("t").containers
        assert [(each.host, each.attempts) for each in found] == [("left", 1), ("right", 2)]
        scheduler.restart("t", 1)
        assert [each.host for each in scheduler.status("t").containers] == ["left", "right"]
        assert runs(pids[0])

    def test_a_container_that_no_other_host_takes_may_start_anywhere(
        self, scheduler: Scheduler, bench: Bench, options: dict[str, object]
    ) -> None:
        """A container on a bad host is better than none."""
        if "avoid" not in scheduler.capabilities:
            return
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)
        with bench.state() as statemgr:
            assert statemgr is not None
            impatient = FolderScheduler.open({**options, "start_s": 1.0})
            impatient.use_state(statemgr)
            impatient.avoid_hosts(["left", "right"])
            with pytest.raises(SchedulerError, match="container 0 finds no host besides left, right within 1 s"):
                impatient.restart("t", 0)
        wait_until(lambda: scheduler.status("t").containers[0].running, _GONE_S, "it runs")


class TestSealedFolderScheduler(TestFolderScheduler):
    """The same with the stored job and sealed launch files in the state manager."""

    driver_class = SealedFolderScheduler

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        key = tmp_path / "key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        folder = tmp_path / "cluster"
        folder.mkdir()
        common = {"executor": [*FAKE_EXECUTOR], "python": sys.executable, "stop_grace_s": 1.0, "start_s": 60.0}
        return {"folder": str(folder), "key_file": str(key), **common}

    def test_nothing_is_left_in_the_state_manager(self, scheduler: Scheduler, bench: Bench) -> None:
        """Launch files have secrets, although sealed; the killed topology leaves none of them."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        for number in range(2):
            bench.wait("t", number)
        with bench.state() as statemgr:
            assert statemgr is not None
            assert statemgr.list(NodeKind.JOB) == ("t",)
            assert statemgr.list(NodeKind.CONTAINER) == ("t-1-0", "t-1-0-launch", "t-1-1", "t-1-1-launch")
            scheduler.update("t", [], [1])
            assert statemgr.list(NodeKind.CONTAINER) == ("t-1-0", "t-1-0-launch", "t-1-1")
            scheduler.kill("t")
            assert [kind for kind in NodeKind if statemgr.list(kind)] == []

    def test_without_the_key_nothing_is_started(self, scheduler: Scheduler, bench: Bench, tmp_path: Path) -> None:
        """The message has the file; a job that runs is not touched, and a new one leaves nothing."""
        scheduler.schedule(bench.job("t", "serve"))
        pid = bench.wait("t", 0).pid
        (tmp_path / "key").unlink()
        with pytest.raises(SchedulerError, match=f"the key file {tmp_path}/key does not exist on "):
            scheduler.update("t", [bench.spec("t", 1)], [])
        with pytest.raises(SchedulerError, match=f"the key file {tmp_path}/key does not exist on "):
            scheduler.schedule(bench.job("u", "serve"))
        assert [each.container_id for each in scheduler.status("t").containers] == [0]
        assert scheduler.status("u").state is SchedulerState.ABSENT
        assert runs(pid)
