"""An element of `KafkaSource`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Record"]


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a topic.

    Attributes:
        timestamp_s: seconds since 1970; of the producer, or of the broker if the topic is set so. 0.0 if it has none.
        value: None is a tombstone: the key was deleted.
    """

    topic: str
    partition: int
    offset: int
    timestamp_s: float
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
