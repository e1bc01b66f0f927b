"""The scheduler contract on the test server of Marathon, whose user has the rights of the README and no others."""

from __future__ import annotations

import os
import re
import signal
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from heron.errors import SchedulerError
from heron.spi.scheduler import ContainerStatus, Scheduler, SchedulerState
from heron.spi.statemgr import NodeKind
from heron_scheduler_kit.managed.launch_file import decode_launch_file
from heron_scheduler_marathon.scheduler import MarathonScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract, runs
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.http_service import Fault
from heron_testing_servers.marathon import MarathonServer

pytestmark = pytest.mark.servers

_WITHIN_S = 10.0
_BACK_S = 60.0
_GROUP = "/contract"
_TOKEN = "token-of-the-contract"
_RIGHTS = ("view", "create", "update", "delete")


@pytest.fixture(autouse=True, scope="module")
def user(marathon: MarathonServer) -> None:
    marathon.add_user(_TOKEN, *((each, _GROUP) for each in _RIGHTS))


@pytest.fixture
def relay(marathon: MarathonServer) -> Iterator[Relay]:
    """Connects the driver to Marathon, and can cut the connections."""
    relay = Relay(marathon.address)
    yield relay
    relay.close()


@pytest.fixture(autouse=True)
def _no_fault_is_left(marathon: MarathonServer) -> Iterator[None]:
    yield
    assert marathon.faults() == []


