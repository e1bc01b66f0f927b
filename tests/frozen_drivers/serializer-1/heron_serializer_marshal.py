"""The serializer ``marshal``: Python's own format for plain values, for topologies of one Python version."""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, cast

from heron.errors import SerializationError
from heron.spi.driver import NoOptions
from heron.spi.options import decode_options
from heron.spi.serializer import Serializer

_FORMAT = 2  # without references, so an object that occurs twice arrives as two


class MarshalSerializer(Serializer):
    """Carries what `marshal` writes: scalars, and tuples, lists, sets and dicts of them."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset()
    encoding: ClassVar[int] = 201

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decode_options(options, NoOptions, "serializer")
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        try:
            return marshal.dumps([list(column) for column in columns], _FORMAT)
        except ValueError as error:
            types = ", ".join(sorted({type(value).__name__ for column in columns for value in column}))
            raise SerializationError(f"values of {types}: {error}") from error

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        try:
            found = marshal.loads(payload)
        except (EOFError, ValueError, TypeError) as error:
            raise SerializationError(f"the payload is not a batch: {error}") from error
        if not isinstance(found, list):
            raise SerializationError(f"the payload is a {type(found).__name__}, not a batch")
        return cast("list[Sequence[object]]", found)
