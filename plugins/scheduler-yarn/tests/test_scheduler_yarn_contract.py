"""The scheduler contract on a real YARN of two nodes, with services over REST and HDFS."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import JobStatus, Scheduler, SchedulerState
from heron_hdfs_kit.web_hdfs import HdfsErrors, WebHdfs
from heron_scheduler_yarn.scheduler import YarnScheduler
from heron_scheduler_yarn.yarn_cluster import YarnCluster
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract, runs
from heron_testing.faults import Fault, Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.yarn_services import YarnServices

pytestmark = pytest.mark.servers

_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_ERRORS = HdfsErrors("scheduler", "", SchedulerError, SchedulerError)
_WITHIN_S = 10.0
_BACK_S = 60.0


@pytest.fixture
def relays(hdfs: HdfsServer, yarn_services: YarnServices) -> Iterator[tuple[Relay, Relay]]:
    """Connect the driver to the resource manager and to the name node, and can cut the connections."""
    urls = (yarn_services.url, hdfs.url)
    ports = [int(each.rpartition(":")[2]) for each in urls]
    relays = Relay(("127.0.0.1", ports[0])), Relay(("127.0.0.1", ports[1]))
    yield relays
    for each in relays:
        each.close()


class TestYarnScheduler(SchedulerContract):
    name = "yarn"
    driver_class = YarnScheduler

    @pytest.fixture
    def options(self, relays: tuple[Relay, Relay], yarn_services: YarnServices) -> Iterator[dict[str, object]]:
        manager, names = (f"http://{each.address[0]}:{each.address[1]}" for each in relays)
        yield {
            "address": manager,
            "hdfs": names,
            "root": "/heron/jobs",
            "python": sys.executable,
            "executor": [*FAKE_EXECUTOR],
            "stop_grace_s": 1.0,
            "start_s": 60.0,
            "manager_cpu": 1,
            "manager_memory_mb": 64,
            "executor_memory_mb": 64,
        }
        yarn_services.start()

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        state = DriverRef("statemgr", "localfs", _LOCALFS, {"root": str(tmp_path / "state")})
        with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
            yield Bench(tmp_path, Path(run_root), state)

    @pytest.fixture
    def faults(self, relays: tuple[Relay, Relay]) -> Faults:
        one, other = (relay_faults(each) for each in relays)
        return Faults(
            away=lambda: _both(one.away, other.away),
            silent=lambda: _both(one.silent, other.silent),
            answers_lost=lambda: _both(one.answers_lost, other.answers_lost),
        )

    def test_kill_leaves_nothing(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """YARN has no service of the topology either, and HDFS no file."""
        super().test_kill_leaves_nothing(scheduler, other, bench)
        cluster = _cluster(scheduler)
        assert cluster._store.services("t") == {}
        with cluster._store._session() as hdfs:
            assert hdfs.entry("/heron/jobs/t") is None
            assert hdfs.entries("/user/root/.yarn/services") == ()

    def test_containers_outlive_the_resource_manager(
        self, scheduler: Scheduler, bench: Bench, yarn_services: YarnServices
    ) -> None:
        """While it is away the containers go on, and it finds the same ones again."""
        scheduler.schedule(bench.job("t", "serve"))
        before = bench.wait_until_known(scheduler, "t", 0)
        yarn_services.resource_manager.kill()
        try:
            with pytest.raises(SchedulerError, match="does not answer"):
                scheduler.status("t")
            assert runs(before.pid)
        finally:
            yarn_services.start()
        wait_until(lambda: _runs_first(scheduler), _BACK_S, "YARN knows the container again")
        assert bench.wait("t", 0).pid == before.pid

    def test_a_dead_launcher_is_replaced(self, scheduler: Scheduler, bench: Bench) -> None:
        """YARN starts another container for it: another attempt, and the others keep theirs."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        os.kill(_parent(second.pid), signal.SIGKILL)
        assert bench.wait("t", 1, attempt=2).pid != second.pid
        assert not runs(second.pid)
        assert bench.wait("t", 0).pid == first.pid

    def test_a_container_without_room_says_so(self, options: dict[str, object], bench: Bench) -> None:
        """The words are those of YARN's scheduler; the rest of the topology runs."""
        with bench.state() as statemgr:
            assert statemgr is not None
            large = YarnScheduler.open({**options, "manager_memory_mb": 12_000})
            large.use_state(statemgr)
            large.schedule(bench.job("t", "serve", "serve", "serve"))

            def said() -> bool:
                found = [each.last_error for each in large.status("t").containers]
                return sum("does not have enough headroom" in each for each in found) == 1

            wait_until(said, _BACK_S, "the reason of one of three containers")
            large.kill("t")

    def test_a_container_that_is_too_large_is_refused(self, options: dict[str, object], bench: Bench) -> None:
        """The command has YARN's words, and leaves nothing."""
        with bench.state() as statemgr:
            assert statemgr is not None
            huge = YarnScheduler.open({**options, "manager_memory_mb": 10**6})
            huge.use_state(statemgr)
            with pytest.raises(SchedulerError, match="larger than configured max container memory size"):
                huge.schedule(bench.job("t", "serve"))
            assert huge.status("t") == JobStatus(SchedulerState.ABSENT)

    def test_an_interpreter_without_heron_says_so(self, options: dict[str, object], bench: Bench) -> None:
        """The mistake of a new user: the status has the last line of the process."""
        with bench.state() as statemgr:
            assert statemgr is not None
            wrong = YarnScheduler.open({**options, "python": "/usr/bin/python3"})
            wrong.use_state(statemgr)
            wrong.schedule(bench.job("t", "serve"))
            said = "No module named"
            wait_until(lambda: said in wrong.status("t").containers[0].last_error, _BACK_S, said)
            wrong.kill("t")

    def test_a_service_has_no_secrets(self, scheduler: Scheduler, bench: Bench) -> None:
        """Every user of the cluster can read a service; only its owner can read the launch file."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)
        cluster = _cluster(scheduler)
        ((name, files),) = cluster._store.services("t").items()
        assert str(bench.log_dir("t")) not in json.dumps(cluster._api.service(name)), "a part of the spec"
        with WebHdfs(cluster._api.access.files.url, "stranger", "", _ERRORS) as hdfs, pytest.raises(SchedulerError):
            hdfs.entry(files["0"])

    def test_links_and_output_show_a_container(self, scheduler: Scheduler, bench: Bench) -> None:
        """A person goes on in YARN's pages, and `heron logs` shows what a launcher has printed."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        links = [each.url for each in scheduler.links("t")]
        assert links[0].startswith("yarn app -status heron-t-")
        assert "/cluster/app/application_" in links[1]

        def printed() -> bool:
            return any("container 0 starts, attempt 1" in each for each in scheduler.output("t", 0, 5))

        wait_until(printed, _WITHIN_S, "the output of the launcher")

    def test_two_updates_at_once_add_both(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """Each adds a service; the stored job has the containers of both."""
        scheduler.schedule(bench.job("t", "serve"))
        first = bench.wait_until_known(scheduler, "t", 0)
        with ThreadPoolExecutor(2) as threads:
            calls = [
                threads.submit(each.update, "t", [bench.spec("t", number)], [])
                for number, each in ((1, scheduler), (2, other))
            ]
        for call in calls:
            call.result()
        assert [each.container_id for each in scheduler.status("t").containers] == [0, 1, 2]
        assert bench.wait("t", 0).pid == first.pid


def _cluster(scheduler: Scheduler) -> YarnCluster:
    assert isinstance(scheduler, YarnScheduler)
    assert isinstance(scheduler._cluster, YarnCluster)
    return scheduler._cluster


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _runs_first(scheduler: Scheduler) -> bool:
    """Return whether YARN answers, and the first attempt of the container runs."""
    try:
        (container,) = scheduler.status("t").containers
    except SchedulerError:
        return False
    return container.running and container.attempts == 1


def _both(one: Fault | None, other: Fault | None) -> AbstractContextManager[None]:
    @contextmanager
    def both() -> Iterator[None]:
        with ExitStack() as stack:
            for each in (one, other):
                assert each is not None
                stack.enter_context(each())
            yield

    return both()
