"""The replays of a spout task: its failed roots are emitted again, and become dead letters in the end; decision 060."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple, Protocol

from heron.api.api_constants import TOPOLOGY_DEAD_LETTERS_BYTES
from heron.api.config import setting
from heron.api.dead_letter import DEAD_LETTER_STREAM, DeadLetter
from heron.api.definition import DEAD_LETTERS, StreamDefinition
from heron.clock import monotonic_s, wall_s
from heron.errors import HeronError
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.output.emitter import SpoutEmitter
from heron.instance.output.kept_stream import KeptRootStream
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.own_replays import OwnReplays
from heron.instance.replay.dead_letter_file import DeadLetterFile
from heron.instance.replay.failure_cause import FailureCause, decode_cause, encode_cause
from heron.instance.replay.kept_roots import ColumnRoot, KeptRoot
from heron.instance.replay.letter_line import letter_line, values_of
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.instance.replay.replayer import GivenUp, Replayer
from heron.instance.task import Task
from heron.ipc.documents.letter_line import LetterLine
from heron.ipc.documents.metric_names import DEAD_LETTER_COUNT, DEAD_LETTERS_DROPPED, REPLAY_BYTES, REPLAY_COUNT
from heron.ipc.frames.tracking import RootOutcome
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["LetterStore", "SpoutName", "SpoutReplays"]


class SpoutName(NamedTuple):
    """Which task it is."""

    component: str
    task_id: int
    incarnation: int


class LetterStore(Protocol):
    """Where dead letters stay that no bolt receives."""

    @property
    def dropped(self) -> int:
        """Letters for which there was no room any more."""
        ...

    def take(self, ids: Collection[str]) -> list[LetterLine]:
        """Removes the letters with these ids, and returns those that there were."""
        ...

    def restore(self, line: LetterLine) -> None:
        """Keeps a letter that was taken."""
        ...

    def keep(self, letter: DeadLetter, line: LetterLine) -> None:
        """Keeps a letter, or the line of it; reports it if that is not possible."""
        ...


class SpoutReplays(OwnReplays):
    """What a spout's runner needs of the replays. Belongs to the task thread."""

    def __init__(
        self,
        policy: ReplayPolicy,
        spout: SpoutName,
        emitter: SpoutEmitter,
        pending: PendingRoots,
        store: LetterStore,
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        super().__init__(pending)
        self.replayer = Replayer(policy, clock, self._give_up)
        self._spout = spout
        self._emitter = emitter
        self._store = store
        self._clock = clock
        self._letters = 0

    @classmethod
    def of_task(cls, policy: ReplayPolicy, task: Task, emitter: SpoutEmitter, pending: PendingRoots) -> SpoutReplays:
        """The replays of a task between processes: its letters are in a file beside its logs."""
        spec, size_bytes = task.spec, int(str(setting(task.config, TOPOLOGY_DEAD_LETTERS_BYTES)))
        file = DeadLetterFile(Path(spec.log_dir) / f"dead-letters-{spec.task_id}.jsonl", size_bytes, task.errors.report)
        made = cls(policy, SpoutName(spec.component, spec.task_id, spec.incarnation), emitter, pending, file)
        task.metrics.replays = made
        return made

    @property
    def waiting(self) -> int:
        """`OwnReplays.waiting`."""
        return self.replayer.waiting

    def make_stream(
        self, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin
    ) -> OutStream:
        """`OwnReplays.make_stream`."""
        return KeptRootStream(number, definition, routes, origin, self._pending, self.replayer)

    def is_due(self) -> bool:
        """`OwnReplays.is_due`."""
        return self.replayer.is_due()

    def is_full(self) -> bool:
        """`OwnReplays.is_full`."""
        return self.replayer.is_full()

    def wait_s(self, most_s: float) -> float:
        """`OwnReplays.wait_s`."""
        return min(most_s, max(0.0, self.replayer.due_s - self._clock()))

    def emit_due(self, most: float) -> None:
        """`OwnReplays.emit_due`."""
        for root in self.replayer.take_due(most):
            try:
                self._emit(root)
            except HeronError as error:  # its stream or its direct task is gone, or the author's grouping raised
                self._not_emitted(root, error)
        self._emitter.flush()

    def forget(self) -> None:
        """`OwnReplays.forget`."""
        self.replayer.forget()

    def replay_letters(self, ids: Collection[str]) -> dict[str, str]:
        """Emits stored dead letters as new roots; returns the ids that were found, with the reason where it failed.

        The author's `ack` and `fail` are not called for them: `fail` was called before. A letter that fails too often
        becomes a letter again.
        """
        found: dict[str, str] = {}
        for line in self._store.take(ids):
            try:
                self._emit_letter(line)
                found[line.id] = ""
            except HeronError as error:
                self._store.restore(line)
                found[line.id] = str(error)
        self._emitter.flush()
        return found

    def drop_letters(self, ids: Collection[str]) -> dict[str, str]:
        """Removes stored dead letters; returns the ids that were found."""
        return dict.fromkeys((line.id for line in self._store.take(ids)), "")

    def _emit_letter(self, line: LetterLine) -> None:
        values, again = values_of(line), self.replayer.stored_id(line.tup_id)
        if isinstance(values, list):
            self._emitter.emit(values, again, line.stream)
        else:
            self._emitter.emit_columns(values, again, line.stream)  # type: ignore[arg-type]  # a record batch

    def metrics(self) -> list[Metric]:
        """`heron.instance.metrics.task_metrics.MetricSource`."""
        counter, gauge = MetricKind.COUNTER, MetricKind.GAUGE
        return [
            Metric(REPLAY_COUNT, counter, "tuples", self.replayer.replayed),
            Metric(REPLAY_BYTES, gauge, "bytes", self.replayer.kept_bytes),
            Metric(DEAD_LETTER_COUNT, counter, "tuples", self._letters),
            Metric(DEAD_LETTERS_DROPPED, counter, "tuples", self._store.dropped),
        ]

    def _emit(self, root: KeptRoot) -> None:
        emitter, row = self._emitter, root.row
        direct = root.direct[0] if root.direct else None
        if isinstance(row, ColumnRoot) and row.number is None:
            emitter.emit_columns(row.batch, root.tup_id, root.stream, direct)
        elif isinstance(row, ColumnRoot):
            emitter.emit_columns(row.rows(), None, root.stream, direct, ids=[root.tup_id])
        else:
            emitter.emit(self._values(root), root.tup_id, root.stream, direct)

    def _values(self, root: KeptRoot) -> tuple[object, ...]:
        stream = self._emitter.streams.get(root.stream)
        one = stream is None or stream.arity == 1
        return (root.row,) if one else tuple(root.row)  # type: ignore[arg-type]  # the row of several fields

    def _not_emitted(self, root: KeptRoot, error: HeronError) -> None:
        layout = tuple(root)
        cause = FailureCause.of(self._spout.component, self._spout.task_id, "emitting it again", error)
        self.replayer.note(layout, encode_cause(cause))
        self.replayer.kept_bytes += root.size_bytes
        self.replayer.failed([layout], RootOutcome.FAILED, 0.0)

    def _give_up(self, given_up: GivenUp) -> None:
        self._letters += 1
        letter = self._letter(given_up)
        out = self._emitter.streams.get(DEAD_LETTERS)
        if out is not None and out.definition == DEAD_LETTER_STREAM and out.routes.has_receivers:
            values = tuple(getattr(letter, name) for name in out.definition.fields)
            self._emitter.emit(values, self.replayer.letter_id(), DEAD_LETTERS)
            return
        spout = self._spout
        number = f"{spout.task_id}-{spout.incarnation}-{self._letters}"
        self._store.keep(letter, letter_line(letter, number, spout.component))

    def _letter(self, given_up: GivenUp) -> DeadLetter:
        root, replay, now_s = given_up.root, given_up.replay, wall_s()
        cause = decode_cause(given_up.cause)
        return DeadLetter(
            root.row.rows() if isinstance(root.row, ColumnRoot) else list(self._values(root)),
            root.stream,
            replay.tup_id,
            replay.failures,
            given_up.outcome.name.lower(),
            cause.component,
            cause.task_id,
            cause.error,
            cause.trace,
            now_s - (self._clock() - replay.since_s),
            now_s,
        )
