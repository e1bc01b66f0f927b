"""The emit of an encoded batch, which becomes segments as it is, rows of the buffer, or single emits."""

from __future__ import annotations

from collections.abc import Sequence

from heron.instance.codec.batch_codec import decode_columns, rows_of
from heron.instance.codec.plain import PLAIN
from heron.instance.output.out_stream import OutStream
from heron.ipc.frames.frame import MOST_ROWS
from heron.spi.serializer import PRIVATE_ENCODINGS

__all__ = ["emit_plain", "rows_to_emit"]


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


def emit_plain(stream: OutStream, payload: bytes, rows: int, of_rows: object, due: list[bytes]) -> None:
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
