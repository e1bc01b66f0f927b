"""Records of containers: changed by launchers and commands at the same time, and removed with their run only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heron.driver_kit.container_records import ContainerPhase, ContainerRecord, ContainerRecords
from heron.spi.statemgr import NodeKind, StateManager
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
