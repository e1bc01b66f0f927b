"""A planned run begins under a free name, and not again after it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.driver_kit.planned_runs import begin_run, stored_package_uri
from heron.errors import StateError
from heron.ipc.documents.status import TopologyStatus
from heron.planner.physical_plan import TopologyState
from heron.spi.driver import DriverRef
from heron.spi.scheduler import PlannedRun
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.report import LastReport, encode_report
from heron_statemgr_localfs.state_manager import LocalFsStateManager


@pytest.fixture
def statemgr(tmp_path: Path) -> Iterator[StateManager]:
    opened = LocalFsStateManager.open({"root": str(tmp_path / "state")})
    yield opened
    opened.close()


@pytest.fixture
def uploader(tmp_path: Path) -> DriverRef:
    options: dict[str, object] = {"root": str(tmp_path / "packages")}
    return DriverRef("uploader", "localfs", "heron_uploader_localfs.uploader:LocalfsUploader", options)


def _planned(topology_id: str = "t-1") -> PlannedRun:
    run = ExecutionState("t", topology_id, 1.0, "ann", "host", "kube", "", "/run/t", "/log/t", attached=False)
    nodes = {NodeKind.EXECUTION_STATE.value: encode_execution_state(run), NodeKind.TOPOLOGY.value: b"topology"}
    return PlannedRun("t", (0, 1), nodes, b"package")


def test_a_run_begins(statemgr: StateManager, uploader: DriverRef, tmp_path: Path) -> None:
    """The package is where a submission would put it, and all nodes are written."""
    begin_run(statemgr, uploader, _planned())
    uri = stored_package_uri(statemgr, "t")
    assert [each.read_bytes() for each in (tmp_path / "packages").rglob("*") if each.is_file()] == [b"package"]
    assert uri
    node = statemgr.get(NodeKind.TOPOLOGY, "t")
    assert node is not None
    assert node.value == b"topology"


def test_a_run_that_was_interrupted_begins_again(statemgr: StateManager, uploader: DriverRef) -> None:
    """Some nodes may be written already."""
    planned = _planned()
    statemgr.set(NodeKind.EXECUTION_STATE, "t", planned.nodes[NodeKind.EXECUTION_STATE.value])
    statemgr.set(NodeKind.TOPOLOGY, "t", b"topology")
    begin_run(statemgr, uploader, planned)
    assert stored_package_uri(statemgr, "t")


def test_a_name_belongs_to_one_run(statemgr: StateManager, uploader: DriverRef) -> None:
    """Two dry runs of one topology, or a submission of it, must not mix."""
    begin_run(statemgr, uploader, _planned("t-1"))
    with pytest.raises(StateError, match="is run 't-1', not 't-2'; remove that one with `heron kill`"):
        begin_run(statemgr, uploader, _planned("t-2"))


def test_a_run_that_has_ended_does_not_begin(statemgr: StateManager, uploader: DriverRef) -> None:
    """A machine that was cut off may start the launcher of a killed topology again."""
    status = TopologyStatus("t", "t-1", TopologyState.KILLED.value, 1.0)
    statemgr.set(NodeKind.REPORT, "t", encode_report(LastReport(status)))
    with pytest.raises(StateError, match="run 't-1' has ended"):
        begin_run(statemgr, uploader, _planned())
    assert statemgr.get(NodeKind.EXECUTION_STATE, "t") is None
