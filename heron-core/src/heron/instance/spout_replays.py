"""The replays of a spout task: its failed roots are emitted again, and become dead letters in the end; decision 060."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec

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
from heron.instance.replay.letter_line import letter_line
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.instance.replay.replayer import GivenUp, Replayer
from heron.instance.task import Task
from heron.ipc.documents.metric_names import DEAD_LETTER_COUNT, DEAD_LETTERS_DROPPED, REPLAY_BYTES, REPLAY_COUNT
from heron.ipc.frames.tracking import RootOutcome
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["SpoutReplays"]


class SpoutReplays(OwnReplays):
    """What a spout's runner needs of the replays. Belongs to the task thread."""

    def __init__(self, policy: ReplayPolicy, task: Task, emitter: SpoutEmitter, pending: PendingRoots) -> None:
        super().__init__(pending)
        self.replayer = Replayer(policy, monotonic_s, self._give_up)
        self._task = task
        self._emitter = emitter
        size_bytes = int(str(setting(task.config, TOPOLOGY_DEAD_LETTERS_BYTES)))
        self._file = DeadLetterFile(Path(task.spec.log_dir) / f"dead-letters-{task.spec.task_id}.jsonl", size_bytes)
        self._numbers = itertools.count(1)
        self._letters = 0
        task.metrics.replays = self

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
        return min(most_s, max(0.0, self.replayer.due_s - monotonic_s()))

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

    def metrics(self) -> list[Metric]:
        """`heron.instance.metrics.task_metrics.MetricSource`."""
        counter, gauge = MetricKind.COUNTER, MetricKind.GAUGE
        return [
            Metric(REPLAY_COUNT, counter, "tuples", self.replayer.replayed),
            Metric(REPLAY_BYTES, gauge, "bytes", self.replayer.kept_bytes),
            Metric(DEAD_LETTER_COUNT, counter, "tuples", self._letters),
            Metric(DEAD_LETTERS_DROPPED, counter, "tuples", self._file.dropped),
        ]

    def _emit(self, root: KeptRoot) -> None:
        emitter, row = self._emitter, root.row
        direct = root.direct[0] if root.direct else None
        if isinstance(row, ColumnRoot) and row.number is None:
            emitter.emit_columns(row.batch, root.tup_id, root.stream, direct)
        elif isinstance(row, ColumnRoot):
            emitter.emit_columns(row.rows(), None, root.stream, direct, ids=[root.tup_id])
        else:
            emitter.add(self._values(root), root.stream, direct, need_task_ids=False, tup_id=root.tup_id)

    def _values(self, root: KeptRoot) -> tuple[object, ...]:
        stream = self._emitter.streams.get(root.stream)
        one = stream is None or stream.arity == 1
        return (root.row,) if one else tuple(root.row)  # type: ignore[arg-type]  # the row of several fields

    def _not_emitted(self, root: KeptRoot, error: HeronError) -> None:
        spec = self._task.spec
        layout = tuple(root)
        cause = FailureCause.of(spec.component, spec.task_id, "emitting it again", error)
        self.replayer.note(layout, encode_cause(cause))
        self.replayer.kept_bytes += root.size_bytes
        self.replayer.failed([layout], RootOutcome.FAILED, 0.0)

    def _give_up(self, given_up: GivenUp) -> None:
        self._letters += 1
        letter = self._letter(given_up)
        out = self._emitter.streams.get(DEAD_LETTERS)
        if out is not None and out.definition == DEAD_LETTER_STREAM and out.routes.has_receivers:
            values = tuple(getattr(letter, name) for name in out.definition.fields)
            self._emitter.add(values, DEAD_LETTERS, None, need_task_ids=False, tup_id=self.replayer.letter_id())
            return
        spec = self._task.spec
        number = f"{spec.task_id}-{spec.incarnation}-{next(self._numbers)}"
        line = letter_line(letter, number, spec.component, *self._encoded(given_up.root))
        try:
            self._file.append(msgspec.json.encode(line))
        except OSError as error:
            self._task.errors.report("writing a dead letter", error, "the record is lost", letter.values)

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
            now_s - (monotonic_s() - replay.since_s),
            now_s,
        )

    def _encoded(self, root: KeptRoot) -> tuple[str, bytes]:
        """The serializer and the bytes of the values of a root; empty if they cannot be encoded."""
        origin, stream = self._emitter.origin, self._emitter.streams[root.stream]
        if isinstance(root.row, ColumnRoot):
            return "", b""
        for _, payload in origin.encoded([root.row], stream.definition.fields, _ignore):
            return str(origin.serializer.encoding), payload
        return "", b""


def _ignore(_row: object, _error: Exception) -> None:
    """The reason is in the letter."""
