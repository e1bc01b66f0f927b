"""The format of a node's file: one header line of text, then the value.

``heron-node 1 version=<int> holder=<token or -> size=<bytes> crc32=<8 hex digits>`` and a newline. Size and checksum
describe the value. With them a reader detects a file that was cut, garbled or edited.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from heron.errors import StateError

__all__ = ["HEADER_LIMIT_BYTES", "Header", "Record", "decode", "decode_header", "encode"]

HEADER_LIMIT_BYTES = 256
"""More than the longest header line, so the first 256 bytes of a file contain the whole header."""

_FORMAT = 1
_HEADER = re.compile(
    rb"heron-node (?P<format>\d{1,9}) version=(?P<version>\d{1,19}) holder=(?P<holder>-|[0-9a-f]{1,64})"
    rb" size=(?P<size>\d{1,19}) crc32=(?P<crc32>[0-9a-f]{8})\n"
)
_REMEDY = "`heron kill` with the topology's name ends the topology and removes the file"


@dataclass(frozen=True, slots=True)
class Header:
    """The header line; `holder` is the token of the hold that owns the node, empty for an ordinary node."""

    version: int
    holder: str
    size_bytes: int
    crc32: int
    length_bytes: int


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a node's file."""

    version: int
    value: bytes
    holder: str = ""


def encode(record: Record) -> bytes:
    header = (
        f"heron-node {_FORMAT} version={record.version} holder={record.holder or '-'}"
        f" size={len(record.value)} crc32={zlib.crc32(record.value):08x}\n"
    )
    return header.encode("ascii") + record.value


def decode_header(data: bytes, place: str) -> Header:
    """Return the header of a file that begins with `data`; `place` names the file in errors.

    Raises:
        StateError: when the header is missing or has another format.
    """
    match = _HEADER.match(data)
    if match is None:
        message = f"{place}: the file has no node header, so it is cut or garbled; {_REMEDY}"
        raise StateError(message)
    if int(match["format"]) != _FORMAT:
        message = (
            f"{place}: another version of heron-statemgr-localfs wrote node format {int(match['format'])}; "
            f"this version reads format {_FORMAT}; use that version, or {_REMEDY}"
        )
        raise StateError(message)
    holder = match["holder"].decode("ascii")
    return Header(
        int(match["version"]), "" if holder == "-" else holder, int(match["size"]), int(match["crc32"], 16), match.end()
    )


def decode(data: bytes, place: str) -> Record:
    """Return the record of a file with the content `data`.

    Raises:
        StateError: as `decode_header` does, or when the value differs from the size or checksum in the header.
    """
    header = decode_header(data[:HEADER_LIMIT_BYTES], place)
    value = data[header.length_bytes :]
    if len(value) != header.size_bytes:
        message = f"{place}: the value has {len(value)} of {header.size_bytes} bytes, so the file is cut; {_REMEDY}"
        raise StateError(message)
    if zlib.crc32(value) != header.crc32:
        message = f"{place}: the value differs from its checksum, so the file is garbled; {_REMEDY}"
        raise StateError(message)
    return Record(header.version, value, header.holder)
