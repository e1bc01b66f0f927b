"""The dead letters of a bolt task effectively once: the tuples that it failed. Decision 065.

Nothing is tracked effectively once, so no root can be emitted again: the tuple that failed is the record. It is kept
with its values, and `process` gets it again when a command asks for that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from heron.api.api_constants import TOPOLOGY_DEAD_LETTERS_BYTES
from heron.api.bolt import Bolt
from heron.api.config import setting
from heron.api.dead_letter import FailedRecordError
from heron.api.plain_batch import PlainBatch
from heron.api.tuple import Tuple
from heron.author_text import named_error
from heron.clock import wall_s
from heron.errors import HeronError
from heron.instance.acks.failed_rows import FailedRows
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.input.bolt_acks import BoltAcks
from heron.instance.input.undecodable_rows import UndecodableRow
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.output.emitter import BoltEmitter
from heron.instance.replay.failure_cause import decode_cause
from heron.instance.replay.pickled_letter import letter_line, values_of
from heron.instance.state.held_letters import HeldLetters
from heron.instance.task import Task
from heron.instance.user.failure_places import FailurePlace
from heron.ipc.documents.letter_line import LetterLine
from heron.ipc.documents.metric_names import DEAD_LETTER_COUNT, DEAD_LETTERS_DROPPED
from heron.ipc.frames.tracking import Cause
from heron.kernel.dead_letter_file import DeadLetterFile
from heron.spi.metricsink import Metric, MetricKind

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["LetterAcks", "Works"]

Works = Callable[[], Bolt | None]

_WAITS = "it was processed again, and waits for the next checkpoint"


class LetterAcks(BoltAcks):
    """`BoltAcks` that keep what fails. `letters` are part of the checkpoints of the task.

    `works` gives the component that processes letters again; None if it can process nothing now.
    """

    takes_plain = False

    def __init__(
        self, emitter: BoltEmitter, metrics: TaskMetrics, letters: HeldLetters, rows: FailedRows, works: Works
    ) -> None:
        super().__init__(emitter, metrics)
        self.letters = letters
        self._rows, self._works = rows, works
        self._causes: dict[int, Cause] = {}
        self._ruled: set[int] = set()
        self._column_source = ("", "")
        self._failed_columns: dict[int, tuple[RecordBatch, tuple[str, str]]] = {}  # since the last `settle`, by `id`
        self._again: object = None  # the tuple or batch of a letter that is processed now
        self._again_failed = False

    @classmethod
    def of_task(cls, task: Task, emitter: BoltEmitter, works: Works) -> LetterAcks:
        """The acks of a task whose `topology.on.error` is ``dead_letter``; its letters are beside its logs."""
        spec, checkpoints = task.spec, task.checkpoints
        assert checkpoints is not None  # noqa: S101  # `verify` allows the key with checkpoints only
        if checkpoints.letters is None:
            size_bytes = int(str(setting(task.config, TOPOLOGY_DEAD_LETTERS_BYTES)))
            file = DeadLetterFile.of_task(Path(spec.log_dir), spec.task_id, size_bytes)
            checkpoints.letters = HeldLetters(file, spec.task_id, task.errors.report)
        rows = FailedRows(spec.component, spec.task_id, task.errors.places)
        acks = cls(emitter, task.metrics, checkpoints.letters, rows, works)
        task.metrics.replays, task.take_letters = acks, acks.take_letters
        return acks

    def blame(
        self, failed: Tuple | PlainBatch | RecordBatch, doing: str, error: BaseException, at: FailurePlace
    ) -> None:
        """`BoltAcks.blame`. An error with a rule of its own has said what becomes of its records."""
        if isinstance(error, FailedRecordError) and error.stops is not None:
            self._ruled.add(id(failed))
        self._causes[id(failed)] = self._rows.cause(doing, error, at)

    def settle(self) -> None:
        """`BoltAcks.settle`."""
        if self._emitter.failed or self._failed_columns:
            for tup in {id(each): each for each in self._emitter.failed}.values():
                if isinstance(tup, Tuple):
                    self._keep(list(tup.values), tup, (tup.component, tup.stream))
            for batch, source in self._failed_columns.values():
                self._keep(batch, batch, source)
            self._failed_columns.clear()
            self._causes.clear()
            self._ruled.clear()
        super().settle()

    def settle_columns(self, record_batch: RecordBatch, *, acked: bool) -> None:
        """`BoltAcks.settle_columns`."""
        super().settle_columns(record_batch, acked=acked)
        if not acked:  # a component may call `fail`, and raise after it
            self._failed_columns[id(record_batch)] = record_batch, self._column_source

    def begin_columns(
        self,
        record_batch: RecordBatch,
        batch: TrackedBatch | None,
        undecodable: Sequence[UndecodableRow],
        source: tuple[str, str] = ("", ""),
    ) -> None:
        """`BoltAcks.begin_columns`."""
        self._column_source = source

    def _keep(self, values: object, failed: object, source: tuple[str, str]) -> None:
        if failed is self._again:
            self._again_failed = True  # it is a letter already
            return
        if id(failed) in self._ruled:
            return
        cause, now_s = decode_cause(self._causes.get(id(failed), self._rows.plain)), wall_s()
        origin, stream = source
        why = cause.component, cause.task_id, cause.error, cause.trace
        line = letter_line((values, stream, None, 1, "failed", *why, now_s, now_s, "", -1), "", origin)
        self.letters.add(msgspec.structs.replace(line, tup_id=""))  # nothing has ids

    def take_letters(self, ids: Collection[str], *, drop: bool) -> dict[str, str]:
        """`heron.instance.task_telemetry.TakeLetters`."""
        letters, component = self.letters, self._works()
        try:
            stored = [each for each in letters.file.letters() if each.id in ids]
            found = {each.id: _WAITS for each in stored if letters.is_processed_again(each.id)}
            free = [each for each in stored if each.id not in found]
            if drop:
                return found | {each.id: "" for each in letters.file.take({each.id for each in free})}
            letters.file.check_owner()
            if component is None:
                return found | {each.id: "its task has ended or is paused" for each in free}
        except OSError as error:
            msg = f"the dead letters cannot be changed: {error}"
            raise HeronError(msg) from error
        for each in free:
            found[each.id] = self._process(each, component)
            if not found[each.id]:
                letters.processed_again(each.id)
        return found

    def _process(self, line: LetterLine, component: Bolt) -> str:
        """Processes a stored letter; returns why it stays. It is no second letter if it fails again."""
        self.settle()
        self._again_failed = False
        self._column_source = line.spout, line.stream
        reason = ""
        try:
            values = values_of(line)
            if isinstance(values, list):
                self._again = tup = Tuple.source(line.spout, line.stream, -1)(None, tuple(values), 0)
                with self._emitter.lock.released():
                    component.process(tup)
            else:
                self._again = values
                with self._emitter.lock.released():
                    component.process_columns(values)
        except Exception as error:  # the author's
            reason = named_error(error)
        self.settle()
        self._again = None
        return reason or ("fail() was called" if self._again_failed else "")

    def metrics(self) -> list[Metric]:
        """`heron.instance.metrics.task_metrics.MetricSource`."""
        return [
            Metric(DEAD_LETTER_COUNT, MetricKind.COUNTER, "tuples", self.letters.written),
            Metric(DEAD_LETTERS_DROPPED, MetricKind.COUNTER, "tuples", self.letters.dropped),
        ]
