"""A bolt effectively once that keeps the tuples that it failed, on its task thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from heron.api import Bolt, DeadLetter, FailedRecordError, Tuple
from heron.api.api_constants import TOPOLOGY_ON_ERROR, TOPOLOGY_RELIABILITY_MODE
from heron.checkpoints.archive import CheckpointArchive
from heron.driver_kit.signals import Signals
from heron.errors import HeronError
from heron.instance.bolt_letters import LetterAcks
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import LettersAsked
from heron.instance.state.held_letters import HeldLetters
from heron.instance.task import Task
from heron.instance.user.failure_places import FailurePlace
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.letter_line import LetterLine, decode_letters_answer
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import FRAME_HEADER_BYTES
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import CheckpointPlan
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from heron_testing.memory_checkpoints import MemoryCheckpointStore
from parts import data_frame, instance_spec, tuple_segment

TASK = 2
CONFIG: dict[str, object] = {TOPOLOGY_RELIABILITY_MODE: "EFFECTIVELY_ONCE", TOPOLOGY_ON_ERROR: "dead_letter"}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing arrives in these tests while a bolt waits."""
    monkeypatch.setattr("heron.instance.bolt_runner.rest_s", lambda _task: 0.001)


class Check(Bolt):
    """Raises for 1, fails 2 twice, and fails 3 and then raises; keeps the others."""

    mended: ClassVar[bool] = False
    seen: ClassVar[list[int]] = []

    def process(self, tup: Tuple) -> None:
        (value,) = tup.values
        if value in (2, 3) and not self.mended:
            self.fail(tup)
            self.fail(tup)
        if value in (1, 3) and not self.mended:
            message = f"poison {value}"
            raise ValueError(message)
        if value != 2 or self.mended:
            self.seen.append(value)


class Ruled(Bolt):
    """A step with a rule: skips 1, keeps 2 itself, and has no rule for 3."""

    def process(self, tup: Tuple) -> None:
        (value,) = tup.values
        error = FailedRecordError(f"poison {value}")
        error.stops = None if value == 3 else False
        if value == 2:
            letter = DeadLetter([value], "", None, 1, "failed", "", 0, "poison 2", "", 0.0, 0.0, "divide", 4)
            error.letters = (letter,)
        raise error


class UntilRead(Signals):
    """Runs each step when everything before it was read, and then stops the task."""

    def __init__(self, gateway: Gateway, *steps: Callable[[], object]) -> None:
        self._gateway, self._steps, self._rounds = gateway, list(steps), 0

    @property
    def stop_requested(self) -> bool:
        self._rounds += 1
        if self._gateway.data_in._items or self._rounds % 3:
            return False
        if not self._steps:
            return True
        self._steps.pop(0)()
        return False


class Running:
    """A task between a queue and the test."""

    def __init__(self, folder: Path, component: type[Bolt] = Check) -> None:
        Check.mended, Check.seen[:] = False, []
        definition = topology(spout("spout", stream("v")), bolt("bolt", subscription("spout")), config=CONFIG)
        plan = replace(physical_plan(definition, {"spout": (1,), "bolt": (TASK,)}), checkpoints=CheckpointPlan())
        spec = replace(instance_spec("bolt", TASK), log_dir=str(folder))
        self.gateway = Gateway(spec, EngineSettings())
        self.task = Task(spec, EngineSettings(), self.gateway, plan, CheckpointArchive(MemoryCheckpointStore(), "t"))
        self.component = component

    @property
    def letters(self) -> HeldLetters:
        assert self.task.checkpoints is not None
        assert self.task.checkpoints.letters is not None
        return self.task.checkpoints.letters

    def stored(self) -> list[LetterLine]:
        return list(self.letters.file.letters())

    def checkpoint(self, number: int) -> None:
        self.letters.save(number)
        self.letters.complete(number)

    def put(self, *values: int) -> None:
        frame = data_frame(tuple_segment([(each,) for each in values], (TASK,)))
        self.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)

    def ask(self, *ids: str, drop: bool = False) -> None:
        self.gateway.data_in.put(LettersAsked(1, frozenset(ids), drop=drop))

    def run(self, *steps: Callable[[], object]) -> None:
        BoltRunner(self.task, UntilRead(self.gateway, *steps), self.component).run(ended=False)

    def answers(self) -> list[dict[str, str]]:
        items = [each for each in self.gateway.data_out.items if isinstance(each, Envelope)]
        answers: list[pb.TaskAnswer] = [each.task_answer for each in items if each.HasField("task_answer")]
        return [dict(decode_letters_answer(each.document).found) for each in answers]


