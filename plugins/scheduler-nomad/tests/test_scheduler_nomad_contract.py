"""The scheduler contract on a real Nomad, with a token that has the policy of the README and nothing more."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron.spi.scheduler import ContainerStatus, Scheduler
from heron_scheduler_kit.managed.rest_api import ApiError
from heron_scheduler_nomad.job_spec import launch_variable
from heron_scheduler_nomad.nomad_access import NomadAccess
from heron_scheduler_nomad.nomad_api import NomadApi
from heron_scheduler_nomad.nomad_cluster import NomadCluster
from heron_scheduler_nomad.scheduler import NomadScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract, runs
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.nomad import NomadAgent

pytestmark = pytest.mark.servers

_README = Path(__file__).parents[1] / "README.md"
_WITHIN_S = 10.0
_BACK_S = 60.0


def policy() -> str:
    """Return the ACL policy of the README."""
    found = re.search(r"```hcl\n(.*?)```", _README.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


@pytest.fixture(scope="module")
def token(nomad: NomadAgent) -> str:
    return nomad.add_token(policy())


@pytest.fixture
def relay(nomad: NomadAgent) -> Iterator[Relay]:
    """Connects the driver to the agent, and can cut the connections."""
    host, _, port = nomad.url.removeprefix("http://").partition(":")
    relay = Relay((host, int(port)))
    yield relay
    relay.close()


class TestNomadScheduler(SchedulerContract):
    name = "nomad"
    driver_class = NomadScheduler
    uses_state = True

    @pytest.fixture
    def options(self, relay: Relay, token: str) -> dict[str, object]:
        host, port = relay.address
        return {
            "address": f"http://{host}:{port}",
            "token": token,
            "task_driver": "raw_exec",
            "python": sys.executable,
            "executor": [*FAKE_EXECUTOR],
            "stop_grace_s": 1.0,
            "start_s": 60.0,
        }

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def test_kill_leaves_nothing(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """Nomad has no job and no variable of the topology either."""
        super().test_kill_leaves_nothing(scheduler, other, bench)
        api = _cluster(scheduler)._api
        assert api.find("job/heron-t") is None
        assert api.list("vars", {"prefix": "nomad/jobs/heron-t"}) == []

    def test_a_stopped_allocation_is_replaced(self, scheduler: Scheduler, bench: Bench, nomad: NomadAgent) -> None:
        """`nomad alloc stop` moves a container: it gets another attempt, and the others keep theirs.

        The fake executor that obeys SIGTERM ends with code 0, as one that has finished; a real one does not.
        """
        scheduler.schedule(bench.job("t", "serve", "deaf"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        nomad.request("PUT", f"allocation/{_allocation(nomad, 'container-1')}/stop", {})
        assert bench.wait("t", 1, attempt=2).pid != second.pid
        assert not runs(second.pid)
        assert bench.wait("t", 0).pid == first.pid
        wait_until(lambda: scheduler.status("t").containers[1].running, _BACK_S, "container 1 runs")
        assert scheduler.status("t").containers[1].attempts == 2

    def test_containers_outlive_the_agent(self, scheduler: Scheduler, bench: Bench, nomad: NomadAgent) -> None:
        """While Nomad is away its containers go on, and it finds the same processes again."""
        scheduler.schedule(bench.job("t", "serve"))
        before = bench.wait_until_known(scheduler, "t", 0)
        nomad.server.kill()
        try:
            with pytest.raises(SchedulerError, match="does not answer"):
                scheduler.status("t")
            assert runs(before.pid)
        finally:
            nomad.start()
        wait_until(lambda: _runs_first(scheduler), _BACK_S, "Nomad knows the container again")
        assert bench.wait("t", 0).pid == before.pid

    def test_a_container_that_no_client_takes_says_so(self, options: dict[str, object], bench: Bench) -> None:
        """The words are those of `nomad job status`; the rest of the topology waits."""
        with bench.state() as statemgr:
            assert statemgr is not None
            huge = NomadScheduler.open({**options, "manager_memory_mb": 10**6})
            huge.use_state(statemgr)
            huge.schedule(bench.job("t", "serve"))
            said = 'Dimension "memory" exhausted on 1 nodes'
            wait_until(lambda: said in huge.status("t").containers[0].last_error, _WITHIN_S, said)
            huge.kill("t")

    def test_an_interpreter_without_heron_says_so(self, options: dict[str, object], bench: Bench) -> None:
        """The mistake of a new user: the status has the end of the process and its last line."""
        with bench.state() as statemgr:
            assert statemgr is not None
            wrong = NomadScheduler.open({**options, "python": "/usr/bin/python3"})
            wrong.use_state(statemgr)
            wrong.schedule(bench.job("t", "serve"))
            said = "No module named"
            wait_until(lambda: said in wrong.status("t").containers[0].last_error, _WITHIN_S, said)
            assert "Exit Code: 1" in wrong.status("t").containers[0].last_error
            wrong.kill("t")

    def test_a_missing_driver_is_found_before_a_submit(self, options: dict[str, object]) -> None:
        """`heron profiles check` plans a job without registering it."""
        assert "namespace default" in NomadScheduler.open(options).check(_WITHIN_S)
        with pytest.raises(SchedulerError, match='Constraint "missing drivers": 1 nodes excluded by filter'):
            NomadScheduler.open({**options, "task_driver": "docker", "image": "heron"}).check(_WITHIN_S)

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"token": ""}, "needs a token, and none was sent; set NOMAD_TOKEN"),
            ({"token": "11111111-2222-3333-4444-555555555555"}, "ACL token not found .404.; correct scheduler.token"),
            ({"token": "swordfish"}, "does not know the token of scheduler.token.*UUID must be 36 characters"),
            ({"address": "https://127.0.0.1:{port}"}, "does not answer: .*SSL.*; correct scheduler.address"),
            ({"address": "http://127.0.0.1:9"}, "does not answer: .*refused; correct scheduler.address"),
            (
                {"namespace": "other"},
                'nonexistent namespace "other" .500.; correct scheduler.namespace or NOMAD_NAMESPACE',
            ),
        ],
    )
    def test_a_wrong_credential_or_address_is_explained(
        self, options: dict[str, object], relay: Relay, wrong: dict[str, str], said: str
    ) -> None:
        """`heron profiles check` names the key or variable to correct, and does not show the token."""
        changed = {key: value.format(port=relay.address[1]) for key, value in wrong.items()}
        with pytest.raises(SchedulerError, match=said) as caught:
            NomadScheduler.open({**options, **changed}).check(_WITHIN_S)
        assert not changed.get("token") or changed["token"] not in str(caught.value)

    @pytest.mark.parametrize(
        ("right", "less", "said"),
        [
            ('"submit-job", ', "", "submit-job"),
            ('"read-job", ', "", "read-job"),
            ('"read", "write"', '"list"', "read variables nomad/jobs/heron-*, write variables nomad/jobs/heron-*"),
            (
                '"list", "write", "destroy"',
                '"list"',
                "write variables nomad/jobs/heron-*/*, destroy variables nomad/jobs/heron-*/*",
            ),
        ],
    )
    def test_a_missing_right_is_named(
        self, options: dict[str, object], nomad: NomadAgent, right: str, less: str, said: str
    ) -> None:
        """Each is a capability of the policy in the README; the check leaves nothing behind."""
        rules = policy().replace(right, less)
        assert rules != policy()
        token = nomad.add_token(rules, "lesser")
        with pytest.raises(SchedulerError, match=re.escape(f"may not {said} in namespace 'default'")):
            NomadScheduler.open({**options, "token": token}).check(_WITHIN_S)
        assert json.loads(nomad.request("GET", "vars?prefix=nomad/jobs/heron-check")) == []

    def test_the_job_has_no_secrets(self, scheduler: Scheduler, bench: Bench, nomad: NomadAgent, token: str) -> None:
        """Everyone who may read jobs sees the job; the token that submits cannot read the launch file."""
        scheduler.schedule(bench.job("t", "serve"))
        executor = bench.wait("t", 0)
        shown = nomad.request("GET", "job/heron-t") + nomad.request("GET", "job/heron-t/allocations")
        assert str(bench.log_dir("t")).encode() not in shown, "a part of the spec"
        with pytest.raises(ApiError, match="403"):
            NomadApi(lambda: NomadAccess(nomad.url, token)).find(f"var/{launch_variable('t', 'container-0')}")
        environment = Path(f"/proc/{executor.pid}/environ").read_bytes()
        assert b"NOMAD_TOKEN" not in environment
        assert b"NOMAD_ALLOC_ID" in environment

    def test_links_and_output_show_a_container(self, scheduler: Scheduler, bench: Bench) -> None:
        """A person goes on in Nomad's pages, and `heron logs` shows what a launcher has printed."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        links = {each.title: each.url for each in scheduler.links("t")}
        assert links["allocations"] == "nomad job status -namespace default heron-t"
        assert links["container 0"].endswith("/ui/jobs/heron-t@default/container-0")

        def printed() -> bool:
            return any("container 0 starts, attempt 1" in each for each in scheduler.output("t", 0, 5))

        wait_until(printed, _WITHIN_S, "the output of the launcher")

    def test_a_job_of_another_owner_is_left_alone(self, scheduler: Scheduler, bench: Bench, nomad: NomadAgent) -> None:
        """A person may have registered a job of that name."""
        task = {"Name": "x", "Driver": "raw_exec", "Config": {"command": "/bin/sleep", "args": ["1001"]}}
        foreign = {"ID": "heron-t", "Datacenters": ["dc1"], "TaskGroups": [{"Name": "x", "Count": 0, "Tasks": [task]}]}
        nomad.request("PUT", "jobs", {"Job": foreign})
        try:
            with pytest.raises(SchedulerError, match="nomad job stop -purge heron-t"):
                scheduler.schedule(bench.job("t", "serve"))
            assert json.loads(nomad.request("GET", "job/heron-t"))["TaskGroups"][0]["Name"] == "x"
        finally:
            nomad.request("DELETE", "job/heron-t?purge=true")
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)


def _cluster(scheduler: Scheduler) -> NomadCluster:
    assert isinstance(scheduler, NomadScheduler)
    assert isinstance(scheduler._cluster, NomadCluster)
    return scheduler._cluster


def _allocation(nomad: NomadAgent, group: str) -> str:
    """Return the id of the allocation of a group that runs."""
    found = json.loads(nomad.request("GET", "job/heron-t/allocations"))
    (mine,) = (each for each in found if each["TaskGroup"] == group and each["ClientStatus"] == "running")
    return str(mine["ID"])


def _runs_first(scheduler: Scheduler) -> bool:
    """Return whether Nomad answers, and the first attempt of the container runs."""
    try:
        return scheduler.status("t").containers == (ContainerStatus(0, True, 1),)
    except SchedulerError:
        return False
