"""The parser of calls, against what a real Thrift library writes, and against damaged frames."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import thriftpy2
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2 import transport
from thriftpy2.protocol import binary
from thriftpy2.thrift import TMessageType

import heron_metricsink_scribe.client
from heron_connector_scribe.entries import Entry
from heron_connector_scribe.message_partitions import MessagePartitions
from heron_connector_scribe.thrift_frames import (
    MalformedFrameError,
    TooManyEntriesError,
    log_entries,
    parse_call,
    result_reply,
    string_argument,
)
from heron_testing.hostile_bytes import Decoder, attack

_MOST = 1000
_INTERFACE = Path(heron_metricsink_scribe.client.__file__).with_name("scribe.thrift")
_BUFFER: Any = transport.TMemoryBuffer
_PROTOCOL: Any = binary.TBinaryProtocol
_SCRIBE: Any = thriftpy2.load(str(_INTERFACE), "heron_scribe_thrift")
_STRUCT, _STRING, _LIST = 12, 11, 15


def written(entries: list[tuple[str, str]], seqid: int, *, strict: bool) -> bytes:
    """A call of ``Log`` as thriftpy2 writes it."""
    buffer = _BUFFER()
    protocol = _PROTOCOL(buffer, strict_write=strict)
    protocol.write_message_begin("Log", TMessageType.CALL, seqid)
    messages = [_SCRIBE.LogEntry(category=category, message=message) for category, message in entries]
    protocol.write_struct(_SCRIBE.scribe.Log_args(messages=messages))
    protocol.write_message_end()
    return bytes(buffer.getvalue())


def parsed(frame: bytes, partitions: dict[str, int] | None = None) -> list[Entry]:
    call = parse_call(frame)
    return list(log_entries(frame, call.offset, _MOST, MessagePartitions(partitions or {}, b"\x01").of))


def counter_name(frame: bytes) -> str:
    return string_argument(frame, parse_call(frame).offset)


def head(count: int, *, kind: int = _STRUCT) -> bytes:
    """A call without a version, up to the first entry."""
    named = struct.pack(">i", 3) + b"Log\x01" + struct.pack(">i", 7)
    return named + struct.pack(">bhbi", _LIST, 1, kind, count)


def text_field(number: int, text: bytes) -> bytes:
    return struct.pack(">bhi", _STRING, number, len(text)) + text


names = st.sampled_from(["web", "db", "", "äß"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=50)
@given(st.lists(st.tuples(names, texts), max_size=30), st.integers(-(2**31), 2**31 - 1), st.booleans())
def test_what_thrift_writes_is_read(entries: list[tuple[str, str]], seqid: int, strict: bool) -> None:
    """Runs of equal categories take another way through the parser than a change of the category."""
    frame = written(entries, seqid, strict=strict)
    assert parse_call(frame)[:4] == ("Log", TMessageType.CALL, seqid, strict)
    assert parsed(frame) == [(category, 0, message.encode()) for category, message in entries]


@given(st.booleans(), st.sampled_from([0, 1]))
def test_thrift_reads_the_answer(strict: bool, result: int) -> None:
    """A client refuses an answer in the form that it does not use."""
    call = parse_call(written([], 9, strict=strict))
    framed = result_reply(call, result)
    assert struct.unpack_from(">i", framed)[0] == len(framed) - 4
    protocol = _PROTOCOL(_BUFFER(framed[4:]), strict_read=strict)
    assert protocol.read_message_begin() == ("Log", TMessageType.REPLY, 9)
    answer = _SCRIBE.scribe.Log_result()
    protocol.read_struct(answer)
    assert answer.success == result


def test_damaged_frames_are_refused_within_bounds() -> None:
    """No input leads to another error, to more memory than its length allows, or to a long loop."""
    seeds = [written([("web", f"m{n}"), ("web", "n"), ("db", "x" * n)], n, strict=n % 2 == 0) for n in range(4)]
    nested = head(1) + struct.pack(">bh", 13, 9) + b"\x0b\x0f" + struct.pack(">i", 1) + text_field(0, b"k")[3:]
    seeds.append(
        nested + b"\x02" + struct.pack(">i", 2) + b"\x01\x00" + text_field(2, b"m") + text_field(1, b"c") + b"\0\0"
    )
    assert parsed(seeds[-1]) == [("c", 0, b"m")]
    report = attack(Decoder("Log", parsed, seeds, (MalformedFrameError, TooManyEntriesError)), inputs=1500)
    assert report.refused > 300
    asked = struct.pack(">i", 10) + b"getCounter\x01" + struct.pack(">i", 7) + text_field(1, b"calls") + b"\0"
    two_unknown = asked[:-1] + struct.pack(">bhi", 8, 7, 1) * 2 + b"\0"
    counter = Decoder(
        "getCounter", counter_name, [asked, asked[:-1] + text_field(2, b"x") + b"\0"], (MalformedFrameError,)
    )
    assert attack(counter, inputs=500).refused > 100
    with pytest.raises(MalformedFrameError, match="more than one unknown field"):
        counter_name(two_unknown)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"", "0 bytes ends within its head"),
        (b"\x80\x02\x00\x01\x00\x00\x00\x03Log\x00\x00\x00\x01", "version of the protocol is 0x80020001"),
        (struct.pack(">i", 101) + bytes(120), "name of the method has 101 bytes, which is not from 1 to 100"),
        (struct.pack(">i", 3) + b"Log\x02" + bytes(4), "the kind of the message is 2"),
        (head(5, kind=_STRING) + bytes(50), "elements of type 11, not structs"),
        (head(2**31 - 1) + bytes(9), "a length of 2147483647 at byte 16 is not from 0 to 9"),
        (head(-1) + bytes(9), "a length of -1"),
        (head(1) + struct.pack(">bhi", _STRING, 1, 1 << 30) + bytes(9), "a length of 1073741824"),
        (head(1) + text_field(1, b"c") + text_field(2, b"m"), "ends within the arguments"),
        (head(0) + b"\x00rest", "4 bytes follow the arguments"),
        (head(1) + b"\x07\x00\x09", "unknown type 7"),
        (
            head(2) + text_field(2, b"m") + text_field(1, b"bill") + b"\0\xff\0\0\0\x03abc\0\0",
            "follows the unknown type 255",
        ),
        (head(1) + b"\x0c\x00\x09" * 30 + bytes(40), "nested deeper than the limit, 16 levels"),
    ],
)
def test_reason_names_place_and_limit(frame: bytes, message: str) -> None:
    """It is what the log of the task has of a client that is wrong."""
    with pytest.raises(MalformedFrameError, match=message):
        parsed(frame)


def test_too_many_entries_are_no_damage() -> None:
    """A client that sends smaller batches is served. What is skipped counts too, because it takes time as well."""
    with pytest.raises(TooManyEntriesError, match="1001 entries are more than the limit, 1000 entries"):
        parsed(head(_MOST + 1) + bytes(_MOST + 2))
    unknown = struct.pack(">bhbi", _LIST, 9, 2, 2000) + bytes(2000)
    with pytest.raises(TooManyEntriesError):
        parsed(head(1) + unknown + b"\0\0")


def test_entries_of_other_writers_are_read() -> None:
    """Fields may be absent, in another order, or newer than this version; a category need not be UTF-8."""
    entries = [
        text_field(2, b"first") + text_field(1, b"a") + b"\0",
        text_field(1, b"a") + b"\0",
        b"\0",
        text_field(1, b"\xff") + text_field(2, b"\xfe") + struct.pack(">bhi", 8, 3, 42) + b"\0",
        text_field(1, b"\xff") + text_field(2, b"\xfd") + b"\0",
        text_field(1, b"\xff") + text_field(2, b"") + b"\0",
    ]
    wanted = [("a", b"first"), ("a", b""), ("", b""), ("\\xff", b"\xfe"), ("\\xff", b"\xfd"), ("\\xff", b"")]
    found = parsed(head(len(entries)) + b"".join(entries) + b"\0")
    assert [(category, message) for category, _, message in found] == wanted


def test_equal_keys_have_equal_partitions() -> None:
    """The key is what is before the delimiter, or the message; the numbers never change, because files have them."""
    frame = written([("web", f"user{n % 7}\x01message {n}") for n in range(200)] + [("db", "x")], 1, strict=True)
    found = parsed(frame, {"web": 4})
    of = {message.split(b"\x01")[0]: partition for category, partition, message in found if category == "web"}
    assert all(of[message.split(b"\x01")[0]] == partition for _, partition, message in found[:-1])
    assert set(of.values()) == {0, 1, 2, 3}
    assert (of[b"user0"], found[-1][1]) == (3, 0)
