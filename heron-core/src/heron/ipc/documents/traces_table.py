"""The traces that a topology manager keeps, as it returns them."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from heron.errors import RemoteProtocolError
from heron.spi.tracing import SpanKind, Stamp, StampKind, TraceSpan
from heron.spi.typed_values import decode_json

__all__ = ["Trace", "TracesTable", "decode_traces", "encode_traces"]


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of a trace that have arrived, in the order of arrival. `cut`: it had more than are kept."""

    trace_id: str
    spans: tuple[TraceSpan, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class TracesTable:
    """The kept traces, the newest last. `refused` is the number of traces that came too fast to be kept."""

    traces: tuple[Trace, ...] = ()
    refused: int = 0


class _Stamp(msgspec.Struct):
    kind: str
    clock: int
    monotonic_ns: int
    wall_ns: int


class _Span(msgspec.Struct):
    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    component: str
    task_id: int
    stamps: list[_Stamp]
    source: str = ""
    source_task: int = 0
    stream: str = ""
    rows: int = 0
    emitted: int = 0
    followed: int = 0
    outcome: str = ""


class _Trace(msgspec.Struct):
    trace_id: str
    spans: list[_Span]
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
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        msg = f"traces of {len(data)} bytes cannot be read: {error}"
        raise RemoteProtocolError(msg) from error
    kinds = frozenset(each.value for each in SpanKind)
    traces = tuple(
        [
            Trace(each.trace_id, tuple([_span(span) for span in each.spans if span.kind in kinds]), each.cut)
            for each in table.traces
        ]
    )
    return TracesTable(traces, table.refused)


def _span(span: _Span) -> TraceSpan:
    kinds = frozenset(each.value for each in StampKind)
    stamps = [
        Stamp(StampKind(each.kind), each.clock, each.monotonic_ns, each.wall_ns)
        for each in span.stamps
        if each.kind in kinds
    ]
    return TraceSpan(
        span.trace_id,
        span.span_id,
        span.parent_id,
        SpanKind(span.kind),
        span.component,
        span.task_id,
        tuple(stamps),
        source=span.source,
        source_task=span.source_task,
        stream=span.stream,
        rows=span.rows,
        emitted=span.emitted,
        followed=span.followed,
        outcome=span.outcome,
    )
