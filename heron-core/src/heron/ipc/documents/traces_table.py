"""The traces that a topology manager keeps, as it returns them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from heron.errors import RemoteProtocolError
from heron.spi.tracing import SpanKind, StampKind, TraceSpan
from heron.spi.typed_values import convert_value, decode_json

__all__ = ["Trace", "TracesTable", "decode_traces", "encode_traces"]


class Trace(msgspec.Struct, frozen=True):
    """The spans of a trace that have arrived, in the order of arrival. `cut`: it had more than are kept."""

    trace_id: str
    spans: tuple[TraceSpan, ...]
    cut: bool = False


class TracesTable(msgspec.Struct, frozen=True):
    """The kept traces, the newest last. `refused` is the number of traces that came too fast to be kept."""

    traces: tuple[Trace, ...] = ()
    refused: int = 0


class _Kind(msgspec.Struct):
    kind: str


class _Trace(msgspec.Struct):
    trace_id: str
    spans: list[dict[str, object]]
    cut: bool = False


class _Table(msgspec.Struct):
    traces: list[_Trace]
    refused: int = 0


def encode_traces(table: TracesTable) -> bytes:
    """The table as JSON."""
    return msgspec.json.encode(table)


def decode_traces(data: bytes) -> TracesTable:
    """The inverse of `encode_traces`. Spans and stamps of unknown kinds, which a newer process may send, are skipped.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    try:
        table = decode_json(data, _Table)
        traces = tuple([Trace(each.trace_id, _spans(each.spans), each.cut) for each in table.traces])
    except msgspec.MsgspecError as error:
        msg = f"traces of {len(data)} bytes cannot be read: {error}"
        raise RemoteProtocolError(msg) from error
    return TracesTable(traces, table.refused)


def _spans(spans: list[dict[str, object]]) -> tuple[TraceSpan, ...]:
    found = []
    for span in _known(spans, SpanKind):
        stamps = convert_value(span.get("stamps"), list[dict[str, object]])
        found.append(convert_value({**span, "stamps": _known(stamps, StampKind)}, TraceSpan))
    return tuple(found)


def _known(things: list[dict[str, object]], kinds: type[StrEnum]) -> list[dict[str, object]]:
    known = frozenset(each.value for each in kinds)
    return [each for each in things if convert_value(each, _Kind).kind in known]
