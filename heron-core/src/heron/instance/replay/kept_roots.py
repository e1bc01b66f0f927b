"""The roots of a flush with what it takes to emit them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["ColumnRoot", "KeptRoot", "KeptRows", "Replay"]

_NO_TASK: tuple[int, ...] = ()


class KeptRoot(msgspec.Struct, gc=False):
    """A root that may be emitted again. `KeptRows` makes it when the root fails; most roots are acked.

    `row` is an entry of the log of the stream: the value itself if the stream has one field; or rows of a batch of
    columns, a `ColumnRoot`. `size_bytes` is its share of the bytes that were sent. Nothing that it refers to can refer
    to it, so the collector need not know it.
    """

    tup_id: object
    row: object
    stream: str
    direct: Sequence[int]
    size_bytes: int


class KeptRows:
    """The rows of the roots of a flush, beside their ids in a page of `heron.instance.acks.pending_roots`.

    They are kept by flush, because to make an object for each root costs a tenth of the throughput.
    """

    __slots__ = ("_direct", "_rows", "_stream", "opened", "size_bytes")

    def __init__(self, stream: str, rows: Sequence[object], direct: Sequence[Sequence[int]] | None = None) -> None:
        """`direct` has the chosen tasks of each row if there are any."""
        self._stream = stream
        self._rows: dict[int, object] | list[object] = list(rows)
        self._direct = direct
        self.opened = 0  # roots
        self.size_bytes = 0  # of each root

    def keep_only(self, opened: Sequence[bool]) -> None:
        """Drops the rows that are no roots."""
        self._rows = [row for row, is_root in zip(cast("list[object]", self._rows), opened, strict=True) if is_root]
        if self._direct is not None:
            self._direct = [each for each, is_root in zip(self._direct, opened, strict=True) if is_root]

    def take(self, places: Sequence[int], ids: Sequence[object]) -> list[KeptRoot]:
        """The roots at these places of the flush, whose rows are dropped here."""
        rows, direct = map(self._rows.__getitem__, places), self._direct
        tasks = repeat(_NO_TASK) if direct is None else map(direct.__getitem__, places)
        roots = list(map(KeptRoot, ids, rows, repeat(self._stream), tasks, repeat(self.size_bytes)))
        self.release(places)
        return roots

    def release(self, places: Iterable[int]) -> None:
        """Drops the rows of roots that have ended."""
        if isinstance(self._rows, dict):
            for place in places:
                self._rows.pop(place, None)
        elif isinstance(places, range):
            self._rows[places.start : places.stop] = [None] * len(places)
        else:
            for place in places:
                self._rows[place] = None

    def thin_out(self, places: Iterable[int]) -> None:
        """Keeps only these places, which are few."""
        self._rows = {place: self._rows[place] for place in places}


class ColumnRoot(NamedTuple):
    """A batch that was emitted as columns, or one row of it if each row has an id."""

    batch: RecordBatch
    number: int | None

    def rows(self) -> RecordBatch:
        """The rows of the root."""
        return self.batch if self.number is None else self.batch.slice(self.number, 1)


class Replay(msgspec.Struct, eq=False, gc=False):
    """The id of a root that was emitted before: the author's id, how often the root has failed, and its first emission.

    `heard` is whether the author hears how it ends. A root with `endless` is emitted again until it is acked. `letter`
    is the id of the stored dead letter that the root is.
    """

    tup_id: object
    since_s: float
    failures: int = 0
    heard: bool = True
    endless: bool = False
    letter: str = ""
