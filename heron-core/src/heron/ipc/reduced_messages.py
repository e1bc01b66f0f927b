"""Control messages above the limit of a frame: compressed, reduced to what fits, or named in an error. Pure.

A reader of a reduced message sees what is missing: an answer becomes the refusal of the question, with the size and the
limit. Metrics lose first the spans, then the events, then the values. The report of a task loses its totals.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterator

from heron.errors import LimitExceededError
from heron.ipc import control_pb2 as pb
from heron.ipc.control_pb2 import Envelope

__all__ = ["DECOMPRESSED_MAX_BYTES", "compressed", "fitting"]

_log = logging.getLogger(__name__)

DECOMPRESSED_MAX_BYTES = 1 << 28
"""The largest envelope after decompression: the plan of a million tasks takes half of it."""

_FAST = 1  # the level of zlib that takes the least time


def compressed(envelope: Envelope) -> Envelope:
    """The same envelope in less space, for a message that goes to many peers; `parse_control` returns the original."""
    return _packed(envelope.SerializeToString())


def fitting(envelope: Envelope, max_bytes: int) -> bytes:
    """The envelope as at most `max_bytes` bytes; it is compressed or reduced if it takes more.

    Raises:
        LimitExceededError: when a message of this kind cannot be reduced.
    """
    data = envelope.SerializeToString()
    if len(data) <= max_bytes:
        return data
    if len(data) <= DECOMPRESSED_MAX_BYTES and len(packed := _packed(data).SerializeToString()) <= max_bytes:
        return packed
    body = envelope.WhichOneof("body") or "envelope"
    reason = f"{body} of {len(data)} bytes exceeds the limit of a control message, {max_bytes} bytes"
    for smaller in _REDUCTIONS.get(body, _nothing)(envelope, reason):
        if len(data := smaller.SerializeToString()) <= max_bytes:
            _log.error("%s; it is sent in a reduced form", reason)
            return data
    msg = f"{reason}, also when compressed; use fewer tasks, streams or values in the configuration"
    raise LimitExceededError(msg)


def _packed(data: bytes) -> Envelope:
    return Envelope(compressed=zlib.compress(data, _FAST))


def _nothing(_envelope: Envelope, _reason: str) -> Iterator[Envelope]:
    return iter(())


def _answer(envelope: Envelope, reason: str) -> Iterator[Envelope]:
    number = envelope.task_answer.request_id
    yield Envelope(
        epoch=envelope.epoch, task_answer=pb.TaskAnswer(request_id=number, failure=f"{reason}; ask for less")
    )


def _reply(envelope: Envelope, reason: str) -> Iterator[Envelope]:
    number = getattr(envelope, envelope.WhichOneof("body") or "").request_id
    hint = "ask for one component or task, or for fewer names"
    yield Envelope(epoch=envelope.epoch, refused=pb.Refused(request_id=number, reason=f"{reason}; {hint}"))


def _metrics(envelope: Envelope, _reason: str) -> Iterator[Envelope]:
    smaller = Envelope.FromString(envelope.SerializeToString())
    for part in ("spans", "events", "metrics"):
        smaller.metrics_publish.ClearField(part)
        yield smaller


def _report(envelope: Envelope, _reason: str) -> Iterator[Envelope]:
    smaller = Envelope.FromString(envelope.SerializeToString())
    smaller.task_report.ClearField("totals")
    yield smaller


def _hello(envelope: Envelope, _reason: str) -> Iterator[Envelope]:
    smaller = Envelope.FromString(envelope.SerializeToString())
    for report in smaller.stmgr_hello.tasks:
        report.ClearField("totals")
    yield smaller


def _checkpoint(envelope: Envelope, reason: str) -> Iterator[Envelope]:
    smaller = Envelope.FromString(envelope.SerializeToString())
    report = smaller.checkpoint_report
    report.ClearField("snapshot")
    report.phase, report.error = pb.CHECKPOINT_PHASE_FAILED, reason
    yield smaller


_REDUCTIONS: dict[str, Callable[[Envelope, str], Iterator[Envelope]]] = {
    "task_answer": _answer,
    "status_reply": _reply,
    "metrics_reply": _reply,
    "traces_reply": _reply,
    "metrics_publish": _metrics,
    "task_report": _report,
    "stmgr_hello": _hello,
    "checkpoint_report": _checkpoint,
}
