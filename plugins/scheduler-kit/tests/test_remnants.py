"""What is waited for when a supervisor was killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.driver_kit.child_processes import ProcessIdentity
from heron_scheduler_kit import remnants
from heron_scheduler_kit.job_folder import JobFolder
from heron_scheduler_kit.process_list import ContainerEntry, ProcessList

GONE = ProcessIdentity(2**22 + 1, ProcessIdentity.of(os.getpid()).start)


@pytest.mark.parametrize(("start", "waits"), [(GONE.start, False), ("1@another machine/1", True)])
def test_executors_of_other_machines_have_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, waits: bool
) -> None:
    """Nobody here sees them end, and the state that they still use is removed next."""
    waited: list[tuple[bool, float]] = []

    def wait_for(over: Callable[[], bool], most_s: float, _poll_s: float) -> bool:
        waited.append((over(), most_s))
        return True

    monkeypatch.setattr(remnants, "wait_for", wait_for)
    folder = JobFolder(tmp_path / "job")
    lock = folder.lock(make=True)
    assert lock is not None
    entry = ContainerEntry(1, 1, pid=GONE.pid, start=start)
    ProcessList(GONE, (entry,)).write(folder)
    remnants.clear(folder)
    os.close(lock)
    assert waited == [(not waits, remnants._LEAVE_S), (True, remnants._KILLED_S)]  # executors, and the whole session
    assert [each.name for each in folder.path.iterdir()] == ["lock"]
