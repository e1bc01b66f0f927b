"""The columns of a call are the entries that the parser of rows finds, whatever bytes come."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from heron_connector_scribe.entries import Entry
from heron_connector_scribe.entry_columns import EntryColumns, log_columns
from heron_connector_scribe.message_partitions import MessagePartitions
from heron_connector_scribe.thrift_frames import MalformedFrameError, Parse, TooManyEntriesError, log_entries

_MOST = 300
_PLACE = MessagePartitions({"split": 4}, b"\x01").of
_BEGIN_OF_ENTRY = b"\0\x0b\0\1"

categories = st.sampled_from([b"web", b"db", b"", "äß".encode(), b"eleven-byte", b"\xff"])
messages = st.one_of(st.binary(max_size=20), st.just(b"a" * 11), st.just(_BEGIN_OF_ENTRY))


def _field(number: int, text: bytes) -> bytes:
    return struct.pack(">bhi", 11, number, len(text)) + text


def arguments(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The arguments of ``Log`` as clients write them."""
    texts = b"".join(_field(1, category) + _field(2, message) + b"\0" for category, message in entries)
    return struct.pack(">bhbi", 15, 1, 12, len(entries)) + texts + b"\0"


def outcome(parse: Parse, frame: bytes, offset: int = 0) -> list[Entry] | type[Exception]:
    """The entries, or which error it is."""
    try:
        return list(parse(frame, offset, _MOST, _PLACE))
    except (MalformedFrameError, TooManyEntriesError) as error:
        return type(error)


@settings(max_examples=50)
@given(st.lists(st.tuples(categories, messages), min_size=50, max_size=120), st.binary(max_size=9))
def test_what_clients_write_is_read(entries: list[tuple[bytes, bytes]], head: bytes) -> None:
    """Categories change, and messages look like the begin of an entry."""
    frame = head + arguments(entries)
    assert outcome(log_columns, frame, len(head)) == outcome(log_entries, frame, len(head))


@settings(max_examples=200)
@given(st.integers(64, 80), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=3), st.data())
def test_damaged_frames_are_read_or_refused_as_before(
    count: int, changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    """A quick look at all entries must accept nothing that a slow one refuses."""
    frame = bytearray(arguments([(b"web", b"\x0b" * (number % 5)) for number in range(count)]))
    for at, byte in changes:
        frame[at % len(frame)] = byte
    end = data.draw(st.sampled_from([len(frame), len(frame) - 1, len(frame) - 16]))
    damaged = bytes(frame[:end]) + data.draw(st.binary(max_size=2))
    assert outcome(log_columns, damaged) == outcome(log_entries, damaged)


def test_a_large_call_becomes_columns_without_rows() -> None:
    """Also if its messages contain most bytes of the begin of an entry. A part of them has the same entries."""
    texts = [b"\x0b\0\1\0\0\0\3%d\0" % number for number in range(100)]
    found = log_columns(arguments([(b"ads", text) for text in texts]), 0, 100, _PLACE)
    assert isinstance(found, EntryColumns)
    assert [message for _, _, message in found] == texts
    assert list(found[98:]) == [("ads", 0, texts[98]), ("ads", 0, texts[99])]
    assert len(found[200:]) == 0


def test_categories_with_partitions_are_placed() -> None:
    """The partition of a message follows from its bytes."""
    frame = arguments([(b"split", b"%d\1" % number) for number in range(100)])
    assert outcome(log_columns, frame) == outcome(log_entries, frame)
    assert len({partition for _, partition, _ in log_columns(frame, 0, 100, _PLACE)}) == 4
