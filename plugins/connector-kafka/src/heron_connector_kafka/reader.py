"""Reads one partition of a topic.

Offsets have gaps: markers of transactions, aborted records, and records that compaction removed. So the position is the
offset behind the last record or behind the gap that follows it, and the place of an element is its own offset.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from heron.errors import ConnectorError
from heron_connector_kafka.cluster import TIMEOUT_S, Cluster, Option, Refusal, described, is_passing
from heron_connector_kafka.record import Record

__all__ = ["READER_OPTIONS", "PartitionReader"]

_log = logging.getLogger(__name__)

READER_OPTIONS: Mapping[str, Option] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",  # an offset that is gone must never become another one
}
_DEFAULTS: Mapping[str, Option] = {
    "group.id": "heron",  # the client wants one; no offsets are committed, so groups have no effect
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 100,  # after which the end of a topic with transactions is known
    "queued.max.messages.kbytes": 16_384,  # for each partition; the default of 64 MiB is for a whole client
}
_WAIT_S = 3.0
"""The longest wait for the first answer of a broker. Until then it is not known whether there are records now."""


class PartitionReader:
    """A `Reader`. A client that fails is replaced by a new one at the same position with the next `read`.

    Args:
        end: the offset at which reading ends; None for never.
    """

    def __init__(self, cluster: Cluster, operator: str, place: TopicPartition, end: int | None) -> None:
        self._cluster = cluster
        self._operator = operator
        self._topic, self._number, self._end = place.topic, place.partition, end
        self.position: int = place.offset
        self._refusal = Refusal()
        self._consumer: Consumer | None = None
        self._records: list[Record] = []
        self._at_end = False  # the broker said so after the last record
        self._waited = False  # in vain, since the broker's last answer
        self._answered = False
        self._trouble: KafkaError | None = None

    def read(self, limit: int) -> Sequence[Record] | None:
        """`Reader.read`. Waits up to 3 s for a broker's answer, once; while a broker is away there is nothing now.

        Raises:
            ConnectorError: when the offset is out of range, the topic is gone, or the cluster refuses the client.
        """
        if self._end is not None and self.position >= self._end:
            return None
        consumer = self._opened()
        try:
            self._take(self._messages(consumer, limit))
        except KafkaException as error:
            self._drop()
            raise self._failed(described(error)) from error
        if not self._records and (trouble := self._trouble or self._refusal.error) is not None:
            story = self._story(consumer, trouble)
            self._drop()
            raise self._failed(story)
        if not self._records and self._end is not None and self.position >= self._end:
            return None
        return self._records

    def position_of(self, index: int) -> int:
        """`PlacedReader.position_of`."""
        return self._records[index].offset

    def close(self) -> None:
        """`Reader.close`."""
        self._drop()

    def _opened(self) -> Consumer:
        if self._consumer is None:
            self._refusal = Refusal()
            self._trouble = None
            self._at_end = self._waited = self._answered = False
            given = self._cluster.options() if callable(self._cluster.options) else self._cluster.options
            own = {**{name: value for name, value in _DEFAULTS.items() if name not in given}, **READER_OPTIONS}
            self._consumer = self._cluster.consumer(own, self._refusal)
            self._consumer.assign([TopicPartition(self._topic, self._number, self.position)])
        return self._consumer

    def _messages(self, consumer: Consumer, limit: int) -> list[Message]:
        messages = consumer.consume(limit, 0)
        if not messages and self._refusal.error is None and not self._waited and self._expects(consumer):
            first = consumer.poll(_WAIT_S)
            self._waited = first is None
            if first is not None:
                messages = [first, *(consumer.consume(limit - 1, 0) if limit > 1 else ())]
        return messages

    def _expects(self, consumer: Consumer) -> bool:
        """Whether the broker has more, as far as known."""
        if not self._answered:
            return True
        _, high = consumer.get_watermark_offsets(TopicPartition(self._topic, self._number), cached=True)
        return not self._at_end and self.position < high

    def _take(self, messages: Sequence[Message]) -> None:
        self._records = []
        for message in messages:
            error = message.error()
            offset = message.offset()
            if error is None:
                assert offset is not None  # noqa: S101  # a record has one
                if self._end is not None and offset >= self._end:
                    self.position = self._end
                    return
                self._records.append(_record(message, self._topic, self._number, offset))
                self.position = offset + 1
                self._answered, self._at_end, self._waited = True, False, False
            elif error.code() == KafkaError._PARTITION_EOF:
                self._answered, self._at_end, self._waited = True, True, False
                if offset is not None:
                    self.position = max(self.position, offset)
            elif is_passing(error):
                _log.warning("source %r, partition %s-%d: %s", self._operator, self._topic, self._number, error.str())
            else:
                self._trouble = error
                return  # what follows is fetched again

    def _story(self, consumer: Consumer, error: KafkaError) -> str:
        if error.code() not in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            return described(error)
        where = TopicPartition(self._topic, self._number)
        try:
            low, high = consumer.get_watermark_offsets(where, timeout=TIMEOUT_S)
        except KafkaException as unknown:
            return f"offset {self.position} is out of range; the range is not known: {described(unknown)}"
        if self.position < low:
            return (
                f"offset {self.position} is out of range: the topic has {low} to {high}; retention removed "
                f"{low - self.position} offsets that were not read. To go on without them, submit the pipeline anew "
                "without its checkpoint; to keep them next time, raise retention.ms or retention.bytes of the topic"
            )
        return (
            f"offset {self.position} is out of range: the topic has {low} to {high}; was it created again? To read the "
            "new topic, submit the pipeline anew without its checkpoint"
        )

    def _failed(self, story: str) -> ConnectorError:
        msg = f"source {self._operator!r}, topic {self._topic!r}, partition {self._number}: {story}"
        return ConnectorError(msg)

    def _drop(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _record(message: Message, topic: str, partition: int, offset: int) -> Record:
    kind, milliseconds = message.timestamp()
    headers: Any = message.headers()  # pairs; the stub's other forms are those of producers
    return Record(
        topic,
        partition,
        offset,
        milliseconds / 1000 if kind else 0.0,
        message.key(),
        message.value(),
        tuple(headers) if headers else (),
    )
