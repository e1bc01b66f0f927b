"""The scheduler contract on the test server of Aurora, whose user has the rights of the README and no others."""

from __future__ import annotations

import getpass
import os
import re
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from heron.errors import SchedulerError
from heron.planner.packing_plan import Resource
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerStatus, Job, Scheduler, SchedulerState
from heron.spi.statemgr import NodeKind
from heron_scheduler_aurora.aurora_api import AuroraApi, AuroraRefusal
from heron_scheduler_aurora.aurora_job import AuroraJob
from heron_scheduler_aurora.job_config import config_size
from heron_scheduler_aurora.options import AuroraOptions
from heron_scheduler_aurora.scheduler import AuroraScheduler
from heron_scheduler_aurora.task_states import active
from heron_scheduler_kit.managed.launch_file import decode_launch_file
from heron_scheduler_kit.managed.rest_api import Json, fields
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract, runs
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.aurora import AuroraCluster
from heron_testing_servers.http_service import Fault

pytestmark = pytest.mark.servers

_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_README = Path(__file__).parents[1] / "README.md"
_WITHIN_S = 10.0
_BACK_S = 60.0
_ROLE = "contract"
_MB = 1024 * 1024


def rights(role: str) -> list[str]:
    """Return the rights of the README for a role."""
    found = re.findall(r"^    (thrift\.\S+:)ROLE$", _README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == 6
    return [f"{each}{role}" for each in found]


@pytest.fixture(scope="module")
def aurora(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuroraCluster]:
    """An Aurora with users, one of whom lacks a right, and with a small quota for a role."""
    users: dict[str, Json] = {
        "ann": {
            "password": "open sesame",
            "permissions": [*rights(_ROLE), *rights("poor"), *rights(getpass.getuser())],
        },
        "lesser": {"password": "open sesame", "permissions": rights(getpass.getuser())[1:]},
        "administrator": {"password": "administrator", "permissions": ["*"]},
    }
    made = AuroraCluster(tmp_path_factory.mktemp("aurora"), users=users, quotas={"poor": [0.1, 64.0, 64.0]})
    made.start()
    yield made
    made.kill()


@pytest.fixture
def relay(aurora: AuroraCluster) -> Iterator[Relay]:
    """Connects the driver to Aurora, and can cut the connections."""
    relay = Relay(aurora.address)
    yield relay
    relay.close()


@pytest.fixture(autouse=True)
def _no_fault_is_left(aurora: AuroraCluster) -> Iterator[None]:
    yield
    assert aurora.faults() == []


class _Bench(Bench):
    """Jobs have the role and the environment of a submission."""

    role = _ROLE

    def job(self, topology: str, *tasks: str, attached: bool = False) -> Job:
        return replace(super().job(topology, *tasks, attached=attached), owner="ann", role=self.role, env="test")


class _Person:
    """What a person does with the job ``t`` with Aurora's own tools."""

    def __init__(self, aurora: AuroraCluster) -> None:
        name, password = "administrator", "administrator"
        given = AuroraOptions(cluster="any", addresses=(aurora.url,), login=name, password=password)
        self.api = AuroraApi(given)
        self.key: Json = {"role": _ROLE, "environment": "test", "name": "t"}
        self.job = AuroraJob(self.api, self.key, "t")

    def tasks(self) -> dict[int, Json]:
        return active(self.job.tasks())


@pytest.fixture
def person(aurora: AuroraCluster) -> _Person:
    return _Person(aurora)


class TestAuroraScheduler(SchedulerContract):
    name = "aurora"
    driver_class = AuroraScheduler

    @pytest.fixture
    def options(self, aurora: AuroraCluster, relay: Relay, tmp_path: Path) -> dict[str, object]:
        host, port = relay.address
        key = tmp_path / "key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        (observer, *_) = aurora.hosts().values()
        return {
            "addresses": [f"http://{host}:{port}"],
            "cluster": cluster_name(aurora),
            "login": "ann",
            "password": "open sesame",
            "observer_port": int(observer["url"].rpartition(":")[2]),
            "key_file": str(key),
            "python": sys.executable,
            "executor": [*FAKE_EXECUTOR],
            "stop_grace_s": 1.0,
            "start_s": 60.0,
        }

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        state = DriverRef("statemgr", "localfs", _LOCALFS, {"root": str(tmp_path / "state")})
        with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
            yield _Bench(tmp_path, Path(run_root), state)

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def test_the_state_manager_keeps_nothing(self, scheduler: Scheduler, bench: Bench, aurora: AuroraCluster) -> None:
        """Sealed launch files have secrets."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        bench.wait("t", 1)
        scheduler.kill("t")
        assert aurora.containers() == {}
        with bench.state() as statemgr:
            assert statemgr is not None
            assert [kind for kind in NodeKind if statemgr.list(kind)] == []

    # -- lost answers: the work was done, and the command has not heard of it

    def test_a_lost_answer_to_a_new_job_leaves_nothing(
        self, scheduler: Scheduler, bench: Bench, aurora: AuroraCluster
    ) -> None:
        """The outcome is unknown, so the command ends what it has begun; the next one starts each container once."""
        aurora.fault(Fault("createJob", "drop"))
        with pytest.raises(SchedulerError, match="does not answer"):
            scheduler.schedule(bench.job("t", "serve", "serve"))
        assert scheduler.status("t").state is SchedulerState.ABSENT
        assert aurora.containers() == {}
        scheduler.schedule(bench.job("t", "serve", "serve"))
        for number in range(2):
            bench.wait_until_known(scheduler, "t", number)
        assert len(aurora.containers()) == 2

    @pytest.mark.parametrize("method", ["addInstances", "startJobUpdate"])
    def test_a_lost_answer_to_an_update_takes_it_back(
        self, scheduler: Scheduler, bench: Bench, aurora: AuroraCluster, method: str
    ) -> None:
        """The running container is not touched, and the same update works afterwards."""
        scheduler.schedule(bench.job("t", "serve"))
        first = bench.wait_until_known(scheduler, "t", 0)
        spec = bench.spec("t", 1)
        if method == "startJobUpdate":
            spec = replace(spec, required=Resource(1.0, 2048 * _MB, 0))
        aurora.fault(Fault(method, "drop"))
        with pytest.raises(SchedulerError, match="does not answer"):
            scheduler.update("t", [spec], [])
        assert scheduler.status("t").containers == (ContainerStatus(0, True, 1),)
        wait_until(lambda: len(aurora.containers()) == 1, _BACK_S, "the new container has ended")
        bench.forget("t")
        scheduler.update("t", [spec], [])
        assert len(aurora.containers()) == 2
        assert runs(first.pid)

    def test_a_lost_answer_to_a_kill_is_repeated(
        self, scheduler: Scheduler, bench: Bench, aurora: AuroraCluster
    ) -> None:
        """The job stays known until a command has seen its end."""
        scheduler.schedule(bench.job("t", "serve"))
        executor = bench.wait_until_known(scheduler, "t", 0)
        aurora.fault(Fault("killTasks", "drop"))
        with pytest.raises(SchedulerError, match="does not answer"):
            scheduler.kill("t")
        scheduler.kill("t")
        bench.wait_until_nothing_is_left("t", executor)
        assert scheduler.status("t").state is SchedulerState.ABSENT

    # -- updates

    def test_containers_that_fit_are_copies_and_larger_ones_are_a_job_update(
        self, scheduler: Scheduler, bench: Bench, person: _Person
    ) -> None:
        """Either way, the instances that run are not touched, and each container gets its own launch file."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        before = [bench.wait_until_known(scheduler, "t", number).pid for number in range(2)]
        known = person.job.updates()
        scheduler.update("t", [bench.spec("t", 2)], [])
        assert person.job.updates() == known
        large = replace(bench.spec("t", 3), required=Resource(1.0, 2048 * _MB, 0))
        scheduler.update("t", [large], [])
        (update,) = (each for each in person.job.updates() if each not in known)
        assert update["user"] == "ann"
        sizes = {number: config_size(_config(each)).memory_mb for number, each in person.tasks().items()}
        assert sizes == {0: 512, 1: 512, 2: 512, 3: 2176}
        status = scheduler.status("t")
        assert status.containers == tuple(ContainerStatus(number, True, 1) for number in range(4))
        assert [bench.wait("t", number).pid for number in range(2)] == before

    def test_a_number_that_is_free_again_is_used_again(
        self, scheduler: Scheduler, bench: Bench, person: _Person
    ) -> None:
        """Aurora numbers from its highest instance on; container 5 then has the instance that container 1 had."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        bench.wait_until_known(scheduler, "t", 1)
        scheduler.update("t", [], [1])
        scheduler.update("t", [bench.spec("t", 5)], [])
        bench.wait_until_known(scheduler, "t", 5)
        assert set(person.tasks()) == {0, 1}
        links = {each.title: each.url for each in scheduler.links("t")}
        assert links["container 5"].endswith("/scheduler/contract/test/t/1")

    def test_a_job_update_that_fails_is_rolled_back(
        self, options: dict[str, object], bench: Bench, person: _Person
    ) -> None:
        """Aurora itself removes the instances when one does not stay up; the command says why."""
        with bench.state() as statemgr:
            assert statemgr is not None
            good = AuroraScheduler.open(options)
            good.use_state(statemgr)
            good.schedule(bench.job("t", "serve"))
            first = bench.wait_until_known(good, "t", 0)
            wrong = AuroraScheduler.open({**options, "python": "/usr/bin/python3", "start_s": 20.0, "watch_s": 30})
            wrong.use_state(statemgr)
            with pytest.raises(SchedulerError, match=r"container 1 does not start: .*(ROLL|FAILED)"):
                wrong.update("t", [bench.spec("t", 1)], [])
            wait_until(lambda: set(person.tasks()) == {0}, _BACK_S, "the new instance is gone")
            assert good.status("t").containers == (ContainerStatus(0, True, 1),)
            assert runs(first.pid)
            good.kill("t")

    def test_a_job_update_of_a_person_is_waited_for_and_named(
        self, scheduler: Scheduler, bench: Bench, person: _Person
    ) -> None:
        """`heron update` does not touch it. `heron kill` ends it with the job."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        (whole,) = active(person.job.task(0)).values()
        settings = {
            "updateGroupSize": 1,
            "maxPerInstanceFailures": 0,
            "maxFailedInstances": 0,
            "minWaitInInstanceRunningMs": 3_600_000,
            "rollbackOnFailure": False,
        }
        request = {"taskConfig": {**_config(whole), "priority": 1}, "instanceCount": 1, "settings": settings}
        person.job.update(request)
        with pytest.raises(SchedulerError, match=r"of administrator .ROLLING_FORWARD.: still at work after 4 s"):
            scheduler.update("t", [bench.spec("t", 1)], [])
        scheduler.kill("t")
        assert person.tasks() == {}

    # -- what Aurora and its hosts do

    def test_a_restarted_instance_comes_back(self, scheduler: Scheduler, bench: Bench, person: _Person) -> None:
        """`aurora job restart`: it gets another attempt, and the others keep theirs."""
        scheduler.schedule(bench.job("t", "serve", "deaf"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        person.job.restart(1)
        assert bench.wait_until_known(scheduler, "t", 1, attempt=2).pid != second.pid
        assert bench.wait("t", 0).pid == first.pid

    def test_a_launcher_that_hangs_is_ended_by_a_restart(
        self, options: dict[str, object], bench: Bench, aurora: AuroraCluster
    ) -> None:
        """Its watchdog stands still with it. Aurora ends the processes of the instance, and starts them again."""
        with bench.state() as statemgr:
            assert statemgr is not None
            scheduler = AuroraScheduler.open({**options, "start_s": 24.0})
            scheduler.use_state(statemgr)
            scheduler.schedule(bench.job("t", "serve"))
            first = bench.wait_until_known(scheduler, "t", 0)
            launcher = parent_of(first.pid)
            os.kill(launcher, signal.SIGSTOP)
            scheduler.restart("t", 0)
            assert bench.wait_until_known(scheduler, "t", 0, attempt=2).pid != first.pid
            assert not runs(launcher)
            scheduler.kill("t")

    def test_a_lost_host_is_replaced_and_its_orphan_ends(
        self, scheduler: Scheduler, bench: Bench, aurora: AuroraCluster, person: _Person
    ) -> None:
        """The old copy runs on behind the cut link, until it sees the later attempt in the state manager."""
        scheduler.schedule(bench.job("t", "serve"))
        first = bench.wait_until_known(scheduler, "t", 0)
        address = fields(person.tasks()[0]["assignedTask"])["slaveHost"]
        (name,) = (name for name, each in aurora.hosts().items() if each["hostname"] == address)
        aurora.change_host(name, "partitioned")
        try:
            again = bench.wait_until_known(scheduler, "t", 0, attempt=2)
            assert again.pid != first.pid
            wait_until(lambda: not runs(first.pid), _BACK_S, "the orphan has ended")
            scheduler.kill("t")
        finally:
            aurora.change_host(name, "up")

    def test_containers_outlive_the_scheduler(self, scheduler: Scheduler, bench: Bench, aurora: AuroraCluster) -> None:
        """While Aurora is away its containers go on, and it finds the same processes again."""
        scheduler.schedule(bench.job("t", "serve"))
        before = bench.wait_until_known(scheduler, "t", 0)
        aurora.process.kill()
        try:
            with pytest.raises(SchedulerError, match="does not answer"):
                scheduler.status("t")
            assert runs(before.pid)
        finally:
            aurora.start()
        wait_until(lambda: _runs_first(scheduler), _BACK_S, "Aurora knows the container again")
        assert bench.wait("t", 0).pid == before.pid

    def test_a_container_without_room_says_so(self, options: dict[str, object], bench: Bench) -> None:
        """The words are Aurora's, within 10 s; the topology can be killed meanwhile."""
        with bench.state() as statemgr:
            assert statemgr is not None
            huge = AuroraScheduler.open({**options, "manager_memory_mb": 10**6})
            huge.use_state(statemgr)
            huge.schedule(bench.job("t", "serve"))
            said = "PENDING: Insufficient: RAM"
            wait_until(lambda: said in huge.status("t").containers[0].last_error, _WITHIN_S, said)
            huge.kill("t")

    def test_a_quota_is_told_in_words(self, options: dict[str, object], bench: Bench, aurora: AuroraCluster) -> None:
        """A preferred job counts against the quota of its role; nothing is left."""
        assert isinstance(bench, _Bench)
        bench.role = "poor"
        with bench.state() as statemgr:
            assert statemgr is not None
            rich = AuroraScheduler.open({**options, "tier": "preferred"})
            rich.use_state(statemgr)
            with pytest.raises(SchedulerError, match=r"quota exceeded by .*; use scheduler\.tier: preemptible"):
                rich.schedule(bench.job("t", "serve"))
            assert rich.status("t").state is SchedulerState.ABSENT
            assert aurora.containers() == {}
            assert [kind for kind in NodeKind if statemgr.list(kind)] == []

    def test_an_interpreter_without_heron_says_so(self, options: dict[str, object], bench: Bench) -> None:
        """The mistake of a new user: Aurora has only the end of the process, and starts it less and less often."""
        with bench.state() as statemgr:
            assert statemgr is not None
            wrong = AuroraScheduler.open({**options, "python": "/usr/bin/python3"})
            wrong.use_state(statemgr)
            wrong.schedule(bench.job("t", "serve"))
            said = "FAILED on 127.0.0."
            wait_until(lambda: said in wrong.status("t").containers[0].last_error, _BACK_S, said)
            wrong.kill("t")

    # -- heron profiles check

    def test_check_names_the_cluster(self, options: dict[str, object], aurora: AuroraCluster) -> None:
        """It asks for each right, and leaves nothing."""
        said = AuroraScheduler.open(options).check(_WITHIN_S)
        assert said.endswith(f", cluster {cluster_name(aurora)}")
        assert aurora.containers() == {}

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"login": "", "password": ""}, "401.; set scheduler.login and scheduler.password: none was sent"),
            ({"password": "swordfish"}, "401.; correct scheduler.login and scheduler.password"),
            ({"addresses": ["http://127.0.0.1:9"]}, "does not answer: .*refused; correct scheduler.addresses"),
            ({"cluster": "elsewhere"}, "the profile names cluster 'elsewhere'; correct scheduler.cluster"),
            ({"key_file": "/nowhere/key"}, "the key file /nowhere/key does not exist on"),
        ],
    )
    def test_a_wrong_credential_or_address_is_explained(
        self, options: dict[str, object], wrong: dict[str, object], said: str
    ) -> None:
        """`heron profiles check` names the key to correct, and does not show the secret."""
        with pytest.raises(SchedulerError, match=said) as caught:
            AuroraScheduler.open({**options, **wrong}).check(_WITHIN_S)
        assert "swordfish" not in str(caught.value)

    def test_a_missing_right_is_named(self, options: dict[str, object]) -> None:
        """The first right of the README is missing."""
        said = f"this user may not createJob for role '{getpass.getuser()}'; grant the rights in the README"
        with pytest.raises(SchedulerError, match=said):
            AuroraScheduler.open({**options, "login": "lesser"}).check(_WITHIN_S)

    # -- what people see

    def test_the_job_has_no_secrets(self, scheduler: Scheduler, bench: Bench, person: _Person) -> None:
        """Everyone who may read jobs sees them, and the files of the sandbox."""
        scheduler.schedule(bench.job("t", "serve"))
        executor = bench.wait("t", 0)
        shown = str(person.job.task(0))
        assert "heron_run" in shown
        assert str(bench.log_dir("t")) not in shown, "a part of the spec"
        assert str(bench.log_dir("t").parents[1] / "state") not in shown, "a part of the state manager's options"
        assert executor.spec_mode == 0o600
        sandbox = Path(f"/proc/{parent_of(executor.pid)}/cwd").resolve()
        assert list(sandbox.rglob("stdout"))
        assert launch_files_below(sandbox) == []

    def test_links_and_output_show_a_container(self, scheduler: Scheduler, bench: Bench, aurora: AuroraCluster) -> None:
        """A person goes on in Aurora's pages, and `heron logs` shows what a launcher has printed."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        links = {each.title: each.url for each in scheduler.links("t")}
        assert links["instances"] == f"aurora job status {cluster_name(aurora)}/contract/test/t"
        assert links["job"].endswith("/scheduler/contract/test/t")

        def printed() -> bool:
            return any("container 0 starts, attempt 1" in each for each in scheduler.output("t", 0, 5))

        wait_until(printed, _WITHIN_S, "the output of the launcher")

    def test_a_job_of_another_owner_is_left_alone(self, scheduler: Scheduler, bench: Bench, person: _Person) -> None:
        """A person may have made a job of that name."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        with bench.state() as statemgr:
            assert statemgr is not None
            kept = statemgr.get(NodeKind.JOB, "t")
            assert kept is not None
            statemgr.delete(NodeKind.JOB, "t")
            with pytest.raises(SchedulerError, match=r"end it with `aurora job killall .*/contract/test/t`"):
                scheduler.schedule(bench.job("t", "serve"))
            assert set(person.tasks()) == {0}
            statemgr.set(NodeKind.JOB, "t", kept.value)


def launch_files_below(folder: Path) -> list[Path]:
    """Return the files that open as launch files."""
    found = []
    for each in folder.rglob("*"):
        with suppress(OSError, zlib.error, msgspec.MsgspecError):
            decode_launch_file(each.read_bytes())
            found.append(each)
    return found


def parent_of(pid: int) -> int:
    """Return the launcher of an executor."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()[1])


def cluster_name(aurora: AuroraCluster) -> str:
    """Return the name of the cluster, which every answer has."""
    answer = _Person(aurora).api.response("getTierConfigs")
    return str(fields(answer["serverInfo"])["clusterName"])


def _config(task: Json) -> Json:
    return fields(fields(task["assignedTask"])["task"])


def _runs_first(scheduler: Scheduler) -> bool:
    """Return whether Aurora answers, and the first attempt of the container runs."""
    try:
        return scheduler.status("t").containers == (ContainerStatus(0, True, 1),)
    except (SchedulerError, AuroraRefusal):
        return False
