"""The spans of traced tuples, and the hops of each: where the time of a tuple goes. Pure.

A trace is a tree of spans. The span of a spout begins with the emit of a root; at least once it ends when the root is
settled. The span of a bolt is one execution of a tuple, and has the times of the tuple's way to it. Ids are texts of 16
hexadecimal digits.
"""

from __future__ import annotations

import enum
import itertools

import msgspec

__all__ = ["Hop", "HopKind", "SpanKind", "Stamp", "StampKind", "TraceSpan", "elapsed", "hops_of", "stamp_place"]

_NS_A_SECOND = 1_000_000_000


class SpanKind(enum.StrEnum):
    """The kind of a span."""

    ROOT = "root"  # a root of a spout, or what a spout learned about it later
    EXECUTION = "execution"  # one call of a bolt for one tuple, or for a batch of columns


class StampKind(enum.StrEnum):
    """What happened at a time, in the order of a tuple's way. The stream managers of one container are one."""

    EMITTED = "emitted"
    FLUSHED = "flushed"
    SENT = "sent"  # by the gateway of the emitting task
    ROUTED = "routed"  # arrived at the stream manager of the emitting task
    FORWARDED = "forwarded"  # left it
    PEER_ROUTED = "peer-routed"  # the same at the stream manager of the receiving task, if that is another one
    PEER_FORWARDED = "peer-forwarded"
    RECEIVED = "received"  # by the gateway of the receiving task
    STARTED = "started"
    ENDED = "ended"
    SETTLED = "settled"  # the spout learned the outcome of the root


class HopKind(enum.StrEnum):
    """The part of the way that ends with a stamp."""

    EMIT_BATCH = "emit batch"  # waits for other tuples of its batch
    GATEWAY = "gateway"  # waits in the emitting task: for credit, or for the gateway thread
    WIRE = "wire"  # between two processes
    OUTLET = "outlet"  # waits in a stream manager until the receiving task has room
    QUEUE = "queue"  # waits in the receiving task
    EXECUTE = "execute"
    ACK = "ack"


_ENDS_WITH = {
    StampKind.FLUSHED: HopKind.EMIT_BATCH,
    StampKind.SENT: HopKind.GATEWAY,
    StampKind.ROUTED: HopKind.WIRE,
    StampKind.FORWARDED: HopKind.OUTLET,
    StampKind.PEER_ROUTED: HopKind.WIRE,
    StampKind.PEER_FORWARDED: HopKind.OUTLET,
    StampKind.RECEIVED: HopKind.WIRE,
    StampKind.STARTED: HopKind.QUEUE,
    StampKind.ENDED: HopKind.EXECUTE,
    StampKind.SETTLED: HopKind.ACK,
}


_PLACES = {kind: place for place, kind in enumerate(StampKind)}


class Stamp(msgspec.Struct, frozen=True):
    """A time: `clock` names the monotonic clock of a host, `wall_ns` is since the epoch."""

    kind: StampKind
    clock: int
    monotonic_ns: int
    wall_ns: int


class TraceSpan(msgspec.Struct, frozen=True):
    """A part of a trace that one process reports.

    `component` and `task_id` are those of the process. `source`, `source_task` and `stream` say where the tuple came
    from; they are "", 0 and "" for a root. `rows` is the number of tuples in its batch. `emitted` is the number of
    tuples that the call emitted, and `followed` how many of them are traced. `outcome` is that of a settled root.
    """

    trace_id: str
    span_id: str
    parent_id: str
    kind: SpanKind
    component: str
    task_id: int
    stamps: tuple[Stamp, ...]
    source: str = ""
    source_task: int = 0
    stream: str = ""
    rows: int = 0
    emitted: int = 0
    followed: int = 0
    outcome: str = ""


class Hop(msgspec.Struct, frozen=True):
    """A part of a span: `start_ns` is wall-clock time. `is_estimate`: it lies between two clocks."""

    kind: HopKind
    start_ns: int
    duration_s: float
    is_estimate: bool


def stamp_place(stamp: Stamp) -> int:
    """The place of a stamp on a tuple's way, from 0: a key for sorting, because stamps may come in any order."""
    return _PLACES[stamp.kind]


def elapsed(before: Stamp, after: Stamp) -> tuple[float, bool]:
    """``(seconds, whether they are an estimate)`` between two stamps; never below 0."""
    if before.clock == after.clock:
        return max(0, after.monotonic_ns - before.monotonic_ns) / _NS_A_SECOND, False
    return max(0, after.wall_ns - before.wall_ns) / _NS_A_SECOND, True


def hops_of(stamps: tuple[Stamp, ...]) -> tuple[Hop, ...]:
    """The hops between stamps, which may come in any order.

    The time of a stamp that is missing belongs to the hop that ends with the next one.
    """
    ordered = sorted(stamps, key=stamp_place)
    hops = []
    for before, after in itertools.pairwise(ordered):
        if before.kind is not after.kind:
            duration_s, is_estimate = elapsed(before, after)
            hops.append(Hop(_ENDS_WITH[after.kind], before.wall_ns, duration_s, is_estimate))
    return tuple(hops)