def test_tuples_that_fail_are_letters_of_the_next_checkpoint(tmp_path: Path) -> None:
    """Each once, whatever the component does with it; the file has nothing before the checkpoint is complete."""
    running = Running(tmp_path)
    files: list[list[Path]] = []
    running.run(
        lambda: running.put(0, 1, 2, 3, 4),
        lambda: files.append(list(tmp_path.iterdir())),
        lambda: running.checkpoint(7),
    )
    assert files == [[]]
    assert Check.seen == [0, 4]
    assert [(each.id, each.shown, each.error) for each in running.stored()] == [
        ("2-c7-1", ("1",), "ValueError: poison 1"),
        ("2-c7-2", ("2",), ""),
        ("2-c7-3", ("3",), "ValueError: poison 3"),
    ]
    first = running.stored()[0]
    assert (first.spout, first.stream, first.component, first.task_id) == ("spout", "default", "bolt", TASK)
    assert "in process" in first.trace
    metrics = {each.name: each.value for each in running.task.metrics.snapshot([], 0.0)}
    assert (metrics["dead-letter-count"], metrics["dead-letters-dropped"]) == (3, 0)


def test_a_rule_of_a_step_decides_about_its_records(tmp_path: Path) -> None:
    """`topology.on.error` holds where there is no rule: a record of a step is one letter, and a skipped one none.

    A letter of a step is written at once, and is not processed again.
    """
    running = Running(tmp_path, Ruled)
    running.run(
        lambda: running.put(1, 2, 3),
        lambda: running.checkpoint(7),
        lambda: running.ask("2-0-s1"),
        lambda: running.ask("2-0-s1", drop=True),
    )
    (kept,) = running.stored()
    assert (kept.id, kept.shown, kept.step) == ("2-c7-1", ("3",), "")
    refused, dropped = running.answers()
    assert "is of the step 'divide', which cannot get it again" in refused["2-0-s1"]
    assert dropped == {"2-0-s1": ""}


def test_a_letter_is_processed_again_once_and_leaves_with_a_checkpoint(tmp_path: Path) -> None:
    """Two commands at once ask for the same: the second hears that it waits, and so does one that drops it."""
    running = Running(tmp_path)
    waits = "it was processed again, and waits for the next checkpoint"
    running.run(
        lambda: running.put(1, 2),
        lambda: running.checkpoint(1),
        lambda: running.ask("2-c1-1"),
        lambda: setattr(Check, "mended", True),
        lambda: running.ask("2-c1-1", "2-c1-9"),
        lambda: running.ask("2-c1-1"),
        lambda: running.ask("2-c1-1", drop=True),
        lambda: running.ask("2-c1-2", drop=True),
    )
    assert running.answers() == [
        {"2-c1-1": "ValueError: poison 1"},
        {"2-c1-1": ""},
        {"2-c1-1": waits},
        {"2-c1-1": waits},
        {"2-c1-2": ""},
    ]
    assert Check.seen == [1]
    assert [each.id for each in running.stored()] == ["2-c1-1"], "its effect is in no checkpoint yet"
    running.checkpoint(2)
    assert running.stored() == []


