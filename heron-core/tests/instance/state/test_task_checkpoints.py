"""What a task restores and commits, from checkpoints in memory."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from heron.api import Bolt, CounterState, ITwoPhaseStatefulComponent, State, Tuple
from heron.api.definition import TopologyDefinition
from heron.api.state import HashMapState
from heron.checkpoints.archive import CheckpointArchive, places_of
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest, TaskSnapshot, decode_snapshot
from heron.errors import CheckpointError
from heron.instance.state.held_letters import HeldLetters
from heron.instance.state.keyed_state import KeyedStateStore
from heron.instance.state.state_payload import encode_operator_state
from heron.instance.state.task_checkpoints import TaskCheckpoints
from heron.ipc.documents.letter_line import LetterLine
from heron.ipc.envelope import Envelope
from heron.kernel.dead_letter_file import DeadLetterFile
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import CheckpointPlan, PlanIndex, PlanUpdate, UpdatePhase
from heron_testing.builders import bolt, physical_plan, spout, subscription, topology
from heron_testing.fake_clock import FakeClock
from heron_testing.memory_checkpoints import MemoryCheckpointStore
from parts import instance_spec

TASK = 2
DEFINITION = topology(spout("spout"), bolt("bolt", subscription("spout")))


class SinkBolt(Bolt, ITwoPhaseStatefulComponent):
    """Keeps what it was given."""

    def __init__(self) -> None:
        self.restored: list[object] = []

    def init_state(self, state: State) -> None:
        """Keep the state."""
        self.restored.append(state.get("taken at"))

    def process(self, tup: Tuple) -> None:
        """Not called."""

    def pre_restore(self, checkpoint_id: str) -> None:
        """Keep the id."""
        self.restored.append(checkpoint_id)

    def post_save(self, checkpoint_id: str) -> None:
        """Not called."""


def archive_with(*checkpoints: str, task_id: int = TASK) -> CheckpointArchive:
    """Return an archive with these checkpoints; the state of the bolt has their ids."""
    archive = CheckpointArchive(MemoryCheckpointStore(), "t")
    for each in map(CheckpointId.parse, checkpoints):
        state = HashMapState()
        state.put("taken at", str(each))
        payload = encode_operator_state(state, "task") or b""
        name = archive.task_object(each, task_id)
        archive.save(name, [payload])
        task = TaskSnapshot(task_id, "bolt", operator=places_of(name, [payload])[0], component_index=0)
        archive.save_manifest(
            CheckpointManifest("t", each.run, each.number, 0.0, 0.0, key_groups_of(DEFINITION), (task,))
        )
    return archive


def restored(
    archive: CheckpointArchive, plan: CheckpointPlan, definition: TopologyDefinition = DEFINITION
) -> list[object]:
    """Return the state and the checkpoint that a task gets which starts under a plan."""
    spec = instance_spec("bolt", TASK)
    keyed = KeyedStateStore("bolt", TASK, key_groups_of(DEFINITION), FakeClock())
    checkpoints = TaskCheckpoints(spec, archive, keyed, lambda _sent: None, lambda: None)
    sink = SinkBolt()
    checkpoints.restore(PlanIndex(replace(physical_plan(definition), checkpoints=plan)), sink)
    checkpoints.pre_restore(sink)
    return sink.restored


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (CheckpointPlan(), [None, ""]),
        (CheckpointPlan(3, 0, source="t-0/3"), ["t-0/3", "3"]),
        (CheckpointPlan(4, 4, 1, "t-1/4"), ["t-1/4", "4"]),
        (CheckpointPlan(9, 8, 1, "t-1/4"), ["t-1/8", "8"]),
        (CheckpointPlan(4, 4, 0, "t-0/3"), ["t-1/4", "4"]),
    ],
    ids=["no checkpoint", "another run", "the last restore", "complete since the restore", "complete since the start"],
)
def test_a_task_starts_with_the_newest_complete_checkpoint(plan: CheckpointPlan, expected: list[object]) -> None:
    """A task can die between "complete" and its commit: then its output belongs to that checkpoint.

    The checkpoint of the last restore may not exist any more: only the newest ones are kept.
    """
    kept = [each for each in ("t-0/3", "t-1/4", "t-1/8") if each == expected[0]]
    assert restored(archive_with(*kept), plan) == expected


def test_operator_state_of_another_parallelism_is_refused() -> None:
    """The command checks it too; but a configuration may name the checkpoint without the command's check."""
    wider = topology(spout("spout"), bolt("bolt", subscription("spout"), parallelism=2))
    with pytest.raises(CheckpointError, match=r"init_state for 1 tasks of component 'bolt', the topology has 2; set"):
        restored(archive_with("t-0/3"), CheckpointPlan(3, 0, source="t-0/3"), wider)


