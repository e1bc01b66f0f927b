"""Records in the files that wait for their checkpoint: each is its length and its encoding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

import msgspec
from confluent_kafka import KafkaError, Message, Producer

from heron.errors import ConnectorError

__all__ = ["Outgoing", "append", "records_of"]

Hear: TypeAlias = Callable[[KafkaError | None, Message], None]

_LENGTH_BYTES = 4
_encode = msgspec.msgpack.Encoder().encode


class Outgoing(msgspec.Struct, array_like=True, frozen=True):
    """A record to be written; without `timestamp_ms` it has the time at which it is written."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0

    def produce(self, producer: Producer, topic: str, hear: Hear | None = None) -> None:
        """Hand it to a client.

        Raises:
            BufferError: when the queue of the client is full.
        """
        headers: Any = list(self.headers) or None  # the stub has the forms of consumers, too
        producer.produce(topic, self.value, self.key, on_delivery=hear, timestamp=self.timestamp_ms, headers=headers)


def append(file: IO[bytes], record: Outgoing) -> None:
    """Write a record to a file that is open."""
    body = _encode(record)
    file.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)


def records_of(path: Path) -> Iterator[Outgoing]:
    """What a complete file has.

    Raises:
        ConnectorError: when it is cut.
    """
    decode = msgspec.msgpack.Decoder(Outgoing).decode
    with path.open("rb") as file:
        while head := file.read(_LENGTH_BYTES):
            body = file.read(int.from_bytes(head, "big"))
            if len(head) < _LENGTH_BYTES or len(body) < int.from_bytes(head, "big"):
                msg = f"{path}: the file is cut; its disk has lost what was written to it"
                raise ConnectorError(msg)
            yield decode(body)
