"""The entries of a call as columns, found without an object for each.

Most calls have messages of one category, so their entries begin with the same bytes. All places that have these bytes
are found at once, and the lengths behind them are read at once. The places are those of the entries if each entry ends
where the next one begins, from the first byte of the list to its last. Otherwise the parser of `thrift_frames` decides,
which reads one entry after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc  # here, because the first call of a client would wait for it

from heron_connector_scribe.entries import Entries, Entry
from heron_connector_scribe.thrift_frames import Place, log_entries

__all__ = ["EntryColumns", "columns_of", "log_columns"]

_NAMES = ("category", "partition", "message")
_LIST_HEAD = b"\x0f\x00\x01\x0c"  # field 1 of the arguments: a list of structs
_LIST_BYTES = 8  # of it, with the count
_CATEGORY, _MESSAGE = b"\x0b\x00\x01", b"\x0b\x00\x02"  # the types and numbers of the fields of an entry
_LENGTH_BYTES = 4
_FIELD_BYTES = len(_CATEGORY) + _LENGTH_BYTES
_WORD_BYTES = 8  # which are compared at once; the begin of an entry has at least 10
_MOST_PLACES = 4  # for each entry, which has two fields of the same type
_FEWEST = 64  # entries: below, one after the other is quicker


class EntryColumns(Sequence[Entry]):
    """Entries in their order, as a batch of the columns ``category`` (a dictionary), ``partition`` and ``message``."""

    __slots__ = ("batch",)

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> EntryColumns: ...
    def __getitem__(self, at: int | slice) -> Entry | EntryColumns:
        if isinstance(at, slice):
            begin, end, _ = at.indices(len(self))
            return EntryColumns(self.batch.slice(begin, max(0, end - begin)))
        category, partition, message = (column[at].as_py() for column in self.batch.columns)
        return category, partition, message


def log_columns(frame: bytes, offset: int, most: int, place: Place) -> Sequence[Entry]:
    """As `log_entries`, in columns where that is quicker.

    Raises:
        TooManyEntriesError: when there are more than `most`.
        MalformedFrameError: when the arguments are not those of ``Log``.
    """
    count = int.from_bytes(frame[offset + len(_LIST_HEAD) : offset + _LIST_BYTES], "big")
    if _FEWEST <= count <= most and frame.startswith(_LIST_HEAD, offset):
        batch = _scanned(frame, offset + _LIST_BYTES, count, place)
        if batch is not None:
            return EntryColumns(batch)
    return log_entries(frame, offset, most, place)


def columns_of(entries: Sequence[Entry]) -> pa.RecordBatch:
    """The entries as a batch."""
    if isinstance(entries, EntryColumns):
        return entries.batch
    rows = entries if isinstance(entries, Entries) else Entries.of(entries)
    categories = pa.array(rows.categories, pa.string()).dictionary_encode()
    return _batch(categories, pa.array(rows.partitions, pa.int64()), pa.array(rows.messages, pa.binary()))


def _scanned(frame: bytes, begin: int, count: int, place: Place) -> pa.RecordBatch | None:
    """The batch of a list whose entries begin here; None if they are not of one category, or are placed by a key."""
    category_at = begin + _FIELD_BYTES
    message_field_at = category_at + int.from_bytes(frame[category_at - _LENGTH_BYTES : category_at], "big")
    lead = frame[begin : message_field_at + _FIELD_BYTES - _LENGTH_BYTES]
    if not lead.startswith(_CATEGORY) or not lead.endswith(_MESSAGE):
        return None
    category = frame[category_at:message_field_at].decode("utf-8", "backslashreplace")
    bounds = None if place(category) else _bounds(np.frombuffer(frame, np.uint8), begin, count, lead)
    if bounds is None:
        return None
    parts = _array(pa.binary(), 2 * count, bounds, frame)
    messages = pc.take(parts, _array(pa.int64(), count, np.arange(1, 2 * count, 2)))
    name = category.encode()
    names = _array(pa.string(), 1, np.array([0, len(name)], np.int32), name)
    categories = pa.DictionaryArray.from_arrays(_array(pa.int32(), count, np.zeros(count, np.int32)), names)
    return _batch(categories, _array(pa.int64(), count, np.zeros(count, np.int64)), messages)


def _bounds(data: npt.NDArray[np.uint8], begin: int, count: int, lead: bytes) -> npt.NDArray[np.int32] | None:
    """Where the first entry begins, then where each message begins and ends; None if the entries are not certain."""
    last = len(data) - 1  # the end of the arguments
    width = len(lead) + _LENGTH_BYTES
    if begin + count * width > last:
        return None
    may_begin = data[begin : last - width] == lead[0]
    if np.count_nonzero(may_begin) > _MOST_PLACES * count:  # bounds the memory for a hostile frame
        return None
    starts = np.flatnonzero(may_begin) + begin
    words, behind = _at_each_byte(data, "<u8"), len(lead) - _WORD_BYTES
    for at in (*range(0, behind, _WORD_BYTES), behind):
        starts = starts[words[starts + at] == int.from_bytes(lead[at : at + _WORD_BYTES], "little")]
    if len(starts) != count or starts[0] != begin:
        return None
    lengths = _at_each_byte(data, ">i4")[starts + len(lead)]
    stops = starts + width + lengths
    is_chain = lengths.min() >= 0 and stops[-1] == last - 1 and np.array_equal(stops[:-1] + 1, starts[1:])
    if not is_chain or data[stops].any() or data[last]:
        return None
    bounds = np.empty(2 * count + 1, np.int32)
    bounds[0], bounds[1::2], bounds[2::2] = begin, starts + width, stops
    return bounds


def _at_each_byte(data: npt.NDArray[np.uint8], kind: str) -> npt.NDArray[Any]:
    """The numbers of a type that begin at each byte."""
    return np.ndarray(len(data) - np.dtype(kind).itemsize + 1, kind, data, strides=(1,))


def _array(kind: pa.DataType, count: int, *buffers: object) -> Any:  # noqa: ANN401  # an array of this type
    """An array over buffers. `pyarrow.array` would import pandas in its first call, while clients wait."""
    return pa.Array.from_buffers(kind, count, [None, *map(pa.py_buffer, buffers)])


def _batch(categories: pa.Array, partitions: pa.Array, messages: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([categories, partitions, messages], list(_NAMES))
