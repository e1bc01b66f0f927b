"""The emit of an encoded batch, which becomes segments as it is, rows of the buffer, or single emits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from heron.api.context import ITaskHook
from heron.instance.codec.batch_codec import decode_columns, rows_of
from heron.instance.codec.plain import PLAIN, check_shape
from heron.instance.output.emit_lock import EmitLock
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.ipc.frames.frame import MOST_ROWS
from heron.spi.serializer import PRIVATE_ENCODINGS

__all__ = ["rows_to_emit", "send_plain"]


class PlainEmitter(Protocol):
    """What `send_plain` needs of `heron.instance.output.emitter.Emitter`."""

    hooks: tuple[ITaskHook, ...]
    origin: StreamOrigin
    lock: EmitLock
    put: Callable[[Sequence[bytes]], None]
    overflowed: bool

    def _stream(self, stream: object) -> OutStream: ...
    def _wait_for_room(self) -> None: ...


def send_plain(
    emitter: PlainEmitter, payload: bytes, rows: int, stream: str, of_rows: object
) -> Sequence[tuple[object, ...]]:
    """Sends an encoded batch, or returns its rows, which then have to be emitted one by one."""
    target = emitter._stream(stream)
    check_shape(payload, rows, target.arity)
    observed = bool(emitter.hooks) or emitter.origin.inspected.sample is not None or target.shedder is not None
    if left := rows_to_emit(target, payload, rows, observed=observed):
        return left
    due: list[bytes] = []
    with emitter.lock.held():
        try:
            _emit_plain(target, payload, rows, of_rows, due)
        finally:  # rows that were emitted before are taken already
            if due:
                emitter.put(due)
    if due:
        emitter.overflowed = True
        emitter._wait_for_room()
    return ()


def rows_to_emit(stream: OutStream, payload: bytes, rows: int, *, observed: bool) -> Sequence[tuple[object, ...]]:
    """The rows of a batch that have to be emitted one by one.

    Somebody observes or traces them, or chooses their tasks, or the topology has its own serializer, which may encrypt.

    Raises:
        SerializationError: when the payload does not decode.
    """
    routes, is_private = stream.routes, stream.origin.serializer.encoding in PRIVATE_ENCODINGS
    if observed or is_private or stream.traces is not None or routes.choosers or routes.direct_picks:
        return rows_of(decode_columns(payload, rows, PLAIN), rows)
    return ()


def _emit_plain(stream: OutStream, payload: bytes, rows: int, of_rows: object, due: list[bytes]) -> None:
    """Takes a batch behind everything that was emitted before; appends the segments to send to `due`, also on an error.

    `of_rows` is what tracked streams know of the rows: ids of roots, or anchors.

    Raises:
        SerializationError: when the payload has to be decoded, and does not decode.
    """
    origin = stream.origin
    if not stream.routes.splitters and len(payload) <= min(2 * origin.batch_bytes, origin.tuple_max_bytes):
        due += stream.flush()
        if rows <= MOST_ROWS and (segments := stream.whole_plain(payload, rows, of_rows)) is not None:
            due += segments
            return
    stream.add_plain(decode_columns(payload, rows, PLAIN), rows, of_rows)
    if len(stream.rows) >= stream.limit:
        due += stream.flush()
