"""The scheduler contract on a Kubernetes whose nodes run Pods as processes, with the rights of the README alone."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.spi.driver import DriverRef
from heron_scheduler_kubernetes.access_rules import NEEDED
from heron_scheduler_kubernetes.scheduler import KubernetesScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.kubernetes import KubernetesServer

_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_NAMESPACE = "contract"
_RULES = [
    {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]} for (group, resource), verbs in NEEDED.items()
]


@pytest.fixture(scope="module")
def namespace(kubernetes: KubernetesServer) -> str:
    """A namespace in which the user of the tests has the rights of the README."""
    kubernetes.start()
    kubernetes.make_namespace(_NAMESPACE, _RULES)
    return _NAMESPACE


class TestKubernetesScheduler(SchedulerContract):
    name = "kubernetes"
    driver_class = KubernetesScheduler

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

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        state = DriverRef("statemgr", "localfs", _LOCALFS, {"root": str(tmp_path / "state")})
        with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
            yield Bench(tmp_path, Path(run_root), state)
