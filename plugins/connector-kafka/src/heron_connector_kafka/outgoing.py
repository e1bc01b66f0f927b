"""A record that is to be written; in the files that wait for their checkpoint it is a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from confluent_kafka import KafkaError, Message, Producer

__all__ = ["ANY_PARTITION", "Headers", "Outgoing", "decoded", "encoded"]

_ROOM_S = 0.2
ANY_PARTITION = -1
"""The client chooses."""

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Hear: TypeAlias = Callable[[KafkaError | None, Message], None]


class Outgoing(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record to be written; without `timestamp_ms` it has the time at which it is written."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int = 0

    def produce(self, producer: Producer, topic: str, hear: Hear | None = None) -> None:
        """Hand it to a client; wait while the client's queue is full."""
        headers: Any = list(self.headers) if self.headers else None  # the stub has the forms of consumers, too
        while True:
            try:
                if headers or self.timestamp_ms:
                    producer.produce(
                        topic, self.value, self.key, on_delivery=hear, timestamp=self.timestamp_ms, headers=headers
                    )
                else:  # each keyword would take 0.2 µs
                    producer.produce(topic, self.value, self.key, ANY_PARTITION, hear)
            except BufferError:
                producer.poll(_ROOM_S)
            else:
                return


encoded: Callable[[Outgoing], bytes] = msgspec.msgpack.Encoder().encode
decoded: Callable[[bytes], Outgoing] = msgspec.msgpack.Decoder(Outgoing).decode
