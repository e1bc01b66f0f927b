"""What a node is now, in the name of an empty file: ``node.VERSION.TOKEN.SIZE.CRC32.HOLDER``.

Renaming that file is the compare-and-set: the name that is renamed has to be there, and each name is used once. TOKEN
names the file with the value, ``value.TOKEN``; ``-`` says that there is none, so that the node is not there and the
pointer remembers its last version. HOLDER is the token of the hold that owns the node, ``-`` for an ordinary node.
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
    """A version of a node; without a `token` the node is not there."""

    version: int
    token: str = ""
    size_bytes: int = 0
    crc32: int = 0
    holder: str = ""

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"node.{self.version}.{self.token or '-'}.{self.size_bytes}.{self.crc32:08x}.{self.holder or '-'}"

    def followed_by(self, value: bytes, token: str, holder: str) -> Pointer:
        """The next version."""
        return Pointer(self.version + 1, token, len(value), zlib.crc32(value), holder)

    def gone(self) -> Pointer:
        """The node removed; its version stays known."""
        return Pointer(self.version)

    def fits(self, value: bytes) -> bool:
        """Whether that is the value it was written with."""
        return len(value) == self.size_bytes and zlib.crc32(value) == self.crc32


NO_NODE = Pointer(0)
"""A node that has never been."""


def parse_pointer(name: str) -> Pointer | None:
    """The pointer of a file's name; None for other files."""
    match = _POINTER.fullmatch(name)
    if match is None:
        return None
    token, holder = match["token"].removeprefix("-"), match["holder"].removeprefix("-")
    return Pointer(int(match["version"]), token, int(match["size"]), int(match["crc32"], 16), holder)


def value_name(token: str) -> str:
    """The name of the file with the value of that token."""
    return f"value.{token}"


def parse_value_name(name: str) -> str | None:
    """The token in the name of a file with a value; None for other files."""
    match = _VALUE.fullmatch(name)
    return None if match is None else match["token"]
