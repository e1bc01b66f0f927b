"""The driver's record of the job in the topology's state, beside the existing nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.errors import StateError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind, StateManager
from heron_cli.client.execution_state import ExecutionState, decode_execution_state, encode_execution_state
from heron_cli.client.job_place import JobPlace, read_place
from heron_scheduler_spark.state_node import note_place, publish
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


def test_the_node_is_beside_the_copy_of_the_execution_state(statemgr: StateManager, spec: ContainerSpec) -> None:
    """A command or a topology manager uses the copy when the execution state itself is damaged."""
    statemgr.set(NodeKind.SCHEDULER_LOCATION, "t", encode_execution_state(RUN))
    for application in ("app-1", "app-2"):
        publish(spec, application, PAGES)
    node = statemgr.get(NodeKind.SCHEDULER_LOCATION, "t")
    assert node is not None
    assert decode_execution_state(node.value, "t") == RUN
    assert read_place(statemgr, "t", "t-1") == JobPlace("t-1", "app-2", PAGES)
    assert read_place(statemgr, "t", "t-2") == JobPlace()


@pytest.mark.parametrize("there", [None, b"", b"[]", encode_execution_state(RUN).replace(b"t-1", b"t-2")])
def test_nothing_is_written_without_a_record_of_the_run(
    statemgr: StateManager, spec: ContainerSpec, there: bytes | None
) -> None:
    """The topology was killed meanwhile, and perhaps submitted again: no command would remove this node."""
    if there is not None:
        statemgr.set(NodeKind.SCHEDULER_LOCATION, "t", there)
    with pytest.raises((StateError, ValueError)):
        note_place(statemgr, spec, "app-1", PAGES)
    publish(spec, "app-1", PAGES)
    node = statemgr.get(NodeKind.SCHEDULER_LOCATION, "t")
    assert (node.value if node else None) == there
    assert read_place(statemgr, "t", "t-1") == JobPlace()
