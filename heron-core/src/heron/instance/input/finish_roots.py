"""The roots of what a bolt emits in `finish`. Belongs to the task thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from heron.api.bolt import Bolt
from heron.api.definition import DEFAULT_STREAM, StreamDefinition
from heron.api.tuple import Tuple
from heron.author_text import Described
from heron.clock import monotonic_s
from heron.instance.acks.pending_roots import PendingRoots, RootCallbacks
from heron.instance.codec.batch_codec import decode_columns, rows_of
from heron.instance.codec.plain import PLAIN
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.output.emitter import BoltEmitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.output.tracked_stream import RootStream
from heron.instance.queues.data_queue import RootsSettled
from heron.instance.user.user_component import specialise
from heron.instance.user.user_errors import named_values

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from heron.api.columns import Columns

__all__ = ["FinishRoots"]

_Kept = tuple[Sequence[object], str, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class _KeptColumns:
    batch: RecordBatch
    stream: str
    direct_task: int | None


class FinishRoots:
    """The rows that a bolt emits in `finish`: roots, which are emitted again until their trees are complete.

    `begun` is set when `finish` is called, and only where delivery is at least once.
    """

    def __init__(
        self, emitter: BoltEmitter, metrics: TaskMetrics, user_failed: Callable[[str, BaseException, str, object], None]
    ) -> None:
        def failed_call(doing: str, error: BaseException, kept: object) -> None:
            user_failed(doing, error, "the tuple is lost", self._record(kept))

        self._emitter = emitter
        self._pending = PendingRoots(monotonic_s)
        self._callbacks = RootCallbacks(self._pending, metrics, failed_call)
        self._callbacks.on_fail = self._emit_again
        self.begun = False

    def make_stream(
        self, number: int, stream: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin
    ) -> OutStream:
        """Makes an output stream of the bolt after `finish` has begun."""
        return RootStream(number, stream, routes, origin, self._pending)

    def settle(self, settled: RootsSettled) -> None:
        """Handles outcomes of the roots."""
        self._callbacks.settle(settled)
        self._emitter.flush()

    def lose_all(self) -> None:
        """Emits all roots in flight again, because a new stream manager has no record of them."""
        self._callbacks.lose_all()
        self._emitter.flush()

    def complete(self) -> bool:
        """Whether no root is in flight."""
        return not self._pending.in_flight and not self._emitter.pending_rows()

    def begin(self, component: Bolt, apply_routes: Callable[[], None], check_anchors: Callable[[object], None]) -> None:
        """Makes roots of everything that the component emits from now on.

        Anchors are only checked: all producers of the task have ended, so the trees of what it received are complete.
        """
        self.begun = True
        self._check_anchors = check_anchors
        apply_routes()
        specialise(component, {"emit": self._emit})
        self._emitter.emit = self._emit  # type: ignore[method-assign]  # the author's own `emit` calls this one
        self._emitter.emit_columns = self._emit_columns  # type: ignore[method-assign]
        self._emitter.emit_plain = self._emit_plain  # type: ignore[method-assign]

    def end(self) -> None:
        """Gives the collector its own methods back, for a component that is restored after `begin`."""
        for method in ("emit", "emit_columns", "emit_plain"):
            vars(self._emitter).pop(method, None)

    def _emit(
        self,
        values: Sequence[object],
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        if anchors is not None:
            self._check_anchors(anchors)
        if not isinstance(values, str | bytes) and isinstance(values, Iterable):
            values = tuple(values)  # an iterator has them once
        kept: _Kept = (values, stream, direct_task)
        return self._emitter.add(values, stream, direct_task, need_task_ids, tup_id=kept)

    def _emit_columns(
        self,
        batch: Columns,
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple | RecordBatch] | None = None,
        direct_task: int | None = None,
    ) -> None:
        if anchors is not None:
            self._check_anchors(anchors)
        _, columns, rows = self._emitter.column_target(batch, stream, direct_task)
        self._send(_KeptColumns(columns.copied(rows), stream, direct_task))

    def _emit_plain(
        self, payload: bytes, rows: int, stream: str = DEFAULT_STREAM, anchors: object = ()
    ) -> Sequence[tuple[object, ...]]:
        """Each row is a root of its own, which needs its values."""
        return rows_of(decode_columns(payload, rows, PLAIN), rows)

    def _send(self, kept: _KeptColumns) -> None:
        # looked up again: a replay may come after a change of the plan
        target, columns, batch = self._emitter.column_target(kept.batch, kept.stream, kept.direct_task)
        if isinstance(target, RootStream):
            self._emitter.send_columns(
                target, batch, lambda: target.emit_root(columns, batch, kept.direct_task, kept, None)
            )

    def _record(self, kept: object) -> object:
        """What was emitted, for errors."""
        if isinstance(kept, _KeptColumns):
            return Described(f"{kept.batch.num_rows} rows of stream {kept.stream!r}")
        values, stream, _ = cast("_Kept", kept)
        target = self._emitter.streams.get(stream)
        return named_values(() if target is None else target.definition.fields, values)

    def _emit_again(self, kept: object) -> None:
        if isinstance(kept, _KeptColumns):
            self._send(kept)
            return
        values, stream, direct_task = cast("_Kept", kept)  # the id that `_emit` gave
        self._emitter.add(values, stream, direct_task, need_task_ids=False, tup_id=kept)
