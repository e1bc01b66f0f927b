"""The spans of a traced tuple as those of OTLP: one for the execution, and one below it for each hop. Pure.

The id of a hop derives from that of its span, so that a request that is sent twice has the same spans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from heron.spi.tracing import HopKind, SpanKind, StampKind, TraceSpan, hops_of, stamp_place
from heron_metricsink_otlp.resources import attributes, text

__all__ = ["spans_of"]

_COMPLETE = "complete"


def spans_of(span: TraceSpan) -> Iterator[Span]:
    """Yield the spans of OTLP for one of Heron."""
    if span.kind is SpanKind.ROOT:
        yield from _of_root(span)
    elif span.stamps:
        yield from _of_execution(span)


def _of_root(span: TraceSpan) -> Iterator[Span]:
    for stamp in span.stamps:
        if stamp.kind is StampKind.EMITTED:
            root = _span(span, _bytes(span.span_id), b"", f"emit {span.component}", stamp.wall_ns, stamp.wall_ns)
            root.kind = Span.SPAN_KIND_PRODUCER
            yield root
        elif stamp.kind is StampKind.SETTLED:
            began_ns = _wall_ns(span, StampKind.EMITTED, stamp.wall_ns)
            ack = _span(span, _derived(span, "ack"), _bytes(span.span_id), "ack", began_ns, stamp.wall_ns)
            ack.attributes.extend(attributes({"heron.outcome": span.outcome}))
            if span.outcome != _COMPLETE:
                ack.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=text(span.outcome)))
            yield ack


def _of_execution(span: TraceSpan) -> Iterator[Span]:
    hops = hops_of(span.stamps)
    first = min(span.stamps, key=stamp_place)
    length_ns = sum(int(each.duration_s * 1e9) for each in hops)
    whole = _span(
        span, _bytes(span.span_id), _bytes(span.parent_id), span.component, first.wall_ns, first.wall_ns + length_ns
    )
    whole.kind = Span.SPAN_KIND_CONSUMER
    whole.attributes.extend(
        attributes(
            {
                "heron.source": span.source,
                "heron.source.task": span.source_task,
                "heron.stream": span.stream,
                "heron.batch.rows": span.rows,
                "heron.emitted": span.emitted,
                "heron.followed": span.followed,
            }
        )
    )
    yield whole
    for number, hop in enumerate(hops):
        name = hop.kind.value if hop.kind is not HopKind.EXECUTE else f"execute {span.component}"
        end_ns = hop.start_ns + int(hop.duration_s * 1e9)
        made = _span(span, _derived(span, str(number)), _bytes(span.span_id), name, hop.start_ns, end_ns)
        if hop.is_estimate:
            made.attributes.extend(attributes({"heron.estimate": True}))
        yield made


def _span(span: TraceSpan, span_id: bytes, parent_id: bytes, name: str, start_ns: int, end_ns: int) -> Span:
    return Span(
        trace_id=bytes(8) + _bytes(span.trace_id),
        span_id=span_id,
        parent_span_id=parent_id,
        name=text(name),
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=max(0, start_ns),
        end_time_unix_nano=max(0, start_ns, end_ns),
    )


def _bytes(number: str) -> bytes:
    return bytes.fromhex(number)


def _derived(span: TraceSpan, part: str) -> bytes:
    return hashlib.sha256(f"{span.span_id} {part}".encode()).digest()[:8]


def _wall_ns(span: TraceSpan, kind: StampKind, default: int) -> int:
    return next((each.wall_ns for each in span.stamps if each.kind is kind), default)