def test_a_task_that_keeps_its_state_saves_all_of_it_again() -> None:
    """Another region was restored. The payloads of this task may be of a checkpoint that nothing refers to any more."""
    sent: list[Envelope] = []
    stored = threading.Event()
    keyed = KeyedStateStore("bolt", TASK, key_groups_of(DEFINITION), FakeClock(), single=True)
    checkpoints = TaskCheckpoints(instance_spec("bolt", TASK), archive_with(), keyed, sent.append, stored.set)
    sink = SinkBolt()
    checkpoints.restore(PlanIndex(replace(physical_plan(DEFINITION), checkpoints=CheckpointPlan())), sink)
    keyed.state("counts", CounterState[str]).add("word")

    def objects_of(number: int) -> set[str]:
        stored.clear()
        checkpoints.save(number, sink, ended=False)
        while checkpoints.advance():
            pass
        assert stored.wait(10.0)
        checkpoints.advance()
        groups = decode_snapshot(sent[-1].checkpoint_report.snapshot, "the report").groups
        return {place.object for place in groups.values()}

    first = objects_of(1)
    assert len(first) == 1
    assert objects_of(2) == first, "nothing has changed"
    checkpoints.keep(CheckpointPlan(2, 2))
    assert len(objects_of(3) - first) == 1


def test_a_task_that_was_moved_goes_on_with_the_state_of_the_former_one() -> None:
    """An update gives it another id, and the same index."""
    assert restored(archive_with("t-1/4", task_id=TASK + 5), CheckpointPlan(4, 4, 1, "t-1/4")) == ["t-1/4", "4"]


def restored_letters(
    folder: Path, saved: bytes | None, update: PlanUpdate | None = None, *, run: str = "t-1"
) -> list[Path]:
    """Return the files of letters after a task has replaced another one, from a checkpoint with these letters."""
    former, place, checkpoint = TASK + 5, None, CheckpointId(run, 4)
    archive = archive_with()
    if saved is not None:
        name = archive.task_object(checkpoint, former)
        archive.save(name, [saved])
        place = places_of(name, [saved])[0]
    task = TaskSnapshot(former, "bolt", letters=place, component_index=0)
    archive.save_manifest(CheckpointManifest("t", run, 4, 0.0, 0.0, key_groups_of(DEFINITION), (task,)))
    keyed = KeyedStateStore("bolt", TASK, key_groups_of(DEFINITION), FakeClock())
    checkpoints = TaskCheckpoints(instance_spec("bolt", TASK), archive, keyed, lambda _sent: None, lambda: None)
    file = DeadLetterFile.of_task(folder, TASK, 1_000_000)
    checkpoints.letters = HeldLetters(file, TASK, lambda *_failed: None)
    tasks = {"spout": (1,), "bolt": (TASK,) if update is None else (former, TASK)}
    orders = CheckpointPlan(4, 4, 1) if run == "t-1" else CheckpointPlan(4, source=f"{run}/4")
    plan = replace(physical_plan(DEFINITION, tasks), checkpoints=orders, update=update)
    checkpoints.restore(PlanIndex(plan, TASK), SinkBolt())
    checkpoints.pre_restore(SinkBolt())
    return sorted(folder.iterdir())


def letter_of(folder: Path) -> tuple[DeadLetterFile, HeldLetters, bytes]:
    """Return the file of the former task, and what it has saved in checkpoint 4: one letter."""
    file = DeadLetterFile.of_task(folder, TASK + 5, 1_000_000)
    held = HeldLetters(file, TASK + 5, lambda *_failed: None)
    held.add(LetterLine("", "spout", "default", (), "", 1, "failed"))
    saved = held.save(4)
    assert saved is not None
    return file, held, saved


def test_a_task_that_was_moved_takes_over_letters_that_no_checkpoint_holds_any_more(tmp_path: Path) -> None:
    """They were written before, so the newest checkpoint saved none: nobody else could emit or drop them."""
    _, held, _ = letter_of(tmp_path)
    held.complete(4)
    assert restored_letters(tmp_path, None) == [tmp_path / f"dead-letters-{TASK}.jsonl"]


def test_a_task_that_an_update_prepares_leaves_the_letters_to_the_former_one(tmp_path: Path) -> None:
    """The former task runs on, writes the letters, and may keep them: the update can fail."""
    file, held, saved = letter_of(tmp_path)
    update = PlanUpdate(1, UpdatePhase.PREPARE, "target", added=(TASK,), removed=(TASK + 5,))
    assert restored_letters(tmp_path, saved, update) == []
    held.complete(4)
    assert restored_letters(tmp_path, saved, update) == [file.path]
    assert restored_letters(tmp_path, saved) == [tmp_path / f"dead-letters-{TASK}.jsonl"]
    assert len(list(DeadLetterFile.of_task(tmp_path, TASK, 0).letters())) == 1


def test_a_run_that_starts_from_a_checkpoint_takes_over_no_file(tmp_path: Path) -> None:
    """The ids of the former run are those of other tasks here, whose files are in the same folder."""
    file, held, saved = letter_of(tmp_path)
    held.complete(4)
    assert restored_letters(tmp_path, saved, run="t-0") == [tmp_path / f"dead-letters-{TASK}.jsonl", file.path]
