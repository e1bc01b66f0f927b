"""Contract of the serializer family: how the values of a batch become the bytes of its payload, and come back.

A topology, or a component in it, chooses a serializer by name with ``topology.serializer``; ``pickle`` is in the core
and the default. The number of its encoding stands in each segment, so a bolt may receive streams of several.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from heron.spi.driver import Driver

__all__ = ["CAPABILITIES", "OLDEST_SPI_VERSION", "PRIVATE_ENCODINGS", "SPI_VERSION", "Encoding", "Serializer"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"neutral", "objects"})
"""``objects``: instances of the author's own classes travel, not only plain data. ``neutral``: what it writes can be
read without Python."""

PRIVATE_ENCODINGS = range(128, 256)
"""Numbers for encodings that WIRE.md does not name; within one topology each stands for one serializer."""


class Encoding(enum.IntEnum):
    """The encodings that WIRE.md names: how the rows of a batch are written."""

    NONE = 0
    PICKLE = 1
    MSGPACK = 2
    ARROW = 3


class Serializer(Driver):
    """Encodes and decodes the batches of one task.

    Pure: no I/O, no state that one batch leaves for the next. Opened once in each instance that needs it, and by
    commands. Both methods are called from the task thread, and `encode` now and then from the gateway's thread, but
    never two calls at a time. They are on the path of every tuple and hold up the task: no locks, no logging. What is
    asked of them is a bijection: a value arrives equal and of the same type, or it is refused. A tuple that arrives as
    a list, or a Decimal as text, is a wrong result that nobody sees. Only a buffer (bytearray, memoryview) may arrive
    as bytes. Source: Heron's ``IPluggableSerializer``, for a batch in place of a value.
    """

    encoding: ClassVar[int]
    """The number of its encoding on the wire: 1 to 255, a number of WIRE.md or one of `PRIVATE_ENCODINGS`."""

    @abstractmethod
    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """The payload of a batch: one list or tuple for each field, all of the same length (≥ 1).

        The columns belong to the caller and are not changed or kept. A value that stands in them twice may arrive as
        two. After an exception, of any kind, nothing has happened: the core halves the batch and calls again until it
        has the row, and the field of it, that cannot travel; that tuple fails, the others go on. So the message need
        not say where the value stood, only what is wrong with it.

        Raises:
            SerializationError: when a value cannot travel, or would not arrive as what it is.
        """

    @abstractmethod
    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """The columns of a payload, as lists or tuples. What is returned does not refer to `payload`.

        The core checks their number and lengths. After an exception, of any kind, the batch is lost: its tuples are
        counted as failed, and the session goes on.

        Raises:
            SerializationError: when these bytes are no batch.
        """
