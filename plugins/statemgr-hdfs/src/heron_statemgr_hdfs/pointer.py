"""The state of a node in the name of an empty file, the pointer: ``node.VERSION.TOKEN.SIZE.CRC32.HOLDER``.

A rename of that file is the compare-and-set: the old name must exist, and each name is used once. TOKEN names the file
with the value, ``value.TOKEN``. If TOKEN is ``-``, the node does not exist, and the pointer keeps its last version.
HOLDER is the token of the hold that owns the node, or ``-`` for an ordinary node.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

__all__ = ["NO_NODE", "Pointer", "parse_pointer", "parse_value_name", "value_name"]

_POINTER = re.compile(
    r"node\.(?P<version>[1-9]\d{0,17})\.(?P<token>-|[0-9a-f]{16})\.(?P<size>\d{1,18})\.(?P<crc32>[0-9a-f]{8})"
    r"\.(?P<holder>-|[0-9a-f]{16})"
)
_VALUE = re.compile(r"value\.(?P<token>[0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Pointer:
    """A version of a node. Without a `token` the node does not exist."""

    version: int
    token: str = ""
    size_bytes: int = 0
    crc32: int = 0
    holder: str = ""

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"node.{self.version}.{self.token or '-'}.{self.size_bytes}.{self.crc32:08x}.{self.holder or '-'}"

    def followed_by(self, value: bytes, token: str, holder: str) -> Pointer:
        """Return the pointer of the next version."""
        return Pointer(self.version + 1, token, len(value), zlib.crc32(value), holder)

    def gone(self) -> Pointer:
        """Return the pointer of the removed node, which keeps the version."""
        return Pointer(self.version)

    def fits(self, value: bytes) -> bool:
        """Whether `value` has the size and checksum of this pointer."""
        return len(value) == self.size_bytes and zlib.crc32(value) == self.crc32


NO_NODE = Pointer(0)
"""The pointer of a node that never existed."""


def parse_pointer(name: str) -> Pointer | None:
    """Return the pointer with this file name; None for other files."""
    match = _POINTER.fullmatch(name)
    if match is None:
        return None
    token, holder = match["token"].removeprefix("-"), match["holder"].removeprefix("-")
    return Pointer(int(match["version"]), token, int(match["size"]), int(match["crc32"], 16), holder)


def value_name(token: str) -> str:
    """Return the name of the file with the value of this token."""
    return f"value.{token}"


def parse_value_name(name: str) -> str | None:
    """Return the token in the name of a file with a value; None for other files."""
    match = _VALUE.fullmatch(name)
    return None if match is None else match["token"]
