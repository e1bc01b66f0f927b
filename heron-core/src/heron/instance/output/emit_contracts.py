"""What emitters call, and checks of what an author gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from heron.api.definition import DEFAULT_STREAM
from heron.api.plain_batch import PlainBatch
from heron.author_text import class_name, short_text
from heron.errors import EmitError, nearest

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["ColumnAcks", "SegmentSink", "check_ids", "mistaken_stream"]


class ColumnAcks(Protocol):
    """Receives the acks and fails of batches."""

    def settle_columns(self, batch: RecordBatch, *, acked: bool) -> None:
        """The component acked or failed a batch that it received."""
        ...

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> None:
        """The component acked or failed rows of a batch that it received undecoded."""
        ...


class SegmentSink(Protocol):
    """The destination of segments: the data-out queue, or the inboxes of a simulation."""

    def put(self, segments: Sequence[bytes]) -> None:
        """Appends the segments of one flush."""
        ...

    def has_room(self) -> bool:
        """Whether more may be emitted now."""
        ...

    def wait_for_room(self, timeout_s: float) -> float:
        """Sleeps until there may be room; returns the seconds that it slept."""
        ...

    def on_linger_over(self, action: Callable[[], None]) -> None:
        """Has `action` called whenever the linger after a flush is over."""
        ...


def check_ids(ids: Sequence[object], rows: int, tup_id: object, stream: str) -> None:
    """Checks the ids of the rows of a batch.

    Raises:
        EmitError: when there is not one for each row, or an id for the whole batch as well.
    """
    fault = ""
    if tup_id is not None:
        fault = "both tup_id and ids are given; a batch is one root, or each row is one"
    elif len(ids) != rows:
        fault = f"{len(ids)} ids for {rows} rows"
    elif any(each is None for each in ids):
        fault = "one of the ids is None; give an id for each row, or no ids"
    if fault:
        msg = f"stream {stream!r}: emit_columns: {fault}"
        raise EmitError(msg)


def mistaken_stream(stream: object, declared: Iterable[str]) -> str:
    """A stream that is not declared, as errors show it: a name with a slip, and no value of a record."""
    close = nearest(stream, declared)
    if close or (isinstance(stream, str) and stream == DEFAULT_STREAM):
        return f" {short_text(stream)}{close}"
    return f", a {class_name(stream)}"
