"""The frames between a task and the JVM of its client; the README has the table of them.

A frame is a length of 4 bytes, a kind of 1 byte, a channel of 4 bytes, and what the kind has. Numbers are big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum

from heron_connector_dlog.record import Place

__all__ = [
    "HEAD_BYTES",
    "LENGTH_BYTES",
    "Kind",
    "frame",
    "head_of",
    "more",
    "number_of",
    "open_writer",
    "question",
    "read",
    "setup",
    "texts_of",
    "write",
]

LENGTH_BYTES = 4
HEAD_BYTES = 5

_HEAD = struct.Struct(">Ibi")
_KIND = struct.Struct(">bi")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_PLACE = struct.Struct(">qqq")


class Kind(IntEnum):
    """From the task below 16, from the client the others."""

    SETUP = 0
    READ = 1
    MORE = 2
    OPEN_WRITER = 3
    WRITE = 4
    CLOSE = 5
    ASK = 6
    RECORDS = 17
    OPENED = 18
    WRITTEN = 19
    FAILED = 20
    ANSWER = 21


def frame(kind: Kind, channel: int, body: bytes = b"") -> bytes:
    """A whole frame."""
    return _HEAD.pack(HEAD_BYTES + len(body), kind, channel) + body


def head_of(data: bytes) -> tuple[Kind, int]:
    """The kind and the channel of a frame without its length."""
    kind, channel = _KIND.unpack_from(data)
    return Kind(kind), channel


def setup(uri: str, options: Mapping[str, object]) -> bytes:
    """The body of SETUP."""
    pairs = [_text(name) + _text(_option(value)) for name, value in options.items()]
    return _text(uri) + _INT.pack(len(pairs)) + b"".join(pairs)


def read(stream: str, place: Place, room_bytes: int) -> bytes:
    """The body of READ."""
    return _text(stream) + _PLACE.pack(*place[:3]) + _LONG.pack(room_bytes)


def more(room_bytes: int) -> bytes:
    """The body of MORE."""
    return _LONG.pack(room_bytes)


def open_writer(stream: str, owner: str, *, takes_over: bool) -> bytes:
    """The body of OPEN_WRITER."""
    return _text(stream) + _text(owner) + (b"\1" if takes_over else b"\0")


def write(first_id: int, payloads: Sequence[bytes]) -> bytes:
    """The body of WRITE; transaction ids ascend by one."""
    head = struct.pack(f">qi{len(payloads)}i", first_id, len(payloads), *map(len, payloads))
    return head + b"".join(payloads)


def question(name: str, stream: str, number: int) -> bytes:
    """The body of ASK."""
    return _text(name) + _text(stream) + _LONG.pack(number)


def number_of(body: bytes) -> int:
    """The number of OPENED or WRITTEN."""
    return int(_LONG.unpack(body)[0])


def texts_of(body: bytes) -> list[str]:
    """The texts of FAILED and ANSWER."""
    texts, at = [], 0
    while at < len(body):
        (size,) = _INT.unpack_from(body, at)
        at += _INT.size
        texts.append(body[at : at + size].decode(errors="replace"))
        at += size
    return texts


def _text(text: str) -> bytes:
    data = text.encode()
    return _INT.pack(len(data)) + data


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
