"""Contract of the serializer family, which turns the values of a batch into bytes and back.

The key ``topology.serializer`` of a topology or component names the serializer; ``pickle`` is the default. It and
``plain`` are part of the core. Each segment carries the number of its encoding: a bolt can receive streams in several
encodings.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from heron.errors import SerializationError
from heron.spi.driver import Driver

__all__ = [
    "CAPABILITIES",
    "OLDEST_SPI_VERSION",
    "PRIVATE_ENCODINGS",
    "SPI_VERSION",
    "Encoding",
    "Serializer",
    "UndecodableValue",
]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"columns", "neutral", "objects"})
"""``objects``: it takes instances of the author's classes, not only plain data. ``neutral``: other languages can read
the encoding. ``columns``: it is a `heron.spi.column_serializer.ColumnSerializer`."""

PRIVATE_ENCODINGS = range(128, 256)
"""Numbers for encodings that WIRE.md does not name; in one topology each number belongs to one serializer."""


class Encoding(enum.IntEnum):
    """The encodings that WIRE.md names: how the rows of a batch are written."""

    NONE = 0
    PICKLE = 1
    MSGPACK = 2
    ARROW = 3
    PLAIN = 4


@dataclass(frozen=True, slots=True, eq=False)
class UndecodableValue:
    """Takes the place of a value that does not decode: its type by the payload, the error, and the author's remedy."""

    _shown: ClassVar[tuple[str, ...]] = ("kind",)
    """What error messages show of it (`heron.author_text`)."""

    kind: str
    error: Exception
    remedy: str

    def __repr__(self) -> str:
        return f"<undecodable {self.kind}>"


class Serializer(Driver):
    """Encodes and decodes the batches of one task.

    Pure: no I/O, and no state between batches. Each instance that needs it opens it once; commands open it too. The
    task thread calls both methods, and the gateway thread sometimes calls `encode`; never two calls at a time. Both are
    on the path of every tuple, so they use no locks and no logging. The encoding is a bijection: a value arrives equal
    and with the same type, or it is refused. A tuple that arrives as a list, or a Decimal as text, is a wrong result
    without an error. Only a buffer (bytearray, memoryview) may arrive as bytes. Source: Heron's
    ``IPluggableSerializer``, for a batch instead of a value.

    Errors reach logs and pages. So neither their texts nor those of their causes have a value; a type is enough.
    """

    encoding: ClassVar[int]
    """The number of the encoding on the wire, 1 to 255: a number of WIRE.md or one of `PRIVATE_ENCODINGS`."""

    @abstractmethod
    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """Return the payload of a batch: one list or tuple for each field, all of the same length (≥ 1).

        The caller owns the columns; they are neither changed nor kept. An object that occurs twice may arrive as two
        objects. After any exception the core halves the batch and calls again, until it has found the row and field
        that cannot be encoded. That tuple fails; the others are sent. So the message needs only the fault of the value.

        Raises:
            SerializationError: when a value cannot be encoded, or would arrive changed.
        """

    @abstractmethod
    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """Return the columns of a payload, as lists or tuples that do not refer to `payload`.

        The core checks their number and lengths. After any exception it calls `decode_each` with the same payload.

        Raises:
            SerializationError: when the bytes are not a batch.
        """

    def decode_each(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """Return the columns of a payload that `decode` refused, with an `UndecodableValue` for each bad value.

        Called by the task thread, only after `decode` raised, so it may be slow. The tuples of the bad values fail, and
        their neighbours are processed. After any exception the batch is lost: its tuples fail, are counted and
        reported, and the session continues. An implementation is optional.

        Raises:
            SerializationError: when the values cannot be told apart.
        """
        msg = f"{type(self).__name__} decodes only whole batches"
        raise SerializationError(msg)
