"""What is waited for when a supervisor was killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.kernel.job import remnants
from heron.kernel.job.job_folder import JobFolder
from heron.kernel.job.process_identity import ProcessIdentity
from heron.kernel.job.process_list import ContainerEntry, ProcessList

GONE = ProcessIdentity(2**22 + 1, ProcessIdentity.of(os.getpid()).start)


@pytest.mark.parametrize(("start", "waits"), [(GONE.start, False), ("1@another machine/1", True)])
def test_executors_of_other_machines_have_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, waits: bool
) -> None:
    """Nobody here sees them end, and the state that they still use is removed next."""
    over_at_once: list[bool] = []

    def wait_for(over: Callable[[], bool], _most_s: float, _poll_s: float) -> bool:
        over_at_once.append(over())
        return True

    monkeypatch.setattr(remnants, "wait_for", wait_for)
    folder = JobFolder(tmp_path / "job")
    lock = folder.lock(make=True)
    assert lock is not None
    entry = ContainerEntry(1, 1, pid=GONE.pid, start=start)
    ProcessList(GONE, (entry,)).write(folder)
    remnants.clear(folder)
    os.close(lock)
    assert over_at_once == [not waits, True]  # the executors, and who is left of the session
    assert [each.name for each in folder.path.iterdir()] == ["lock"]
