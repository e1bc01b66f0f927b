"""What a saver reports about checkpoints that it has stored on its thread."""

from __future__ import annotations

import threading

from heron.api import CounterState
from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import TaskSnapshot
from heron.instance.state.checkpoint_saver import CheckpointSaver
from heron.instance.state.keyed_state import KeyedStateStore
from heron_testing.fake_clock import FakeClock
from heron_testing.memory_checkpoints import MemoryCheckpointStore

TASK = TaskSnapshot(2, "bolt")


def test_an_outcome_from_before_a_restore_does_not_count() -> None:
    """The store was still at work when the task was restored; the places of its payloads are out of date."""
    stored = threading.Event()
    saver = CheckpointSaver(CheckpointArchive(MemoryCheckpointStore(), "t"), "t-1", 2, stored.set)
    keyed = KeyedStateStore("bolt", 2, 8, FakeClock(), single=True)
    counts = keyed.state("counts", CounterState[str])
    counts.add("before the restore")
    saver.begin(1, TASK, None, keyed.snapshot())
    while saver.advance():
        pass
    assert stored.wait(10.0)
    keyed.clear()
    saver.restart({})
    saver.begin(2, TASK, None, keyed.snapshot())
    assert saver.outcome() is None
    assert saver.busy
    stored.clear()
    while saver.advance():
        pass
    assert stored.wait(10.0)
    outcome = saver.outcome()
    assert outcome is not None
    assert outcome.snapshot is not None
    assert (outcome.number, outcome.snapshot.groups) == (2, {})