def test_a_letter_that_is_failed_again_is_no_second_letter(tmp_path: Path) -> None:
    """The answer says so, and it stays as it was."""
    running = Running(tmp_path)
    running.run(
        lambda: running.put(2, 3),
        lambda: running.checkpoint(1),
        lambda: running.ask("2-c1-1", "2-c1-2"),
    )
    assert running.answers() == [{"2-c1-1": "fail() was called", "2-c1-2": "ValueError: poison 3"}]
    running.checkpoint(2)
    assert [each.id for each in running.stored()] == ["2-c1-1", "2-c1-2"]


def test_a_file_that_others_can_write_is_not_loaded(tmp_path: Path) -> None:
    """Its pickles could run anything."""
    running = Running(tmp_path)
    running.run(lambda: running.put(1), lambda: running.checkpoint(1))
    running.letters.file.path.chmod(0o666)
    task = BoltRunner(running.task, UntilRead(running.gateway), Check).task
    with pytest.raises(HeronError, match=r"cannot be changed: .*its mode is 0666; `chmod 600"):
        task.take_letters(["2-c1-1"], drop=False)


class CheckColumns(Bolt):
    """Fails each batch, until it is mended."""

    mended = False
    rows = 0

    def process_columns(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        if not self.mended:
            self.fail(batch)


def test_a_batch_of_columns_is_one_letter(tmp_path: Path) -> None:
    """It comes back as a batch."""
    running = Running(tmp_path)
    runner = BoltRunner(running.task, UntilRead(running.gateway), Check)
    acks, batch = runner._output.acks, pa.record_batch({"v": [1, 2, 3]})
    assert isinstance(acks, LetterAcks)
    acks.begin_columns(batch, None, (), ("spout", "blocks"))
    acks.blame(batch, "process_columns", ValueError("poison"), FailurePlace())
    acks.settle_columns(batch, acked=False)
    acks.settle()
    running.checkpoint(1)
    (letter,) = running.stored()
    assert (letter.spout, letter.stream, letter.error) == ("spout", "blocks", "ValueError: poison")
    component = runner._component = CheckColumns(delegate=runner._bolt_emitter)
    assert acks.take_letters([letter.id], drop=False) == {letter.id: "fail() was called"}
    component.mended = True
    assert acks.take_letters([letter.id], drop=False) == {letter.id: ""}
    assert component.rows == 6
    running.checkpoint(2)
    assert running.stored() == []


def test_a_batch_of_columns_that_is_failed_before_its_exception_is_one_letter(tmp_path: Path) -> None:
    """As a tuple: a component calls `fail`, and raises after it. The letter has the reason."""
    running = Running(tmp_path)
    runner = BoltRunner(running.task, UntilRead(running.gateway), Check)
    acks, batch = runner._output.acks, pa.record_batch({"v": [1, 2, 3]})
    acks.begin_columns(batch, None, (), ("spout", "blocks"))
    acks.settle_columns(batch, acked=False)
    acks.blame(batch, "process_columns", ValueError("poison"), FailurePlace())
    acks.settle_columns(batch, acked=False)
    acks.settle()
    running.checkpoint(1)
    assert [each.error for each in running.stored()] == ["ValueError: poison"]


class Pairs(Bolt):
    """Keeps a tuple until the next one comes, and fails both."""

    kept: Tuple | None = None

    def process(self, tup: Tuple) -> None:
        if self.kept is None:
            self.kept = tup
            return
        self.fail(self.kept)
        self.fail(tup)
        self.kept = None


def test_a_tuple_that_fails_while_a_letter_is_processed_again_is_a_letter_itself(tmp_path: Path) -> None:
    """A component may keep tuples over calls. Only the tuple of the letter is a letter already."""
    running = Running(tmp_path, Pairs)
    running.run(
        lambda: running.put(1, 2),
        lambda: running.checkpoint(1),
        lambda: running.put(3),
        lambda: running.ask("2-c1-1"),
        lambda: running.checkpoint(2),
    )
    assert running.answers() == [{"2-c1-1": "fail() was called"}]
    assert [each.shown for each in running.stored()] == [("1",), ("2",), ("3",)]
