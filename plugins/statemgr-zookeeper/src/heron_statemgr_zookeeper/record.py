"""The format of a znode: one header line of text, then the value.

``heron-node 1 version=<int> holder=<token or -> write=<token> crc32=<8 hex digits>`` and a newline. One read returns
the version and the value together. The checksum detects a change by hand. `write` is the token of the call that wrote
the znode. With it, a writer that lost the answer recognises its own write.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from heron.errors import StateError

__all__ = ["HEADER_LIMIT_BYTES", "Record", "decode", "encode"]

HEADER_LIMIT_BYTES = 128
"""More than the longest header line."""

_HEADER = re.compile(
    rb"heron-node (?P<format>\d{1,9}) version=(?P<version>\d{1,19}) holder=(?P<holder>-|[0-9a-f]{16})"
    rb" write=(?P<write>[0-9a-f]{16}) crc32=(?P<crc32>[0-9a-f]{8})\n"
)
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a znode. `holder` is the token of the hold that owns the node, empty for an ordinary node."""

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
    """Return the record of a znode; `place` names the znode in errors.

    Raises:
        StateError: when this driver did not write the znode, or somebody changed it by hand.
    """
    match = _HEADER.match(data)
    if match is None or zlib.crc32(data[match.end() :]) != int(match["crc32"], 16):
        message = (
            f"{place}: the znode was changed by hand or by another program; "
            f"if no topology of that name runs, remove it (zkCli: delete) and submit again"
        )
        raise StateError(message)
    if int(match["format"]) != _FORMAT:
        message = (
            f"{place}: another version of heron-statemgr-zookeeper wrote node format {int(match['format'])}; "
            f"this version reads format {_FORMAT}; use the other version"
        )
        raise StateError(message)
    holder = match["holder"].decode("ascii")
    value, write = data[match.end() :], match["write"].decode("ascii")
    return Record(int(match["version"]), value, write, "" if holder == "-" else holder)
