"""The records of a frame from the client, as its bytes: records and columns are made of them when they are needed.

The README has the layout: each number of all records, then the sizes of their data, then the data.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, repeat

from heron_connector_dlog.record import Place, Record

__all__ = ["Block", "blocks_of"]

_COUNT_BYTES, _NUMBER_BYTES, _SIZE_BYTES = 4, 8, 4
_NUMBERS = 5  # of each record: three of the DLSN, the sequence id, the transaction id
_SEQUENCE, _TRANSACTION = 3, 4


class Block:
    """Records that follow each other in a log, from one row of a frame to another.

    Attributes:
        frame_bytes: the size of the frame if these are its last records, else 0.
    """

    __slots__ = ("_begin", "_body", "_count", "_end", "frame_bytes")

    def __init__(self, body: bytes, count: int, begin: int, end: int) -> None:
        """`count` is the number of records in the frame."""
        self._body, self._count, self._begin, self._end = body, count, begin, end
        self.frame_bytes = len(body) if end == count else 0

    def __len__(self) -> int:
        return self._end - self._begin

    def part(self, begin: int, end: int) -> Block:
        """Some of the records."""
        return Block(self._body, self._count, self._begin + begin, self._begin + end)

    def place(self, row: int) -> Place:
        """The place of a record."""
        at = _COUNT_BYTES + _NUMBER_BYTES * (self._begin + row)
        segment, entry, slot, passed = (
            struct.unpack_from(">q", self._body, at + _NUMBER_BYTES * self._count * number)[0]
            for number in range(_TRANSACTION)
        )
        return Place(segment, entry, slot, max(-1, passed))

    def behind(self) -> Place:
        """The place behind the last record."""
        segment, entry, slot, passed = self.place(len(self) - 1)
        return Place(segment, entry, slot + 1, passed if passed < 0 else passed + 1)

    def rows_before(self, place: Place) -> int:
        """How many of the records are before a place."""
        return bisect_left(range(len(self)), place, key=self.place)

    def numbers(self, number: int) -> memoryview:
        """Segments (0), entries (1), slots (2), sequence ids (3) or transaction ids (4): 8 bytes each, big-endian."""
        at = _COUNT_BYTES + _NUMBER_BYTES * (self._count * number + self._begin)
        return memoryview(self._body)[at : at + _NUMBER_BYTES * len(self)]

    def sizes(self) -> memoryview:
        """The sizes of the data: 4 bytes each, big-endian."""
        at = _COUNT_BYTES + _NUMBER_BYTES * _NUMBERS * self._count + _SIZE_BYTES * self._begin
        return memoryview(self._body)[at : at + _SIZE_BYTES * len(self)]

    def data(self) -> memoryview:
        """The data, one after the other."""
        begin = self._data_begin()
        return memoryview(self._body)[begin : begin + sum(_sizes(self.sizes()))]

    def records(self, stream: str) -> Iterator[Record]:
        """The records, as those of a log with this name."""
        body = self._body
        ends = accumulate(_sizes(self.sizes()), initial=self._data_begin())
        segments, entries, slots, sequence, ids = (_longs(self.numbers(number)) for number in range(_NUMBERS))
        passed: Iterable[int] = sequence if sequence[0] >= 0 else repeat(-1)
        # The constructor of a named tuple is a function of Python, which would take as long as all the rest.
        places = map(tuple.__new__, repeat(Place), zip(segments, entries, slots, passed, strict=False))
        return map(Record, repeat(stream), places, ids, [body[begin:end] for begin, end in pairwise(ends)])

    def _data_begin(self) -> int:
        begin = _COUNT_BYTES + (_NUMBER_BYTES * _NUMBERS + _SIZE_BYTES) * self._count
        before = self._body[begin - _SIZE_BYTES * self._count : begin - _SIZE_BYTES * (self._count - self._begin)]
        return begin + sum(_sizes(before))


def blocks_of(body: bytes) -> list[Block]:
    """The records of a frame: usually one block; more if the log has gaps between them."""
    count = int.from_bytes(body[:_COUNT_BYTES], "big")
    whole = Block(body, count, 0, count)
    first, last = whole.place(0).passed, whole.place(count - 1).passed
    if first >= 0 and last - first == count - 1:
        return [whole]
    passed = [max(-1, each) for each in _longs(whole.numbers(_SEQUENCE))]
    begins = [0, *(row for row in range(1, count) if passed[row] != _following(passed[row - 1])), count]
    return [whole.part(begin, end) for begin, end in pairwise(begins)]


def _following(passed: int) -> int:
    return passed if passed < 0 else passed + 1


def _longs(numbers: memoryview) -> Sequence[int]:
    return struct.unpack(f">{len(numbers) // _NUMBER_BYTES}q", numbers)


def _sizes(sizes: bytes | memoryview) -> Sequence[int]:
    return struct.unpack(f">{len(sizes) // _SIZE_BYTES}i", sizes)
