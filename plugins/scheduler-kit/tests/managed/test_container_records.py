"""Records of containers: changed by launchers and commands at the same time, and removed with their run only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from heron.errors import NewerFormatError, StateError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import PlannedRun
from heron.spi.statemgr import NodeKind, StateManager, Versioned
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron_scheduler_kit.managed.container_records import ContainerPhase, ContainerRecord, ContainerRecords
from heron_scheduler_kit.managed.launch_file import LaunchFile
from heron_scheduler_kit.managed.launcher import begin_planned
from heron_statemgr_localfs.state_manager import LocalFsStateManager


@pytest.fixture
def statemgr(tmp_path: Path) -> Iterator[StateManager]:
    opened = LocalFsStateManager.open({"root": str(tmp_path)})
    yield opened
    opened.close()


def test_a_change_that_meets_another_one_is_made_again(statemgr: StateManager) -> None:
    """A launcher counts an attempt while a command asks for a restart; both must be in the record."""
    records = ContainerRecords(statemgr, "t-1")
    records.add("t", [1])
    raced: list[ContainerRecord | None] = []

    def claim(record: ContainerRecord) -> ContainerRecord:
        if not raced:
            raced.append(records.change(1, lambda each: replace(each, restarted=7)))
        return replace(record, attempts=record.attempts + 1)

    changed = records.change(1, claim)
    assert changed == records.get(1)
    assert changed is not None
    assert (changed.attempts, changed.restarted) == (1, 7)


def test_without_a_record_nothing_changes(statemgr: StateManager) -> None:
    """A late launcher of a killed job must not make a record, and with it a container."""
    records = ContainerRecords(statemgr, "t-1")
    assert records.change(1, lambda each: replace(each, attempts=1)) is None
    assert statemgr.list(NodeKind.CONTAINER) == ()


def test_a_container_that_comes_back_goes_on_with_its_attempts(statemgr: StateManager) -> None:
    """An update may remove a container and add its id again; links refuse a lower incarnation."""
    records = ContainerRecords(statemgr, "t-1")
    records.add("t", [1])
    records.change(1, lambda each: replace(each, attempts=4, phase=ContainerPhase.REMOVED, wanted=False))
    records.add("t", [1])
    assert records.get(1) == ContainerRecord("t", "t-1", 1, attempts=4)


def test_records_are_removed_with_their_run_only(statemgr: StateManager) -> None:
    """Names of runs may begin alike, and may be as long as names of topologies."""
    long = "n" * 200
    for topology in ("t", "t-1", long):
        ContainerRecords(statemgr, f"{topology}-0a").add(topology, [0, 12])
    ContainerRecords(statemgr, "t-0a").remove()
    assert ContainerRecords(statemgr, "t-0a").get(12) is None
    assert ContainerRecords(statemgr, "t-1-0a").get(12) is not None
    assert ContainerRecords(statemgr, f"{long}-0a").get(0) is not None
    assert len(statemgr.list(NodeKind.CONTAINER)) == 4


@pytest.mark.parametrize(
    ("data", "error", "expected"),
    [
        (b'{"format": 2}', NewerFormatError, "node containers/t-1-1: .* has format 2, and this version .* upgrade"),
        (b'{"format": 1, "attempts": 1}', StateError, "node containers/t-1-1: the record of a container .* cannot be"),
        (
            b"",
            StateError,
            "containers/t-1-1: the record of a container of topology 't' cannot be .* `heron kill t` removes",
        ),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(
    statemgr: StateManager, data: bytes, error: type[Exception], expected: str
) -> None:
    """A newer version wrote it, or somebody changed it by hand; nothing is guessed, and nothing written."""
    statemgr.set(NodeKind.CONTAINER, "t-1-1", data)
    records = ContainerRecords(statemgr, "t-1")
    with pytest.raises(error, match=expected):
        records.change(1, lambda each: replace(each, attempts=each.attempts + 1))
    assert statemgr.get(NodeKind.CONTAINER, "t-1-1") == Versioned(data, 1)
    records.remove()
    assert records.get(1) is None


def test_a_newer_version_may_add_fields(statemgr: StateManager) -> None:
    """Launchers and commands need not be upgraded at the same moment."""
    records = ContainerRecords(statemgr, "t-1")
    records.add("t", [1])
    node = statemgr.get(NodeKind.CONTAINER, "t-1-1")
    assert node is not None
    statemgr.set(NodeKind.CONTAINER, "t-1-1", node.value.replace(b"{", b'{"colour":"green",', 1))
    assert records.get(1) == ContainerRecord("t", "t-1", 1)


def test_a_planned_run_gets_its_records_once(statemgr: StateManager, tmp_path: Path) -> None:
    """The launcher of container 0 starts again and again; attempts must not start from 0 again."""
    uploader = DriverRef(
        "uploader", "localfs", "heron_uploader_localfs.uploader:LocalfsUploader", {"root": str(tmp_path)}
    )
    run = ExecutionState("t", "t-1", 1.0, "ann", "host", "kube", "", "/run/t", "/log/t", attached=False)
    nodes = {NodeKind.EXECUTION_STATE.value: encode_execution_state(run)}
    spec = {"topology": "t", "topology_id": "t-1", "container_id": 0, "uploader": msgspec.to_builtins(uploader)}
    launch = LaunchFile(spec, planned=PlannedRun("t", (0, 1), nodes, b"package"))
    records = ContainerRecords(statemgr, "t-1")
    begin_planned(launch, statemgr)
    records.change(0, lambda each: replace(each, attempts=3))
    before = statemgr.get(NodeKind.EXECUTION_STATE, "t")
    begin_planned(launch, statemgr)
    assert [(found := records.get(each)) and found.attempts for each in range(3)] == [3, 0, None]
    assert statemgr.get(NodeKind.EXECUTION_STATE, "t") == before
    begin_planned(LaunchFile({**spec, "topology_id": "t-2"}), statemgr)
    assert ContainerRecords(statemgr, "t-2").get(0) is None, "a submission writes them itself"
