"""What the driver asks of Aurora, which is in memory here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.driver_kit.large_values import open_statemgr
from heron.errors import SchedulerError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind, StateManager
from heron_scheduler_aurora.aurora_api import AuroraApi
from heron_scheduler_aurora.aurora_cluster import AuroraCluster
from heron_scheduler_aurora.aurora_words import TaskStatus
from heron_scheduler_aurora.job_config import RUN
from heron_scheduler_aurora.options import AuroraOptions
from heron_scheduler_kit.managed.cluster import JobChange
from heron_scheduler_kit.managed.launch_file import encode_launch_file
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json

_STATE = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_NONE = DriverRef("none", "none", "none:None")
_OPTIONS = AuroraOptions(cluster="west")


class _Aurora(AuroraApi):
    """A job with one instance, after the first command that creates it: of that command, or of `next_run`."""

    def __init__(self) -> None:
        super().__init__(_OPTIONS)
        self.tasks: list[Json] = []
        self.killed: list[object] = []
        self.next_run = ""

    def call(self, name: str, **arguments: object) -> Json:
        if name == "createJob":
            run = self.next_run or "t-1"
            config = {"metadata": [{"key": RUN, "value": run}]}
            self.tasks = [{"status": int(TaskStatus.RUNNING), "assignedTask": {"instanceId": 0, "task": config}}]
        elif name == "killTasks":
            self.killed.append(arguments.get("instances"))
        return {"tasks": self.tasks, "updateSummaries": []}


@pytest.fixture
def statemgr(tmp_path: Path) -> Iterator[StateManager]:
    made = open_statemgr(DriverRef("statemgr", "localfs", _STATE, {"root": str(tmp_path / "state")}))
    yield made
    made.close()


@pytest.mark.parametrize(("next_run", "killed"), [("", [[0]]), ("t-2", [])])
def test_a_late_command_ends_only_what_it_has_created(
    statemgr: StateManager, tmp_path: Path, next_run: str, killed: list[list[int]]
) -> None:
    """Its topology was killed while it was at work, and may have been submitted again as the same job."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    aurora = _Aurora()
    aurora.next_run = next_run
    cluster = AuroraCluster(aurora, AuroraOptions(cluster="west", key_file=str(key)))
    cluster.use_state(statemgr)
    statemgr.set(NodeKind.CONTAINER, "t-2-0-launch", b"of the next run")
    late = ManagedJob("t", "t-1", role="ads", containers=(ContainerRequest(0, "0", 0.1, 32),))
    spec = ContainerSpec("t", "t-1", 0, 1, "/r", "/l", "", _NONE, _NONE)
    with pytest.raises(SchedulerError, match="topology 't' was killed meanwhile"):
        cluster.apply(JobChange(None, late, {"0": encode_launch_file(spec, _OPTIONS)}))
    assert aurora.killed == killed
    assert statemgr.list(NodeKind.CONTAINER) == ("t-2-0-launch",)
