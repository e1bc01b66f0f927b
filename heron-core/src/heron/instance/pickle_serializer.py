"""The serializer ``pickle``: the default, for topologies whose components are all written in Python."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from heron.errors import ConfigError
from heron.spi.serializer import SPI_VERSION, Encoding, Serializer

__all__ = ["PickleSerializer"]

_PROTOCOL = 5


class PickleSerializer(Serializer):
    """Pickle, protocol 5. Payloads are trusted: links carry only what the topology itself sends."""

    spi_version: ClassVar[int] = SPI_VERSION
    capabilities: ClassVar[frozenset[str]] = frozenset({"objects"})
    encoding: ClassVar[int] = int(Encoding.PICKLE)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """There are no options."""
        for key in options:
            msg = f"serializer.{key}: unknown key; the serializer 'pickle' has no options"
            raise ConfigError(msg)
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """Without the memo, which costs as much as all else together and makes one object of what was emitted twice.

        Only what contains itself needs the memo; the pickler says so.
        """
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, _PROTOCOL)
        pickler.fast = True
        try:
            pickler.dump(columns)
        except ValueError:  # "can't pickle cyclic objects"
            return pickle.dumps(columns, _PROTOCOL)
        return buffer.getvalue()

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """What unpickles; the caller checks its shape."""
        columns: list[Sequence[object]] = pickle.loads(payload)  # noqa: S301  # only from the topology itself
        return columns
