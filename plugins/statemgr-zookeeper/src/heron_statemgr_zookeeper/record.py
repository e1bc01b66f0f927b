"""What a znode holds: one header line for people and checks, then the value.

``heron-node 1 version=<int> holder=<token or -> write=<token> crc32=<8 hex digits>`` and a newline. The version is in
the value, so that both are read at once; the checksum tells what was changed by hand; `write` is the call that wrote
it, which is how a writer whose answer was lost recognises its own work.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from heron.errors import StateError

__all__ = ["HEADER_LIMIT_BYTES", "Record", "decode", "encode"]

HEADER_LIMIT_BYTES = 128
"""More than the longest header."""

_HEADER = re.compile(
    rb"heron-node (?P<format>\d{1,9}) version=(?P<version>\d{1,19}) holder=(?P<holder>-|[0-9a-f]{16})"
    rb" write=(?P<write>[0-9a-f]{16}) crc32=(?P<crc32>[0-9a-f]{8})\n"
)
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Record:
    """A node as it stands in its znode; `holder` is the token of the hold that owns it, empty for an ordinary node."""

    version: int
    value: bytes
    write: str
    holder: str = ""


def encode(record: Record) -> bytes:
    header = (
        f"heron-node {_FORMAT} version={record.version} holder={record.holder or '-'} write={record.write}"
        f" crc32={zlib.crc32(record.value):08x}\n"
    )
    return header.encode("ascii") + record.value


def decode(data: bytes, place: str) -> Record:
    """The record of a znode; `place` names it in errors.

    Raises:
        StateError: when it was not written by this driver, or changed by hand since.
    """
    match = _HEADER.match(data)
    if match is None or zlib.crc32(data[match.end() :]) != int(match["crc32"], 16):
        message = (
            f"{place}: the znode is not as Heron wrote it, it was changed by hand or by another program; "
            f"when no topology of that name runs remove it (zkCli: delete), then submit again"
        )
        raise StateError(message)
    if int(match["format"]) != _FORMAT:
        message = (
            f"{place}: node format {int(match['format'])} was written by another version of heron-statemgr-zookeeper, "
            f"this one reads format {_FORMAT}; use that version"
        )
        raise StateError(message)
    holder = match["holder"].decode("ascii")
    value, write = data[match.end() :], match["write"].decode("ascii")
    return Record(int(match["version"]), value, write, "" if holder == "-" else holder)
