"""The scheduler contract on a Kubernetes whose nodes run Pods as processes, with the rights of the README alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import pytest

from heron.errors import SchedulerError
from heron.spi.scheduler import Scheduler
from heron_scheduler_kit.managed.rest_api import ApiError
from heron_scheduler_kubernetes.access_rules import NEEDED
from heron_scheduler_kubernetes.kubeconfig import find_access
from heron_scheduler_kubernetes.kubernetes_api import KubernetesApi
from heron_scheduler_kubernetes.scheduler import KubernetesScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract, runs
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.kubernetes import KubernetesServer

_NAMESPACE = "contract"
_RULES = [
    {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]} for (group, resource), verbs in NEEDED.items()
]
_WITHIN_S = 10.0
_BACK_S = 60.0


@pytest.fixture(scope="module")
def namespace(kubernetes: KubernetesServer) -> str:
    """A namespace in which the user of the tests has the rights of the README."""
    kubernetes.start()
    kubernetes.make_namespace(_NAMESPACE, _RULES)
    return _NAMESPACE


class TestKubernetesScheduler(SchedulerContract):
    name = "kubernetes"
    driver_class = KubernetesScheduler
    uses_state = True

    @pytest.fixture
    def relay(self, kubernetes: KubernetesServer) -> Iterator[Relay]:
        relay = Relay(kubernetes.address)
        yield relay
        relay.close()

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    @pytest.fixture
    def options(self, kubernetes: KubernetesServer, namespace: str, relay: Relay) -> dict[str, object]:
        return {
            "image": "here",
            "python": sys.executable,
            "executor": [*FAKE_EXECUTOR],
            "kubeconfig": str(kubernetes.kubeconfig("user", namespace, relay.address[1])),
            "stop_grace_s": 1.0,
            "start_s": 60.0,
        }

    def test_a_deleted_pod_comes_back(self, scheduler: Scheduler, bench: Bench, kubernetes: KubernetesServer) -> None:
        """`kubectl delete pod`: the container gets another attempt, and the others keep theirs.

        The fake executor that obeys SIGTERM ends with code 0, as one that has finished; a real one does not.
        """
        scheduler.schedule(bench.job("t", "serve", "deaf"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        kubernetes.request("DELETE", f"/api/v1/namespaces/{_NAMESPACE}/pods/heron-t-data-0")
        assert bench.wait("t", 1, attempt=2).pid != second.pid
        assert not runs(second.pid)
        assert bench.wait("t", 0).pid == first.pid
        wait_until(lambda: scheduler.status("t").containers[1].running, _BACK_S, "container 1 runs")
        assert scheduler.status("t").containers[1].attempts == 2

    def test_a_removed_container_leaves_its_pod_to_the_next_one(self, scheduler: Scheduler, bench: Bench) -> None:
        """A StatefulSet removes its last Pods only."""
        scheduler.schedule(bench.job("t", "serve", "serve", "serve"))
        executors = [bench.wait_until_known(scheduler, "t", number) for number in range(3)]
        scheduler.update("t", [], [1])
        assert not runs(executors[1].pid)
        scheduler.update("t", [bench.spec("t", 7)], [])
        assert bench.wait("t", 7).pid != executors[1].pid
        assert [bench.wait("t", number).pid for number in (0, 2)] == [executors[0].pid, executors[2].pid]
        links = scheduler.links("t")
        assert [each.url for each in links] == [f"kubectl -n {_NAMESPACE} get pods -l heron.io/name=heron-t"]

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"manager_memory_mb": 10**9}, "Unschedulable: 0/2 nodes are available: 2 Insufficient memory"),
            ({"image": "missing:1"}, "no such image: missing:1"),
            ({"python": "/usr/bin/python3"}, "exit code 1: "),
        ],
    )
    def test_a_container_that_cannot_run_says_why(
        self, options: dict[str, object], bench: Bench, wrong: dict[str, object], said: str
    ) -> None:
        """The words are those of `kubectl describe pod`."""
        with bench.state() as statemgr:
            assert statemgr is not None
            scheduler = KubernetesScheduler.open({**options, **wrong})
            scheduler.use_state(statemgr)
            scheduler.schedule(bench.job("t", "serve"))
            try:
                wait_until(lambda: said in scheduler.status("t").containers[0].last_error, _WITHIN_S, said)
            finally:
                scheduler.kill("t")

    def test_missing_rights_are_named(self, kubernetes: KubernetesServer, options: dict[str, object]) -> None:
        """`heron profiles check` asks for the rights before a topology needs them."""
        assert f"namespace {_NAMESPACE}" in KubernetesScheduler.open(options).check(_WITHIN_S)
        elsewhere = {**options, "kubeconfig": str(kubernetes.kubeconfig("user", "default"))}
        with pytest.raises(SchedulerError, match=r"may not get, create, patch, delete services; .* grant the Role"):
            KubernetesScheduler.open(elsewhere).check(_WITHIN_S)

    def test_the_job_has_no_secrets(
        self, scheduler: Scheduler, bench: Bench, kubernetes: KubernetesServer, options: dict[str, object]
    ) -> None:
        """Many users of a namespace may read all but Secrets; the user that submits cannot read the launch file."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)
        root = f"namespaces/{_NAMESPACE}"
        places = (f"/api/v1/{root}/services", f"/api/v1/{root}/pods", f"/apis/apps/v1/{root}/statefulsets")
        assert str(bench.log_dir("t")) not in str([kubernetes.request("GET", each) for each in places])
        user = KubernetesApi(partial(find_access, str(options["kubeconfig"])))
        with pytest.raises(ApiError, match='cannot get resource "secrets"'):
            user.request("GET", user.path("v1/secrets", "heron-t"))

    def test_the_output_is_what_the_launcher_prints(self, scheduler: Scheduler, bench: Bench) -> None:
        """`heron logs` reads it through the API server, from any machine."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)

        def printed() -> bool:
            return any("container 0 starts, attempt 1" in each for each in scheduler.output("t", 0, 5))

        wait_until(printed, _WITHIN_S, "the output of the launcher")
