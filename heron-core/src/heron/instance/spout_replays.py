"""The replays of a spout task: its failed roots are emitted again, and become dead letters in the end; decision 060."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from heron.api.dead_letter import DEAD_LETTER_STREAM
from heron.api.definition import DEAD_LETTERS, StreamDefinition
from heron.author_text import named_error
from heron.clock import monotonic_s, wall_s
from heron.errors import HeronError
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.output.emitter import SpoutEmitter
from heron.instance.output.kept_stream import KeptRootStream
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.own_replays import OwnReplays
from heron.instance.replay.failure_cause import FailureCause, decode_cause, encode_cause
from heron.instance.replay.kept_roots import ColumnRoot, KeptRoot
from heron.instance.replay.letter_store import LetterStore, TaskName
from heron.instance.replay.pickled_letter import LetterRow, values_of
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.instance.replay.replayer import GivenUp, Replayer
from heron.instance.task import Task, letters_of
from heron.ipc.documents.letter_line import LetterLine
from heron.ipc.documents.metric_names import DEAD_LETTER_COUNT, DEAD_LETTERS_DROPPED, REPLAY_BYTES, REPLAY_COUNT
from heron.ipc.frames.tracking import RootOutcome
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["SpoutReplays"]

_WAITS = "it was emitted again, and waits for its ack"


class SpoutReplays(OwnReplays):
    """What a spout's runner needs of the replays. Belongs to the task thread."""

    def __init__(
        self,
        policy: ReplayPolicy,
        spout: TaskName,
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
        self._ended: dict[str, LetterRow | None] = {}  # replayed letters that the store still has as they were
        self.replayer.on_stored_acked = lambda acked: self._stored_ended(dict.fromkeys(acked))

    @classmethod
    def of_task(cls, policy: ReplayPolicy, task: Task, emitter: SpoutEmitter, pending: PendingRoots) -> SpoutReplays:
        """The replays of a task between processes: its letters are in a file beside its logs."""
        store = letters_of(task)
        made = cls(policy, store.task, emitter, pending, store)
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
        """`OwnReplays.emit_due`. A flush for each few roots would cost more than they do."""
        full = self.replayer.is_full()
        for root in self.replayer.take_due(most):
            try:
                self._emit(root)
            except Exception as error:  # its stream or its direct task is gone, or the author's grouping raised
                self._not_emitted(root, error)
        if full:  # the flush counts the bytes: without it, new roots would take the room
            self._emitter.flush()

    def forget(self) -> None:
        """`OwnReplays.forget`."""
        self.replayer.forget()

    def take_letters(self, ids: Collection[str], *, drop: bool) -> dict[str, str]:
        """Drops stored dead letters, or emits them again; returns the ids that were found, with why they stay.

        A letter that is emitted again leaves its file when its tree is complete.

        Raises:
            HeronError: when their file cannot be read or changed.
        """
        self._change_store()
        try:
            stored = self._store.find(ids)
            found = {each.id: _WAITS for each in stored if each.id in self.replayer.stored}
            free = [each for each in stored if each.id not in found and self._ended.get(each.id, each) is not None]
            if drop:
                return found | {each.id: "" for each in self._store.take({each.id for each in free})}
        except OSError as error:
            msg = f"the dead letters of task {self._spout.task_id} cannot be changed: {error}"
            raise HeronError(msg) from error
        found |= {each.id: self._emit_letter(each) for each in free}
        self._emitter.flush()
        return found

    def _stored_ended(self, ended: Mapping[str, LetterRow | None]) -> None:
        """Letters were acked (None), or have failed again; the store changes when they are as many as those under way.

        A change writes whole files, so a change for each letter would take long.
        """
        self._ended |= ended
        if len(self._ended) >= len(self.replayer.stored):
            self._change_store()

    def _change_store(self) -> None:
        if self._store.change(self._ended):
            self._ended.clear()

    def _emit_letter(self, line: LetterLine) -> str:
        """Emits a stored letter as a new root; returns why that is not possible.

        The author hears nothing of it, because `fail` was called before. If it fails too often it is a letter again.
        """
        again = self.replayer.stored_id(line.id, line.tup_id)
        try:
            values = values_of(line)
            if isinstance(values, list):
                self._emitter.emit(values, again, line.stream)
            else:
                self._emitter.emit_columns(values, again, line.stream)  # type: ignore[arg-type]  # a record batch
        except Exception as error:  # as in `emit_due`
            self.replayer.stored.discard(line.id)
            return named_error(error)
        return ""

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
        if not isinstance(row, ColumnRoot):
            emitter.emit(self._values(root), root.tup_id, root.stream, direct)
        elif row.number is None:
            emitter.emit_columns(row.batch, root.tup_id, root.stream, direct)
        else:
            emitter.emit_columns(row.rows(), None, root.stream, direct, ids=[root.tup_id])

    def _values(self, root: KeptRoot) -> tuple[object, ...]:
        stream = self._emitter.streams.get(root.stream)
        one = stream is None or stream.arity == 1
        return (root.row,) if one else tuple(root.row)  # type: ignore[arg-type]  # the row of several fields

    def _not_emitted(self, root: KeptRoot, error: Exception) -> None:
        cause = FailureCause.of(self._spout.component, self._spout.task_id, "emitting it again", error)
        self.replayer.kept_bytes += root.size_bytes
        self.replayer.failed([root], RootOutcome.FAILED, 0.0, [encode_cause(cause)])

    def _give_up(self, given_up: list[GivenUp]) -> None:
        wall_now_s, now_s = wall_s(), self._clock()
        outcome = given_up[0].outcome.name.lower()  # they were settled together
        letters = [self._letter(each, outcome, wall_now_s, now_s - each.replay.since_s) for each in given_up]
        out, first = self._emitter.streams.get(DEAD_LETTERS), self._letters + 1
        self._letters += len(letters)
        if out is not None and out.definition == DEAD_LETTER_STREAM and out.routes.has_receivers:
            for letter in letters:
                self._emitter.emit(letter, self.replayer.letter_id(), DEAD_LETTERS)
            return
        prefix = f"{self._spout.task_id}-{self._spout.incarnation}-"
        stored = [each.replay.letter for each in given_up]
        again = {before: letter for before, letter in zip(stored, letters, strict=True) if before}
        new = {f"{prefix}{first + place}": letter for place, letter in enumerate(letters) if not stored[place]}
        self._store.add(new)
        if again:
            self.replayer.stored.difference_update(again)
            self._stored_ended(again)

    def _letter(self, given_up: GivenUp, outcome: str, now_s: float, age_s: float) -> LetterRow:
        root, replay, cause = given_up.root, given_up.replay, decode_cause(given_up.cause)
        return (
            root.row.rows() if isinstance(root.row, ColumnRoot) else list(self._values(root)),
            root.stream,
            replay.tup_id,
            replay.failures,
            outcome,
            cause.component,
            cause.task_id,
            cause.error,
            cause.trace,
            now_s - age_s,
            now_s,
            "",
            -1,
        )
