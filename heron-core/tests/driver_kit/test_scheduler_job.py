"""Schedulers write the handle and the pages of a job into the state of its topology."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.driver_kit.scheduler_job import publish_job, write_job
from heron.errors import StateError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.scheduler_location import SchedulerJob, SchedulerLocation, decode_scheduler_location
from heron_statemgr_localfs.state_manager import LocalFsStateManager

_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
RUN = ExecutionState("t", "t-1", 1.0, "me", "here", "spark", "file:x", "/run", "/log", attached=False)
PAGES = {"Spark UI": "http://here:4040"}


@pytest.fixture
def statemgr(tmp_path: Path) -> Iterator[StateManager]:
    opened = LocalFsStateManager.open({"root": str(tmp_path)})
    yield opened
    opened.close()


@pytest.fixture
def spec(tmp_path: Path) -> ContainerSpec:
    statemgr = DriverRef("statemgr", "localfs", _LOCALFS, {"root": str(tmp_path)})
    return ContainerSpec("t", "t-1", 0, 1, "/run", "/log", "file:x", statemgr, DriverRef("none", "none", "none:None"))


def test_the_job_is_added_to_the_copy_of_the_execution_state(statemgr: StateManager, spec: ContainerSpec) -> None:
    """Commands read the copy when they cannot read the execution state. A restarted job replaces the former one."""
    statemgr.set(NodeKind.SCHEDULER_LOCATION, "t", encode_execution_state(RUN))
    for application in ("app-1", "app-2"):
        publish_job(spec, application, PAGES)
    node = statemgr.get(NodeKind.SCHEDULER_LOCATION, "t")
    assert node is not None
    assert decode_scheduler_location(node.value, "t") == SchedulerLocation(RUN, SchedulerJob("app-2", PAGES))


@pytest.mark.parametrize("present", [None, b"", b"[]", encode_execution_state(RUN).replace(b"t-1", b"t-2")])
def test_nothing_is_written_without_a_node_of_this_run(
    statemgr: StateManager, spec: ContainerSpec, present: bytes | None
) -> None:
    """The topology was killed, and perhaps submitted again. No command would remove a node that is written now."""
    if present is not None:
        statemgr.set(NodeKind.SCHEDULER_LOCATION, "t", present)
    with pytest.raises(StateError, match="node schedulers/t: "):
        write_job(statemgr, spec, "app-1", PAGES)
    publish_job(spec, "app-1", PAGES)
    node = statemgr.get(NodeKind.SCHEDULER_LOCATION, "t")
    assert (node.value if node else None) == present
