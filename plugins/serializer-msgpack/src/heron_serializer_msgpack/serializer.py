"""The serializer driver ``msgpack``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, cast

from heron.spi.options import decode_options
from heron.spi.serializer import Encoding, Serializer
from heron_serializer_msgpack.extension import pack, unpack, unpack_each

__all__ = ["MsgpackSerializer"]


@dataclass(frozen=True, slots=True)
class _Options:
    """No options: both ends of a stream would need the same values."""


class MsgpackSerializer(Serializer):
    """Encodes plain data, so that other languages can read it. It refuses all other values."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"neutral"})
    encoding: ClassVar[int] = int(Encoding.MSGPACK)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decode_options(options, _Options, "serializer")
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """Return an array of columns; each column is an array of values."""
        # A column may be a tuple, which would become an extension type.
        return pack([column if type(column) is list else list(column) for column in columns])

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        return cast("list[Sequence[object]]", unpack(payload))

    def decode_each(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """Return the columns; only texts and extension types can be bad alone, also inside arrays and maps."""
        return unpack_each(bytes(payload))
