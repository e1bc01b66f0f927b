"""Frames of Thrift's binary protocol, as a Scribe collector reads and writes them. Pure.

Only the struct ``LogEntry`` is parsed. Each length and count is checked against the frame before anything is allocated
for it, so a frame of n bytes never leads to more than n entries. Messages stay bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from heron_connector_scribe.entries import Entries, Entry

__all__ = [
    "CALL",
    "Call",
    "MalformedFrameError",
    "Parse",
    "Place",
    "TooManyEntriesError",
    "exception_reply",
    "fields_reply",
    "log_entries",
    "parse_call",
    "result_reply",
    "string_argument",
    "string_field",
]

CALL, ONEWAY = 1, 4
"""Kinds of messages: a call, and a call without an answer."""

_REPLY, _EXCEPTION = 2, 3
_VERSION_1, _VERSION_MASK = 0x80010000, 0xFFFF0000
_LONGEST_NAME = 100
_DEEPEST = 16  # structs and containers in one another, in fields that this version does not know

_STOP, _BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64, _STRING, _STRUCT, _MAP, _SET, _LIST = (
    0,
    2,
    3,
    4,
    6,
    8,
    10,
    11,
    12,
    13,
    14,
    15,
)
_FIXED: Mapping[int, int] = {_BOOL: 1, _BYTE: 1, _DOUBLE: 8, _I16: 2, _I32: 4, _I64: 8}

_i32 = struct.Struct(">i").unpack_from
_field = struct.Struct(">bh").unpack_from
_pack_i32 = struct.Struct(">i").pack
_pack_field = struct.Struct(">bh").pack
_pack_string_field = struct.Struct(">bhi").pack

Place: TypeAlias = Callable[[str], Callable[[bytes], int] | None]
"""For a category: the function that gives the partition of a message. None: all messages are in partition 0."""


Parse: TypeAlias = Callable[[bytes, int, int, Place], Sequence[Entry]]
"""`log_entries`, or a function that gives the same entries in another form."""


class MalformedFrameError(ValueError):
    """A frame is not a message of the binary protocol."""


class TooManyEntriesError(ValueError):
    """A frame has more entries than the limit."""


class Call(NamedTuple):
    """The head of a message. `offset` is where the arguments begin; `strict` is whether it has a version."""

    name: str
    kind: int
    seqid: int
    strict: bool
    offset: int


def parse_call(frame: bytes) -> Call:
    """The head of a call, with a version or in the older form without one.

    Raises:
        MalformedFrameError: when it is none.
    """
    try:
        return _parse_call(frame)
    except (struct.error, IndexError) as error:
        msg = f"the frame of {len(frame)} bytes ends within its head"
        raise MalformedFrameError(msg) from error


def _parse_call(frame: bytes) -> Call:
    (first,) = _i32(frame, 0)
    strict = first < 0
    if strict and (first & _VERSION_MASK) != _VERSION_1:
        msg = f"the version of the protocol is {first & 0xFFFFFFFF:#010x}, not 0x8001…"
        raise MalformedFrameError(msg)
    kind = first & 0xFF
    at = 4 if strict else 0
    (size,) = _i32(frame, at)
    name_at = at + 4
    if not 0 < size <= _LONGEST_NAME:
        msg = f"the name of the method has {size} bytes, which is not from 1 to {_LONGEST_NAME}"
        raise MalformedFrameError(msg)
    at = name_at + size
    if not strict:
        kind = frame[at]
        at += 1
    (seqid,) = _i32(frame, at)
    if kind not in {CALL, ONEWAY}:
        msg = f"the kind of the message is {kind}, which is no call"
        raise MalformedFrameError(msg)
    return Call(frame[name_at : name_at + size].decode("ascii", "backslashreplace"), kind, seqid, strict, at + 4)


def log_entries(frame: bytes, offset: int, most: int, place: Place) -> Entries:
    """The entries of a call of ``Log`` whose arguments begin at `offset`.

    Categories become text; bytes that are not UTF-8 become ``\\xNN``. A field that an entry has not is empty.

    Raises:
        TooManyEntriesError: when there are more than `most`.
        MalformedFrameError: when the arguments are not those of ``Log``.
    """
    try:
        return _Arguments(frame, offset, most, place).entries()
    except (struct.error, IndexError) as error:
        msg = f"the frame of {len(frame)} bytes ends within the arguments"
        raise MalformedFrameError(msg) from error


def string_argument(frame: bytes, offset: int) -> str:
    """The text that is field 1 of arguments that begin at `offset`; empty if there is none.

    Raises:
        MalformedFrameError: when the arguments are damaged.
    """
    try:
        return _Arguments(frame, offset, 1, lambda _: None).entry()[0].decode("utf-8", "backslashreplace")
    except (struct.error, IndexError) as error:
        msg = f"the frame of {len(frame)} bytes ends within the argument"
        raise MalformedFrameError(msg) from error
    except TooManyEntriesError as error:
        msg = f"the arguments have more than one unknown field: {error}"
        raise MalformedFrameError(msg) from error


class _Arguments:
    """A pass over the arguments. `at` is the place of the next byte, `elements` counts entries and what is skipped."""

    def __init__(self, frame: bytes, offset: int, most: int, place: Place) -> None:
        self.frame, self.at, self.most, self.place = frame, offset, most, place
        self.elements = 0

    def entries(self) -> Entries:
        """The list that is field 1; fields of other numbers or types are skipped, as Thrift does."""
        found = Entries.of()
        while (kind := self.frame[self.at]) != _STOP:
            _, number = _field(self.frame, self.at)
            self.at += 3
            if kind == _LIST and number == 1:
                self.listed(found)
            else:
                self.count(1)
                self.skip(kind, 0)
        self.at += 1
        if self.at != len(self.frame):
            msg = f"{len(self.frame) - self.at} bytes follow the arguments"
            raise MalformedFrameError(msg)
        return found

    def listed(self, found: Entries) -> None:
        """Adds the entries. Most begin with the same bytes as the entry before: those of the same category."""
        frame = self.frame
        kind = frame[self.at]
        count = self.counted(self.at + 1)
        if count and kind != _STRUCT:
            msg = f"the list has elements of type {kind}, not structs"
            raise MalformedFrameError(msg)
        self.count(count)
        end = len(frame)
        lead, category = b"", ""
        messages = found.messages
        begun = len(messages)  # where the entries begin that have this category
        for _ in range(count):
            at = self.at
            if lead and frame.startswith(lead, at):
                begin = at + len(lead)
                (size,) = _i32(frame, begin)
                stop = begin + 4 + size
                if size >= 0 and stop < end and frame[stop] == _STOP:
                    messages.append(frame[begin + 4 : stop])
                    self.at = stop + 1
                    continue
            raw, message, length_at = self.entry()
            lead = frame[at:length_at] if length_at else b""
            if (found_category := raw.decode("utf-8", "backslashreplace")) != category:
                self.place_all(found, category, begun)
                category, begun = found_category, len(messages)
            messages.append(message)
        self.place_all(found, category, begun)

    def place_all(self, found: Entries, category: str, begun: int) -> None:
        """Gives the messages from `begun` on their category and their partitions."""
        count = len(found.messages) - begun
        partition = self.place(category) if count else None
        found.categories += [category] * count
        found.partitions += map(partition, found.messages[begun:]) if partition else [0] * count

    def entry(self) -> tuple[bytes, bytes, int]:
        """Category, message, and where the length of the message is; 0 if there is none, or a category behind it."""
        category = message = b""
        length_at = 0
        while (kind := self.frame[self.at]) != _STOP:
            _, number = _field(self.frame, self.at)
            self.at += 3
            if kind == _STRING and number == 1:
                category, length_at = self.string(), 0
            elif kind == _STRING and number == 2:
                length_at = self.at
                message = self.string()
            else:
                self.count(1)
                self.skip(kind, 0)
        self.at += 1
        return category, message, length_at

    def string(self) -> bytes:
        """The next string."""
        size = self.counted(self.at)
        self.at += size
        return self.frame[self.at - size : self.at]

    def count(self, elements: int) -> None:
        """Bounds the time and memory of a frame."""
        self.elements += elements
        if self.elements > self.most:
            msg = f"{self.elements} entries are more than the limit, {self.most} entries"
            raise TooManyEntriesError(msg)

    def counted(self, at: int) -> int:
        """The length or count at this place; each element has at least one byte. Goes on behind it."""
        count: int = _i32(self.frame, at)[0]
        self.at = at + 4
        if not 0 <= count <= len(self.frame) - self.at:
            msg = (
                f"a length of {count} at byte {at} is not from 0 to {len(self.frame) - self.at}, the bytes that follow"
            )
            raise MalformedFrameError(msg)
        return count

    def skip(self, kind: int, depth: int) -> None:
        """Go on behind a value."""
        if depth > _DEEPEST:
            msg = f"values are nested deeper than the limit, {_DEEPEST} levels"
            raise MalformedFrameError(msg)
        if (size := _FIXED.get(kind)) is not None:
            self.at += size
        elif kind == _STRING:
            self.string()
        elif kind == _STRUCT:
            while (inner := self.frame[self.at]) != _STOP:
                self.count(1)
                self.at += 3
                self.skip(inner, depth + 1)
            self.at += 1
        elif kind in {_LIST, _SET, _MAP}:
            width = 2 if kind == _MAP else 1
            kinds = self.frame[self.at : self.at + width]
            count = self.counted(self.at + width)
            self.count(count)
            for _ in range(count):
                for each in kinds:
                    self.skip(each, depth + 1)
        else:
            msg = f"byte {self.at} follows the unknown type {kind}"
            raise MalformedFrameError(msg)
        if self.at > len(self.frame):
            msg = f"a value ends at byte {self.at}, behind the frame of {len(self.frame)} bytes"
            raise MalformedFrameError(msg)


def result_reply(call: Call, result: int) -> bytes:
    """The answer to a call that returns an i32 or an enum, with the length of the frame in front."""
    return fields_reply(call, _pack_field(_I32, 0) + _pack_i32(result))


def fields_reply(call: Call, fields: bytes) -> bytes:
    """The answer with these fields: as strict as its call, because clients refuse the form that they do not use."""
    return _framed(call, _REPLY, fields)


def string_field(number: int, text: str) -> bytes:
    """A field of type string."""
    raw = text.encode()
    return _pack_string_field(_STRING, number, len(raw)) + raw


def exception_reply(call: Call, kind: int, text: str) -> bytes:
    """Thrift's own exception: 1 is an unknown method."""
    return _framed(call, _EXCEPTION, string_field(1, text) + _pack_field(_I32, 2) + _pack_i32(kind))


def _framed(call: Call, kind: int, fields: bytes) -> bytes:
    name = call.name.encode()
    named = _pack_i32(len(name)) + name
    head = struct.pack(">I", _VERSION_1 | kind) + named if call.strict else named + bytes((kind,))
    body = head + _pack_i32(call.seqid) + fields + bytes((_STOP,))
    return _pack_i32(len(body)) + body
