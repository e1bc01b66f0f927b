"""The roots of a flush with what it takes to emit them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["ColumnRoot", "KeptRoot", "Replay", "keep_rows"]


class KeptRoot(NamedTuple):
    """The layout of the plain tuples that stand for ids in `heron.instance.acks.pending_roots`.

    `row` is an entry of the log of the stream: the value itself if the stream has one field; or rows of a batch of
    columns, a `ColumnRoot`. `size_bytes` is its share of the bytes that were sent.
    """

    tup_id: object
    row: object
    stream: str
    direct: Sequence[int]
    size_bytes: int


class ColumnRoot(NamedTuple):
    """A batch that was emitted as columns, or one row of it if each row has an id."""

    batch: RecordBatch
    number: int | None

    def rows(self) -> RecordBatch:
        """The rows of the root."""
        return self.batch if self.number is None else self.batch.slice(self.number, 1)


class Replay:
    """The id of a root that was emitted before: the author's id, and how often the root has failed.

    `heard` is whether the author hears how it ends. A root with `endless` is emitted again until it is acked.
    """

    __slots__ = ("endless", "failures", "heard", "since_s", "tup_id")

    def __init__(self, tup_id: object, since_s: float, *, heard: bool = True, endless: bool = False) -> None:
        self.tup_id = tup_id
        self.since_s = since_s  # when the root was emitted first
        self.failures = 0
        self.heard = heard
        self.endless = endless


def keep_rows(
    ids: Iterable[object], rows: Iterable[object], stream: str, directs: Iterable[Sequence[int]], size_bytes: int
) -> list[tuple[object, object, str, Sequence[int], int]]:
    """`KeptRoot` without its class, which takes four times as long to make: one call for each flush."""
    return list(zip(ids, rows, repeat(stream), directs, repeat(size_bytes)))  # `repeat` has no end
