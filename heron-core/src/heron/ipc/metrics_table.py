"""The newest metrics as the topology manager returns them: one row for each metric of a component, task or process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from heron.errors import RemoteProtocolError

__all__ = ["MetricsRow", "SentRow", "decode_metrics", "decode_metrics_as", "encode_metrics"]

T = TypeVar("T")


class MetricsRow(msgspec.Struct, frozen=True, gc=False):
    """One metric; a struct of msgspec, because it is decoded twice as fast as a dataclass.

    `component` is "" for the engine's own processes, whose `process` is ``NAME-CONTAINER``. `task_id` is 0 if the row
    is a sum over tasks. `value` is the total of a counter since the start of its process, the present value of a gauge,
    or the number of entries of a histogram. `rate_per_s` (counters and histograms), `p50` and `p99` (histograms) cover
    the last export period; they are None if nothing was measured in it.
    """

    component: str
    task_id: int
    process: str
    name: str
    kind: str
    unit: str
    value: float
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    rate_per_s: float | None = None
    p50: float | None = None
    p99: float | None = None


class SentRow(MetricsRow, frozen=True, gc=False, omit_defaults=True):
    """A row as it is sent, without what was not measured: to read that took a quarter of the time."""


def encode_metrics(rows: tuple[MetricsRow, ...]) -> bytes:
    """The rows as JSON."""
    return msgspec.json.encode(rows)


_PIECE = 500  # rows: half a millisecond
_WHOLE_BYTES = 512 * 1024  # decode in 3 ms; to find the rows of pieces takes a quarter of the time


def decode_metrics(data: bytes) -> tuple[MetricsRow, ...]:
    """The inverse of `encode_metrics`.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    try:
        return tuple(row for piece in _pieces(data) for row in piece)
    except msgspec.MsgspecError as error:
        raise _unreadable(data, error) from error


def decode_metrics_as(data: bytes, make: Callable[[MetricsRow], T]) -> tuple[T, ...]:
    """What `make` makes of each row. Only a piece is decoded at a time: the rows of 10,000 tasks would need 120 MB.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    try:
        return tuple(make(row) for piece in _pieces(data) for row in piece)
    except msgspec.MsgspecError as error:
        raise _unreadable(data, error) from error


def _pieces(data: bytes) -> Iterator[list[MetricsRow]]:
    """The rows in pieces, between which other threads run: those of a thousand tasks take 45 ms."""
    decoder = msgspec.json.Decoder(list[MetricsRow])
    if len(data) <= _WHOLE_BYTES:
        yield decoder.decode(data)
        return
    rows = msgspec.json.decode(data, type=list[msgspec.Raw])
    for at in range(0, len(rows), _PIECE):
        yield decoder.decode(b"[%b]" % b",".join(rows[at : at + _PIECE]))


def _unreadable(data: bytes, error: Exception) -> RemoteProtocolError:
    return RemoteProtocolError(f"metrics of {len(data)} bytes cannot be read: {error}")
