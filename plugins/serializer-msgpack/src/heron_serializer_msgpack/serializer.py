"""The driver: columns in, MessagePack out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, cast

from heron.spi.options import decode_options
from heron.spi.serializer import Encoding, Serializer
from heron_serializer_msgpack.extension import pack, unpack

__all__ = ["MsgpackSerializer"]


@dataclass(frozen=True, slots=True)
class _Options:
    """There are none: both ends of a stream would have to agree on them."""


class MsgpackSerializer(Serializer):
    """Plain data, written so that other languages can read it; anything else is refused."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"neutral"})
    encoding: ClassVar[int] = int(Encoding.MSGPACK)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Takes no options."""
        decode_options(options, _Options, "serializer")
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """`Serializer.encode`: an array of columns, each an array of values."""
        # A column may be a tuple, which would be marked as one.
        return pack([column if type(column) is list else list(column) for column in columns])

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """`Serializer.decode`."""
        return cast("list[Sequence[object]]", unpack(payload))
