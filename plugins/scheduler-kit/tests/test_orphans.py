"""What a command waits for after a supervisor was killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.driver_kit.child_processes import ProcessIdentity
from heron_scheduler_kit import process_list
from heron_scheduler_kit.job_folder import JobFolder
from heron_scheduler_kit.process_list import ContainerEntry, ProcessList, end_orphans

GONE = ProcessIdentity(2**22 + 1, ProcessIdentity.of(os.getpid()).start)


@pytest.mark.parametrize(
    ("start", "waits"), [(GONE.start, False), ("1@another machine/1", True)], ids=["here", "there"]
)
def test_executors_of_other_machines_get_the_full_time_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, waits: bool
) -> None:
    """Their end cannot be observed here, and the state that they use is removed next."""
    waited: list[tuple[bool, float]] = []

    def wait_for(over: Callable[[], bool], most_s: float, _poll_s: float) -> bool:
        waited.append((over(), most_s))
        return True

    monkeypatch.setattr(process_list, "wait_for", wait_for)
    folder = JobFolder(tmp_path / "job")
    lock = folder.lock(make=True)
    assert lock is not None
    entry = ContainerEntry(1, 1, pid=GONE.pid, start=start)
    ProcessList(GONE, (entry,)).write(folder)
    end_orphans(folder)
    os.close(lock)
    assert waited == [
        (not waits, process_list._LEAVE_S),
        (True, process_list._KILLED_S),
    ]  # the executors, then the session
    assert [each.name for each in folder.path.iterdir()] == ["lock"]
