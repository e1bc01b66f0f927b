"""What the driver asks of Marathon and Mesos, which are in memory here."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from heron.driver_kit.large_values import open_statemgr
from heron.errors import SchedulerError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind, StateManager
from heron_scheduler_kit.managed.cluster import JobChange
from heron_scheduler_kit.managed.launch_file import encode_launch_file
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_marathon.marathon_api import MarathonAccess, MarathonApi
from heron_scheduler_marathon.marathon_cluster import MarathonCluster
from heron_scheduler_marathon.options import MarathonOptions

_STATE = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_NONE = DriverRef("none", "none", "none:None")
_MASTER = "http://master:5050"


class _Marathon(MarathonApi):
    """Apps, and one agent of Mesos that has the output of all tasks; without `mesos`, nobody answers there."""

    def __init__(self) -> None:
        super().__init__(lambda: MarathonAccess(("http://marathon",), tls=ssl.create_default_context()))
        self.apps: dict[str, Json] = {}
        self.removed: list[str] = []
        self.documents: list[str] = []
        self.mesos = True

    def request(self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None) -> object:
        if method == "POST":
            app = json.loads(json.dumps(body))
            self.apps[app["id"]] = app
        elif method == "DELETE":
            self.removed.append(path)
            self.apps.pop(path.removeprefix("apps"), None)
        elif path.startswith("groups"):
            return {"apps": list(self.apps.values())}
        return {"marathon_config": {"mesos_leader_ui_url": _MASTER}, "queue": []}

    def document(self, url: str) -> object:
        self.documents.append(url)
        if not self.mesos:
            msg = "Mesos does not answer"
            raise SchedulerError(msg)
        if url == f"{_MASTER}/state":
            return {"slaves": [{"id": "S0", "pid": "slave(1)@agent:5051"}]}
        if url.endswith("/state"):
            executors = [{"id": f"task-{number}", "directory": f"/task-{number}"} for number in range(9)]
            return {"frameworks": [{"executors": executors}]}
        return {"offset": 12, "data": "no key file\n"}


@pytest.fixture
def marathon() -> _Marathon:
    return _Marathon()


@pytest.fixture
def statemgr(tmp_path: Path) -> Iterator[StateManager]:
    made = open_statemgr(DriverRef("statemgr", "localfs", _STATE, {"root": str(tmp_path / "state")}))
    yield made
    made.close()


@pytest.fixture
def cluster(marathon: _Marathon, statemgr: StateManager, tmp_path: Path) -> MarathonCluster:
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    made = MarathonCluster(marathon, MarathonOptions(key_file=str(key)))
    made.use_state(statemgr)
    return made


def _job(topology_id: str, *containers: int) -> ManagedJob:
    requests = tuple(ContainerRequest(each, f"container-{each}", 0.1, 32) for each in containers)
    return ManagedJob("t", topology_id, containers=requests)


def _change(job: ManagedJob) -> JobChange:
    specs = [ContainerSpec("t", job.topology_id, each, 1, "/r", "/l", "", _NONE, _NONE) for each in job.container_ids]
    return JobChange(
        None, job, {f"container-{each.container_id}": encode_launch_file(each, MarathonOptions()) for each in specs}
    )


@pytest.mark.parametrize("late", [(1,), (1, 0)])
def test_a_late_command_does_not_touch_the_next_run(
    cluster: MarathonCluster, marathon: _Marathon, statemgr: StateManager, late: tuple[int, ...]
) -> None:
    """Its topology was killed and submitted again while it was at work: it removes what it has created itself."""
    run = _job("t-2", 0)
    cluster.reserve(run)
    cluster.apply(_change(run))
    with pytest.raises(SchedulerError, match="topology 't' was killed meanwhile"):
        cluster.apply(_change(_job("t-1", *late)))
    assert set(marathon.apps) == {"/heron/t/container-0"}
    assert marathon.removed == ["apps/heron/t/container-1"]
    assert statemgr.list(NodeKind.CONTAINER) == ("t-2-container-0-launch",)


def test_a_status_asks_mesos_little_when_much_has_failed(cluster: MarathonCluster, marathon: _Marathon) -> None:
    """Three containers say what all of them would, and the master is asked once."""
    job = _failed(cluster, marathon)
    reasons = [each.reason for each in cluster.observe(job).values()]
    assert sum("no key file" in each for each in reasons) == 3
    assert all("TASK_FAILED on agent: exit" in each for each in reasons)
    assert marathon.documents.count(f"{_MASTER}/state") == 1
    assert len(marathon.documents) == 2 + 3 * 2


def test_a_mesos_that_is_away_is_asked_once(cluster: MarathonCluster, marathon: _Marathon) -> None:
    """Each question waits for 2 s."""
    job = _failed(cluster, marathon)
    marathon.mesos = False
    assert len(cluster.observe(job)) == 8
    assert len(marathon.documents) == 1


def _failed(cluster: MarathonCluster, marathon: _Marathon) -> ManagedJob:
    """Return a job whose containers have failed."""
    job = _job("t-1", *range(8))
    cluster.reserve(job)
    cluster.apply(_change(job))
    for number, app in enumerate(marathon.apps.values()):
        ended = {"state": "TASK_FAILED", "host": "agent", "message": "exit 1"}
        app["lastTaskFailure"] = {**ended, "taskId": f"task-{number}", "slaveId": "S0"}
    return job
