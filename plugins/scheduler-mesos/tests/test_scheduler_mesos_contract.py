"""The scheduler contract on a server that is written from the published contract of Mesos; its agents run processes."""

from __future__ import annotations

import getpass
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron.spi.scheduler import ContainerStatus, JobStatus, Scheduler, SchedulerState
from heron_scheduler_mesos.scheduler import MesosScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract, runs
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.http_service import Fault
from heron_testing_servers.mesos import MesosCluster, attribute, resources

pytestmark = pytest.mark.servers

_WITHIN_S = 10.0
_BACK_S = 60.0
_USERS = {
    "heron": {"secret": "open sesame", "roles": ["streaming"], "users": [getpass.getuser()]},
    "other": {"secret": "barley", "roles": ["batch"]},
}
_AGENTS = [
    ([*resources(4, 8192), *resources(1, 1024, role="streaming")], [attribute("rack", "a")]),
    (resources(4, 8192), [attribute("rack", "b")]),
]


@pytest.fixture(scope="module")
def mesos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MesosCluster]:
    """Two agents, one with a reservation, and users."""
    cluster = MesosCluster(tmp_path_factory.mktemp("mesos"), _AGENTS, _USERS)
    cluster.start()
    yield cluster
    cluster.kill()


@pytest.fixture
def relay(mesos: MesosCluster) -> Iterator[Relay]:
    """Connects the driver to the master, and can cut the connections."""
    mesos.start()
    relay = Relay(mesos.address)
    yield relay
    relay.close()
    mesos.clear_faults()
    for name in mesos.agents():
        mesos.change_agent(name, "up")


