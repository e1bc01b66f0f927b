"""An element of `KafkaSource`, and one for `KafkaSink`.

They are structs of msgspec: on CPython 3.11 a `Record` takes 0.12 µs to make, and took 2.2 µs as a frozen dataclass.
"""

from __future__ import annotations

import msgspec

__all__ = ["NewRecord", "Record"]


class Record(msgspec.Struct, frozen=True, gc=False):
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


class NewRecord(msgspec.Struct, frozen=True, gc=False):
    """A record that a `KafkaSink` writes, with more than a value.

    Attributes:
        value: text or bytes; None is a tombstone.
        key: of the same types; the argument `key` of the sink counts instead if there is one.
        headers: pairs of name and value; a name may come more than once.
        timestamp_s: seconds since 1970, such as the event time. None for the time at which the record is written; a
            topic with ``message.timestamp.type=LogAppendTime`` always has that.
    """

    value: str | bytes | None
    key: str | bytes | None = None
    headers: tuple[tuple[str, str | bytes | None], ...] = ()
    timestamp_s: float | None = None