def ask(marathon: MarathonServer, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - of any shape
    """Do what a person does in Marathon's pages."""
    headers = {"Authorization": f"token={marathon.token}"}
    answer = httpx.request(method, f"{marathon.url}/v2/{path}", json=body, headers=headers, timeout=30.0)
    return answer.raise_for_status().json() if answer.content else None


class TestMarathonScheduler(SchedulerContract):
    name = "marathon"
    driver_class = MarathonScheduler
    uses_state = True

    @pytest.fixture
    def options(self, relay: Relay, tmp_path: Path) -> dict[str, object]:
        host, port = relay.address
        key = tmp_path / "key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        return {
            "addresses": [f"http://{host}:{port}"],
            "token": _TOKEN,
            "group": _GROUP,
            "key_file": str(key),
            "python": sys.executable,
            "executor": [*FAKE_EXECUTOR],
            "stop_grace_s": 1.0,
            "start_s": 60.0,
        }

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def test_marathon_and_the_state_manager_keep_nothing(
        self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer
    ) -> None:
        """Sealed launch files have secrets, and an empty group would be listed for ever."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        bench.wait("t", 1)
        scheduler.kill("t")
        assert f"{_GROUP}/t" not in {each["id"] for each in ask(marathon, "GET", f"groups/{_GROUP}")["groups"]}
        with bench.state() as statemgr:
            assert statemgr is not None
            assert [kind for kind in NodeKind if statemgr.list(kind)] == []

    # -- lost answers: the work was done, and the command has not heard of it

    def test_a_lost_answer_to_a_new_container_leaves_nothing(
        self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer
    ) -> None:
        """The outcome is unknown, so the command ends what it has begun; the next one starts each container once."""
        marathon.fault(Fault("POST /v2/apps.*", "drop"))
        with pytest.raises(SchedulerError, match="does not answer"):
            scheduler.schedule(bench.job("t", "serve", "serve"))
        assert scheduler.status("t").state is SchedulerState.ABSENT
        assert marathon.containers() == {}
        scheduler.schedule(bench.job("t", "serve", "serve"))
        for number in range(2):
            bench.wait_until_known(scheduler, "t", number)
        assert len(marathon.containers()) == 2

    def test_a_lost_answer_to_an_update_takes_it_back(
        self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer
    ) -> None:
        """The running container is not touched, and the same update works afterwards."""
        scheduler.schedule(bench.job("t", "serve"))
        first = bench.wait_until_known(scheduler, "t", 0)
        marathon.fault(Fault("POST /v2/apps.*", "drop"))
        with pytest.raises(SchedulerError, match="does not answer"):
            scheduler.update("t", [bench.spec("t", 1)], [])
        assert scheduler.status("t").containers == (ContainerStatus(0, True, 1),)
        wait_until(lambda: len(marathon.containers()) == 1, _BACK_S, "the new container has ended")
        bench.forget("t")
        scheduler.update("t", [bench.spec("t", 1)], [])
        assert len(marathon.containers()) == 2
        assert runs(first.pid)

    def test_a_lost_answer_to_a_removal_is_repeated(
        self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer
    ) -> None:
        """The container has ended; the job no longer has it, and the next update removes what is left."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        first = bench.wait_until_known(scheduler, "t", 0)
        bench.wait_until_known(scheduler, "t", 1)
        marathon.fault(Fault("DELETE /v2/apps.*", "drop"))
        with pytest.raises(SchedulerError, match="does not answer"):
            scheduler.update("t", [], [1])
        wait_until(lambda: len(marathon.containers()) == 1, _BACK_S, "the removed container has ended")
        assert scheduler.status("t").containers == (ContainerStatus(0, True, 1),)
        assert runs(first.pid)

    def test_a_lost_answer_to_a_kill_is_repeated(
        self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer
    ) -> None:
        """The job stays known until a command has seen its end."""
        scheduler.schedule(bench.job("t", "serve"))
        executor = bench.wait_until_known(scheduler, "t", 0)
        marathon.fault(Fault("DELETE /v2/groups.*", "drop"))
        with pytest.raises(SchedulerError, match="does not answer"):
            scheduler.kill("t")
        scheduler.kill("t")
        bench.wait_until_nothing_is_left("t", executor)
        assert scheduler.status("t").state is SchedulerState.ABSENT

    # -- locks

    def test_a_container_without_room_does_not_hold_a_kill_up(
        self, options: dict[str, object], bench: Bench, marathon: MarathonServer
    ) -> None:
        """Its deployment would wait for ever. It only starts our app, so it is reverted, without `force`."""
        with bench.state() as statemgr:
            assert statemgr is not None
            huge = MarathonScheduler.open({**options, "manager_memory_mb": 10**6})
            huge.use_state(statemgr)
            huge.schedule(bench.job("t", "serve"))
            said = "InsufficientMemory"
            wait_until(lambda: said in huge.status("t").containers[0].last_error, _WITHIN_S, said)
            assert "no agent fits" in huge.status("t").containers[0].last_error
            huge.kill("t")
        assert ask(marathon, "GET", "deployments") == []
        assert f"{_GROUP}/t" not in {each["id"] for each in ask(marathon, "GET", f"groups/{_GROUP}")["groups"]}

    def test_a_deployment_of_a_person_is_waited_for_and_named(
        self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer
    ) -> None:
        """Nobody forces it: the command says whom it waits for, and works when that deployment has ended."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        for number in range(2):
            bench.wait_until_known(scheduler, "t", number)
        changed = ask(marathon, "PUT", f"apps{_GROUP}/t/container-1", {"instances": 2, "mem": 10**6})
        lock = changed["deploymentId"]
        said = f"deployment {lock} of {_GROUP}/t/container-1: still at work after 4 s"
        with pytest.raises(SchedulerError, match=re.escape(said)):
            scheduler.kill("t")
        assert [each["id"] for each in ask(marathon, "GET", "deployments")] == [lock]
        ask(marathon, "DELETE", f"deployments/{lock}?force=true")
        scheduler.kill("t")

    # -- what Marathon and its agents do

    def test_a_killed_task_is_replaced(self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer) -> None:
        """A person kills it in Marathon's pages: it gets another attempt, and the others keep theirs."""
        scheduler.schedule(bench.job("t", "serve", "deaf"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        ask(marathon, "DELETE", f"apps{_GROUP}/t/container-1/tasks")
        assert bench.wait_until_known(scheduler, "t", 1, attempt=2).pid != second.pid
        assert bench.wait("t", 0).pid == first.pid

    def test_a_launcher_that_hangs_is_ended_by_a_restart(
        self, options: dict[str, object], bench: Bench, marathon: MarathonServer
    ) -> None:
        """Its watchdog stands still with it. Marathon kills the task, and starts another one."""
        with bench.state() as statemgr:
            assert statemgr is not None
            scheduler = MarathonScheduler.open({**options, "start_s": 24.0})
            scheduler.use_state(statemgr)
            scheduler.schedule(bench.job("t", "serve"))
            first = bench.wait_until_known(scheduler, "t", 0)
            (launcher,) = marathon.containers().values()
            os.kill(launcher, signal.SIGSTOP)
            scheduler.restart("t", 0)
            assert bench.wait_until_known(scheduler, "t", 0, attempt=2).pid != first.pid
            # With `wipe`, the new task need not wait for the end of the old one, which has its grace.
            wait_until(lambda: not runs(launcher), _WITHIN_S, "the old launcher has ended")
            scheduler.kill("t")

    def test_a_lost_agent_is_replaced_and_its_orphan_ends(
        self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer
    ) -> None:
        """The old copy runs on behind the cut link, until it sees the later attempt in the state manager."""
        scheduler.schedule(bench.job("t", "serve"))
        first = bench.wait_until_known(scheduler, "t", 0)
        (task,) = ask(marathon, "GET", f"apps{_GROUP}/t/container-0/tasks")["tasks"]
        marathon.lose_agent(task["host"])
        try:
            again = bench.wait_until_known(scheduler, "t", 0, attempt=2)
            assert again.pid != first.pid
            wait_until(lambda: not runs(first.pid), _BACK_S, "the orphan has ended")
            scheduler.kill("t")
        finally:
            marathon.return_agent(task["host"])

    def test_a_topology_on_a_lost_agent_can_be_killed(
        self, options: dict[str, object], bench: Bench, marathon: MarathonServer
    ) -> None:
        """Without `wipe` its deployment would wait for the agent. The orphan ends by itself."""
        with bench.state() as statemgr:
            assert statemgr is not None
            patient = MarathonScheduler.open({**options, "unreachable_s": 3600})
            patient.use_state(statemgr)
            patient.schedule(bench.job("t", "serve"))
            executor = bench.wait_until_known(patient, "t", 0)
            (task,) = ask(marathon, "GET", f"apps{_GROUP}/t/container-0/tasks")["tasks"]
            marathon.lose_agent(task["host"])
            try:
                said = f"agent {task['host']} is unreachable"
                wait_until(lambda: said in patient.status("t").containers[0].last_error, _WITHIN_S, said)
                patient.kill("t")
                wait_until(lambda: not runs(executor.pid), _BACK_S, "the orphan has ended")
            finally:
                marathon.return_agent(task["host"])

    def test_containers_outlive_marathon(self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer) -> None:
        """While Marathon is away its containers go on, and it finds the same processes again."""
        scheduler.schedule(bench.job("t", "serve"))
        before = bench.wait_until_known(scheduler, "t", 0)
        marathon.process.kill()
        try:
            with pytest.raises(SchedulerError, match="does not answer"):
                scheduler.status("t")
            assert runs(before.pid)
        finally:
            marathon.start()
        wait_until(lambda: _runs_first(scheduler), _BACK_S, "Marathon knows the container again")
        assert bench.wait("t", 0).pid == before.pid

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"python": "/usr/bin/python3"}, "No module named"),
            ({"image": "missing"}, "TASK_FAILED"),
        ],
    )
    def test_a_container_that_cannot_start_says_why(
        self, options: dict[str, object], bench: Bench, wrong: dict[str, str], said: str
    ) -> None:
        """The mistakes of a new user: the status has Marathon's words, and the last line of the process."""
        with bench.state() as statemgr:
            assert statemgr is not None
            failing = MarathonScheduler.open({**options, **wrong})
            failing.use_state(statemgr)
            failing.schedule(bench.job("t", "serve"))
            wait_until(lambda: said in failing.status("t").containers[0].last_error, _WITHIN_S, said)
            failing.kill("t")

    def test_an_agent_without_the_key_says_so(
        self, scheduler: Scheduler, bench: Bench, options: dict[str, object], marathon: MarathonServer
    ) -> None:
        """The status has the file and the machine; with the key, the container starts."""
        scheduler.schedule(bench.job("t", "deaf"))
        bench.wait_until_known(scheduler, "t", 0)
        key = Path(str(options["key_file"]))
        kept = key.rename(key.with_name("kept"))
        ask(marathon, "DELETE", f"apps{_GROUP}/t/container-0/tasks")
        said = f"the key file {key} does not exist on {os.uname().nodename}"
        wait_until(lambda: said in scheduler.status("t").containers[0].last_error, _BACK_S, said)
        kept.rename(key)
        bench.wait_until_known(scheduler, "t", 0, attempt=2)

    # -- heron profiles check

    def test_check_names_marathon(self, options: dict[str, object], marathon: MarathonServer) -> None:
        """It plans an app, and leaves nothing."""
        said = MarathonScheduler.open(options).check(_WITHIN_S)
        assert re.fullmatch(rf"Marathon 1\.\S+ at \S+, group {_GROUP}", said)
        assert f"{_GROUP}/check" not in {each["id"] for each in ask(marathon, "GET", "groups")["groups"]}

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"token": ""}, "401.; set scheduler.token .DC/OS., or scheduler.login .*none was sent"),
            ({"token": "swordfish"}, "401.; correct scheduler.token"),
            (
                {"token": "", "login": "ann", "password": "swordfish"},
                "401.; correct scheduler.login and scheduler.password",
            ),
            ({"addresses": ["http://127.0.0.1:9"]}, "does not answer: .*refused; correct scheduler.addresses"),
            ({"key_file": "/nowhere/key"}, "the key file /nowhere/key does not exist on"),
        ],
    )
    def test_a_wrong_credential_or_address_is_explained(
        self, options: dict[str, object], wrong: dict[str, object], said: str
    ) -> None:
        """`heron profiles check` names the key to correct, and does not show the secret."""
        with pytest.raises(SchedulerError, match=said) as caught:
            MarathonScheduler.open({**options, **wrong}).check(_WITHIN_S)
        assert "swordfish" not in str(caught.value)

    def test_another_server_is_told_from_marathon(self, options: dict[str, object], marathon: MarathonServer) -> None:
        """Mesos answers too, at the port beside."""
        with pytest.raises(SchedulerError, match="it is not Marathon; correct scheduler"):
            MarathonScheduler.open({**options, "addresses": [marathon.mesos_url]}).check(_WITHIN_S)

    def test_the_second_address_is_used(self, options: dict[str, object]) -> None:
        """The first server of several is away."""
        addresses = ["http://127.0.0.1:9", *options["addresses"]]  # type: ignore[misc] # a list
        assert "Marathon" in MarathonScheduler.open({**options, "addresses": addresses}).check(_WITHIN_S)

    def test_a_missing_right_is_named(self, options: dict[str, object], marathon: MarathonServer) -> None:
        """Marathon's words, and where the rights are listed."""
        marathon.add_user("lesser", *((each, _GROUP) for each in _RIGHTS if each != "create"))
        said = (
            "Not Authorized to perform this action! .403.; grant the rights in the README of heron-scheduler-marathon"
        )
        with pytest.raises(SchedulerError, match=said):
            MarathonScheduler.open({**options, "token": "lesser"}).check(_WITHIN_S)

    # -- what people see

    def test_the_apps_have_no_secrets(self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer) -> None:
        """Everyone who may read apps sees them, and the files of the sandbox."""
        scheduler.schedule(bench.job("t", "serve"))
        executor = bench.wait("t", 0)
        shown = str(ask(marathon, "GET", f"groups/{_GROUP}/t?embed=group.apps&embed=group.apps.tasks"))
        assert str(bench.log_dir("t")) not in shown, "a part of the spec"
        assert str(bench.log_dir("t").parents[1] / "state") not in shown, "a part of the state manager's options"
        assert executor.spec_mode == 0o600
        (launcher,) = marathon.containers().values()
        sandbox = Path(f"/proc/{launcher}/cwd").resolve()
        assert (sandbox / "stdout").is_file()
        assert launch_files_below(sandbox) == []

    def test_links_and_output_show_a_container(self, scheduler: Scheduler, bench: Bench) -> None:
        """A person goes on in Marathon's pages, and `heron logs` shows what a launcher has printed."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        links = {each.title: each.url for each in scheduler.links("t")}
        assert links["group"].endswith("/ui/#/group/%2Fcontract%2Ft")
        assert links["container 0"].endswith("/ui/#/apps/%2Fcontract%2Ft%2Fcontainer-0")

        def printed() -> bool:
            return any("container 0 starts, attempt 1" in each for each in scheduler.output("t", 0, 5))

        wait_until(printed, _WITHIN_S, "the output of the launcher")

    def test_a_group_of_another_owner_is_left_alone(
        self, scheduler: Scheduler, bench: Bench, marathon: MarathonServer
    ) -> None:
        """A person may have made a group of that name."""
        ask(marathon, "PUT", f"apps{_GROUP}/t/mine", {"cmd": "sleep 1001", "instances": 0})
        try:
            with pytest.raises(SchedulerError, match="dcos marathon group remove /contract/t"):
                scheduler.schedule(bench.job("t", "serve"))
            assert ask(marathon, "GET", f"apps{_GROUP}/t/mine")["app"]["cmd"] == "sleep 1001"
        finally:
            ask(marathon, "DELETE", f"groups{_GROUP}/t?force=true")
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)


def launch_files_below(folder: Path) -> list[Path]:
    """Return the files that open as launch files."""
    found = []
    for each in folder.rglob("*"):
        with suppress(OSError, zlib.error, msgspec.MsgspecError):
            decode_launch_file(each.read_bytes())
            found.append(each)
    return found


def _runs_first(scheduler: Scheduler) -> bool:
    """Return whether Marathon answers, and the first attempt of the container runs."""
    try:
        return scheduler.status("t").containers == (ContainerStatus(0, True, 1),)
    except SchedulerError:
        return False