class TestMesosScheduler(SchedulerContract):
    name = "mesos"
    driver_class = MesosScheduler
    uses_state = True
    root: Path

    @pytest.fixture
    def options(self, relay: Relay, tmp_path: Path) -> dict[str, object]:
        host, port = relay.address
        self.root = tmp_path / "jobs"
        key = tmp_path / "mesos.key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        return {
            "root": str(self.root),
            "masters": [f"http://{host}:{port}"],
            "principal": "heron",
            "secret": "open sesame",
            "role": "streaming",
            "key_file": str(key),
            "python": sys.executable,
            "executor": [*FAKE_EXECUTOR],
            "stop_grace_s": 1.0,
            "start_s": 10.0,
            "silence_s": 5.0,
        }

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def test_the_end_of_a_topology_removes_its_framework(
        self, scheduler: Scheduler, bench: Bench, mesos: MesosCluster
    ) -> None:
        """By itself, or by a kill; otherwise Mesos would keep it for the failover time-out."""
        scheduler.schedule(bench.job("t", "done"))
        wait_until(lambda: scheduler.status("t").state is SchedulerState.ABSENT, _BACK_S, "the job has ended")
        assert mesos.state()["frameworks"] == []
        scheduler.schedule(bench.job("t", "serve"))
        scheduler.kill("t")
        assert mesos.state()["frameworks"] == []

    # -- masters

    def test_containers_outlive_the_master(self, scheduler: Scheduler, bench: Bench, mesos: MesosCluster) -> None:
        """The supervisor subscribes again with the same framework id, and finds the same processes."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        before = [bench.wait_until_known(scheduler, "t", number).pid for number in range(2)]
        handle = scheduler.status("t").handle
        mesos.process.kill()
        assert all(map(runs, before))
        mesos.start()
        os.kill(before[1], signal.SIGKILL)
        again = bench.wait_until_known(scheduler, "t", 1, attempt=2)
        assert again.pid != before[1]
        assert bench.wait("t", 0).pid == before[0]
        assert scheduler.status("t").handle == handle

    @pytest.mark.parametrize("call", ["ACCEPT", "ACKNOWLEDGE", "DECLINE", "REVIVE", "RECONCILE", "KILL", "TEARDOWN"])
    def test_a_call_whose_answer_is_lost_starts_nothing_twice(
        self, scheduler: Scheduler, bench: Bench, mesos: MesosCluster, call: str
    ) -> None:
        """The master has done what was asked, and the answer does not arrive."""
        mesos.fault(Fault(call, "drop"))
        scheduler.schedule(bench.job("t", "serve", "serve"))
        wait_until(lambda: all(each.running for each in scheduler.status("t").containers), _BACK_S, "both run")
        attempts = [each.attempts for each in scheduler.status("t").containers]  # a launch that Mesos refuses takes one
        first, second = (bench.wait("t", number, attempts[number]) for number in range(2))
        scheduler.restart("t", 1)
        bench.wait_until_known(scheduler, "t", 1, attempt=attempts[1] + 1)
        assert bench.wait("t", 0, attempts[0]).pid == first.pid
        assert not runs(second.pid)
        assert len(mesos.containers()) == 2
        scheduler.kill("t")
        assert mesos.faults() == []
        assert mesos.containers() == {}

    # -- agents

    def test_containers_of_a_lost_agent_start_elsewhere(
        self, scheduler: Scheduler, bench: Bench, mesos: MesosCluster
    ) -> None:
        """An agent that comes back with its old tasks ends them; an old copy ends earlier by the claim of the new."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        before = [bench.wait_until_known(scheduler, "t", number) for number in range(2)]
        places = [each.where for each in scheduler.status("t").containers]
        assert len(set(places)) == 2, "spread over both agents"
        lost = next(
            n for n, each in mesos.agents().items() if each["url"].split("/")[-1].startswith(places[1].split()[1])
        )
        mesos.change_agent(lost, "partitioned")
        again = bench.wait_until_known(scheduler, "t", 1, attempt=2)
        assert bench.wait("t", 0).pid == before[0].pid
        assert scheduler.status("t").containers[1].where == places[0]
        assert "its agent is lost" in scheduler.status("t").containers[1].last_error
        wait_until(lambda: not runs(before[1].pid), _BACK_S, "the old copy has ended")
        mesos.change_agent(lost, "up")
        assert runs(again.pid)

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({"manager_memory_mb": 20000}, "needs 0.6 cpus, 20128 mem; 127.0.0.2: it offers 9216 of 20128 mem"),
            ({"constraints": [["rack", "IS", "c"]]}, "127.0.0.3: rack IS c does not hold: rack is b"),
        ],
        ids=["memory", "constraint"],
    )
    def test_a_container_without_room_says_what_it_lacks(
        self, options: dict[str, object], bench: Bench, more: dict[str, object], said: str
    ) -> None:
        """What was offered, by agent, and what was needed; a constraint too."""
        huge = MesosScheduler.open({**options, **more})
        huge.schedule(bench.job("t", "serve"))
        wait_until(lambda: said in huge.status("t").containers[0].last_error, _WITHIN_S, said)
        huge.kill("t")

    def test_a_container_that_was_removed_is_added_again(self, scheduler: Scheduler, bench: Bench) -> None:
        """Its attempts begin with 1 again, and its claim is later than those of the former attempts."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        bench.wait_until_known(scheduler, "t", 1)
        scheduler.restart("t", 1)
        former = bench.wait_until_known(scheduler, "t", 1, attempt=2)
        scheduler.update("t", [], [1])
        assert not runs(former.pid)
        scheduler.update("t", [bench.spec("t", 1)], [])
        again = bench.wait_until_known(scheduler, "t", 1)
        assert again.attempt == 1
        assert scheduler.status("t").containers[1] == ContainerStatus(1, True, 1)
        assert runs(again.pid)

    # -- supervisors

    def test_a_supervisor_that_starts_again_finds_its_containers(
        self, scheduler: Scheduler, other: Scheduler, bench: Bench, mesos: MesosCluster
    ) -> None:
        """Its death ends no container; what has ended meanwhile starts again, and nothing runs twice."""
        scheduler.schedule(bench.job("t", "serve", "serve", "serve"))
        before = [bench.wait_until_known(scheduler, "t", number).pid for number in range(3)]
        _kill_supervisor(self.root)
        status = other.status("t")
        assert (status.state, status.topology_id) == (SchedulerState.RUNNING, "t-1")
        assert "heron restart t" in status.containers[0].last_error
        os.kill(before[2], signal.SIGKILL)
        other.restart("t", 1)
        bench.wait_until_known(scheduler, "t", 1, attempt=2)
        bench.wait_until_known(scheduler, "t", 2, attempt=2)
        assert bench.wait("t", 0).pid == before[0]
        assert scheduler.status("t").containers[0] == ContainerStatus(0, True, 1)
        assert len(mesos.containers()) == 3

    def test_kill_works_without_a_supervisor(self, scheduler: Scheduler, bench: Bench, mesos: MesosCluster) -> None:
        """The command subscribes itself, and tears the framework down."""
        scheduler.schedule(bench.job("t", "serve", "deaf"))
        executors = [bench.wait("t", number) for number in range(2)]
        _kill_supervisor(self.root)
        scheduler.kill("t")
        bench.wait_until_nothing_is_left("t", *executors)
        assert scheduler.status("t") == JobStatus(SchedulerState.ABSENT)
        assert mesos.state()["frameworks"] == []

    def test_a_kill_that_mesos_refuses_keeps_the_job(
        self, options: dict[str, object], scheduler: Scheduler, bench: Bench, mesos: MesosCluster
    ) -> None:
        """The principal has lost its right meanwhile; the containers run on, and a later kill must find them."""
        scheduler.schedule(bench.job("t", "serve"))
        executor = bench.wait_until_known(scheduler, "t", 0)
        _kill_supervisor(self.root)
        with pytest.raises(SchedulerError, match="its containers may run on: Not authorized to use roles"):
            MesosScheduler.open({**options, "role": "batch"}).kill("t")
        assert runs(executor.pid)
        assert len(mesos.state()["frameworks"]) == 1
        scheduler.kill("t")
        bench.wait_until_nothing_is_left("t", executor)
        assert mesos.state()["frameworks"] == []

    @pytest.mark.parametrize("command", ["restart", "update"])
    def test_a_key_that_cannot_be_used_ends_nothing(
        self, options: dict[str, object], scheduler: Scheduler, bench: Bench, command: str
    ) -> None:
        """The command says so before it starts the supervisor again."""
        scheduler.schedule(bench.job("t", "serve"))
        executor = bench.wait_until_known(scheduler, "t", 0)
        _kill_supervisor(self.root)
        wrong = MesosScheduler.open({**options, "key_file": "/nowhere/mesos.key"})
        with pytest.raises(SchedulerError, match=r"/nowhere/mesos\.key does not exist"):
            wrong.restart("t", 0) if command == "restart" else wrong.update("t", [], [0])
        assert runs(executor.pid)
        assert scheduler.status("t").state is SchedulerState.RUNNING
        scheduler.kill("t")

    def test_containers_end_with_the_failover_timeout(
        self, options: dict[str, object], bench: Bench, mesos: MesosCluster
    ) -> None:
        """Then Mesos has removed the framework: the job has failed, commands say so, and the name is free."""
        short = MesosScheduler.open({**options, "failover_timeout_s": 0.5})
        short.schedule(bench.job("t", "serve"))
        executor = bench.wait_until_known(short, "t", 0)
        _kill_supervisor(self.root)
        wait_until(lambda: not runs(executor.pid), _BACK_S, "Mesos has ended the container")
        wait_until(lambda: mesos.state()["frameworks"] == [], _BACK_S, "Mesos has removed the framework")
        with pytest.raises(SchedulerError, match="Framework has been removed"):
            short.restart("t", 0)
        assert short.status("t").state is SchedulerState.FAILED
        short.kill("t")
        assert short.status("t") == JobStatus(SchedulerState.ABSENT)

    def test_of_two_supervisors_the_newer_has_the_job(
        self, options: dict[str, object], scheduler: Scheduler, bench: Bench, mesos: MesosCluster, tmp_path: Path
    ) -> None:
        """The job folder was copied to another machine; the older supervisor ends, and no container does."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        before = [bench.wait_until_known(scheduler, "t", number).pid for number in range(2)]
        old = _supervisor(self.root)
        copy = tmp_path / "elsewhere"
        (copy / "t").mkdir(parents=True, mode=0o700)
        copy.chmod(0o700)
        for name in ("job.json", "mesos.json", "c0.json", "c1.json"):
            (copy / "t" / name).write_bytes((self.root / "t" / name).read_bytes())
            (copy / "t" / name).chmod(0o600)
        newer = MesosScheduler.open({**options, "root": str(copy)})
        newer.resume("t")
        wait_until(lambda: not runs(old), _BACK_S, "the older supervisor has ended")
        wait_until(lambda: all(each.running for each in newer.status("t").containers), _BACK_S, "both are known")
        assert [each.attempts for each in newer.status("t").containers] == [1, 1]
        assert all(map(runs, before))
        assert len(mesos.containers()) == 2
        newer.kill("t")

    def test_logs_come_from_the_sandbox(self, scheduler: Scheduler, bench: Bench) -> None:
        """`heron logs` reads what the process of the attempt prints: the logs of its executor and their names."""
        scheduler.schedule(bench.job("t", "serve"))
        spec_file = bench.wait_until_known(scheduler, "t", 0).spec_file
        logs = Path(json.loads(spec_file.read_bytes())["log_dir"])
        logs.mkdir(exist_ok=True)
        (logs / "count-5.out").write_text("one\ntwo\nthree\n")
        wait_until(lambda: scheduler.output("t", 0, 2), _WITHIN_S, "the lines are printed")
        assert list(scheduler.output("t", 0, 2)) == ["count-5 | two", "count-5 | three"]
        with pytest.raises(SchedulerError, match="no container 7"):
            scheduler.output("t", 7, 10)

    def test_an_interpreter_without_heron_says_so(self, options: dict[str, object], bench: Bench) -> None:
        """The mistake of a new user: the status has the end of the process and its last line."""
        wrong = MesosScheduler.open({**options, "python": "/usr/bin/python3"})
        wrong.schedule(bench.job("t", "serve"))
        said = "No module named"
        wait_until(lambda: said in wrong.status("t").containers[0].last_error, _WITHIN_S, said)
        wrong.kill("t")

    def test_the_secrets_of_a_spec_are_not_shown(self, scheduler: Scheduler, bench: Bench, mesos: MesosCluster) -> None:
        """Everyone who may read the state of Mesos sees the variables of tasks."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        shown = json.dumps(mesos.state()) + "".join(each.read_text() for each in mesos.folder.glob("agent-*.json"))
        assert "HERON_SEALED" in shown
        assert str(bench.run_dir("t")) not in shown

    # -- heron profiles check

    def test_check_names_the_master_and_the_offers(self, scheduler: Scheduler, mesos: MesosCluster) -> None:
        """It leaves no framework."""
        said = scheduler.check(10.0)
        assert "role streaming" in said
        assert "127.0.0.2" in said
        assert mesos.state()["frameworks"] == []

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({"secret": "wrong"}, r"Incorrect credentials \(401\); correct scheduler.principal and scheduler.secret"),
            ({"role": "batch"}, "Not authorized to use roles.*correct scheduler.role"),
            ({"masters": ["http://127.0.0.1:1"]}, "127.0.0.1:1 does not answer.*correct scheduler.masters"),
            ({"masters": ["http://127.0.0.1:1/x"]}, "is not the URL of a master"),
            ({"key_file": "/nowhere/mesos.key"}, "/nowhere/mesos.key does not exist"),
            ({"ca_file": "/nowhere/ca.pem"}, "scheduler.ca_file"),
        ],
        ids=["secret", "right", "address", "url", "key", "certificates"],
    )
    def test_check_explains(self, options: dict[str, object], more: dict[str, object], said: str) -> None:
        """Each mistake has its remedy; a job is refused with the same words."""
        with pytest.raises(SchedulerError, match=said):
            MesosScheduler.open({**options, **more}).check(5.0)

    def test_a_user_that_tasks_may_not_have_is_named(self, options: dict[str, object], bench: Bench) -> None:
        """Mesos checks this right when a task is launched, so it shows in the status."""
        wrong = MesosScheduler.open({**options, "user": "nobody"})
        wrong.schedule(bench.job("t", "serve"))
        said = "Not authorized to launch as user 'nobody'"
        wait_until(lambda: said in wrong.status("t").containers[0].last_error, _WITHIN_S, said)
        wrong.kill("t")


def _supervisor(root: Path) -> int:
    return int(json.loads((root / "t" / "processes.json").read_bytes())["supervisor"]["pid"])


def _kill_supervisor(root: Path) -> None:
    pid = _supervisor(root)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not runs(pid), _WITHIN_S, "the supervisor is gone")
