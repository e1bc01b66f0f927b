"""Reads one partition of a topic.

Offsets have gaps: markers of transactions, aborted records, and records that compaction removed. So the position is the
offset behind the last record or behind the gap that follows it, and the place of an element is its own offset. Each of
them has the id of the topic, because an offset means nothing in another topic of the same name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from heron.errors import ConnectorError
from heron_connector_kafka.cluster import TIMEOUT_S, Cluster, Option, Refusal, described, is_passing
from heron_connector_kafka.record import Record
from heron_connector_kafka.topic_watch import TopicWatch

__all__ = ["READER_OPTIONS", "PartitionReader", "Place"]

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
_OF_TOPICS = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""What a client reports of a topic that was deleted."""
_TRUSTED_S = 1.0
"""For how long an answer that the topic is still the same one serves: the task waits for each question."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading begins.

    Attributes:
        topic_id: of the topic that the offset belongs to; empty if it is not known.
        follows: whether reading goes on at the begin of a topic that is created again under this name.
        end: the offset at which reading ends; None for never.
    """

    topic: str
    partition: int
    offset: int
    topic_id: str
    follows: bool
    end: int | None


class PartitionReader:
    """A `PlacedReader`. A client that fails is replaced by a new one at the same position with the next `read`."""

    def __init__(self, cluster: Cluster, watch: TopicWatch, operator: str, place: Place) -> None:
        self._cluster = cluster
        self._watch = watch
        self._operator = operator
        self._topic, self._number, self._end = place.topic, place.partition, place.end
        self._id, self._follows = place.topic_id, place.follows
        self._offset: int = place.offset
        self._refusal = Refusal()
        self._consumer: Consumer | None = None
        self._reads_committed = True
        self._taken: Sequence[Message] = ()
        self._ended_at: int | None = None  # where the broker said that nothing follows
        self._waited = False  # in vain, since the broker's last answer
        self._answered = False
        self._is_confirmed = False  # the topic was still the same one since the client began
        self._trouble: KafkaError | None = None
        watch.use(self, place.topic, place.partition)

    @property
    def position(self) -> tuple[str, int]:
        """`Reader.position`: the id of the topic, and the offset."""
        return self._id, self._offset

    def read(self, limit: int) -> Sequence[Record] | None:
        """`Reader.read`; waits and raises as `take`."""
        messages = self.take(limit)
        return None if messages is None else [self._record_of(each) for each in messages]

    def take(self, limit: int) -> Sequence[Message] | None:
        """The next records as the client has them, as `Reader.read` gives elements.

        Waits up to 3 s for a broker's answer, once; while a broker is away there is nothing now.

        Raises:
            ConnectorError: when the offset is out of range, the topic is gone or was created again, or the cluster
                refuses the client.
        """
        if self._end is not None and self._offset >= self._end:
            return None
        begin = self._offset
        if self._trouble is not None:  # the client has fetched what follows the error, and would go on behind it
            self._drop()
        consumer = self._opened()
        try:
            self._keep(self._messages(consumer, limit))
        except KafkaException as error:
            self._drop()
            raise self._failed(described(error)) from error
        trouble = None if self._taken else self._trouble or self._refusal.error
        if (other := self._other_topic(begin, trouble)) is not None:
            self._go_to(other, begin)
        elif trouble is not None:
            story = self._story(consumer, trouble)
            self._drop()
            raise self._failed(story)
        if not self._taken and self._end is not None and self._offset >= self._end:
            return None
        return self._taken

    def position_of(self, index: int) -> tuple[str, int]:
        """`PlacedReader.position_of`."""
        return self._id, _offset_of(self._taken[index])

    def backlog(self) -> float | None:
        """`MeasuredReader.backlog`. It counts offsets, so gaps of compaction and transactions count too."""
        if self._offset < 0:  # the begin, which is not known yet
            return None
        end = self._end
        if end is None:
            end = self._watch.end_of(self._topic, self._number, committed=self._reads_committed)
        return None if end is None else float(max(0, end - self._offset))

    def close(self) -> None:
        """`Reader.close`."""
        self._drop()
        self._watch.release(self)

    def _other_topic(self, begin: int, trouble: KafkaError | None) -> str | None:
        """The id of the topic that has the name now, if it is not the one of the position.

        Records that the cluster does not confirm are fetched again.

        Raises:
            ConnectorError: when the cluster refuses the question.
        """
        if not self._taken and (trouble is None or trouble.code() not in _OF_TOPICS):
            return None
        trusted_s = _TRUSTED_S if self._is_confirmed and trouble is None else 0.0
        try:
            found = self._watch.id_of(self._topic, trusted_s, _WAIT_S)
        except KafkaException as error:
            if not self._taken:
                return None  # the trouble says it
            self._go_back(begin)
            if is_passing(error.args[0]) or error.args[0].code() in _OF_TOPICS:
                return None
            raise self._failed(described(error)) from error
        self._is_confirmed = True
        self._id = self._id or found
        return found if found and found != self._id else None

    def _go_to(self, other: str, begin: int) -> None:
        """Reading goes on at the begin of a topic that was created again.

        Raises:
            ConnectorError: when the author has not allowed it.
        """
        offset = "the begin" if begin < 0 else f"offset {begin}"
        story = (
            f"the topic was deleted and created again: {offset} belongs to the topic with id {self._id}, and the "
            f"topic of this name has id {other} now"
        )
        self._go_back(begin)
        if not self._follows:
            remedy = 'give KafkaSource recreated="continue", or submit the pipeline again without its checkpoint'
            msg = f"{story}. To read the new topic from its begin, {remedy}"
            raise self._failed(msg)
        _log.warning("source %r, partition %s-%d: %s; reading begins", self._operator, self._topic, self._number, story)
        self._id, self._offset = other, OFFSET_BEGINNING

    def _go_back(self, offset: int) -> None:
        """What was fetched does not count."""
        self._taken = ()
        self._offset = offset
        self._drop()

    def _opened(self) -> Consumer:
        if self._consumer is None:
            self._refusal = Refusal()
            self._trouble = None
            self._waited = self._answered = self._is_confirmed = False
            self._ended_at = None
            given = self._cluster.given()
            own = {**{name: value for name, value in _DEFAULTS.items() if name not in given}, **READER_OPTIONS}
            self._consumer = self._cluster.consumer(own, self._refusal)
            self._reads_committed = {**_DEFAULTS, **given}["isolation.level"] == "read_committed"
            self._consumer.assign([TopicPartition(self._topic, self._number, self._offset)])
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
        return self._ended_at != self._offset < high

    def _keep(self, messages: Sequence[Message]) -> None:
        """Takes the records among the messages up to the first trouble; the next `take` fetches again what follows."""
        kept = [each for each in messages if each.error() is None]  # a source spends most of its time with these
        if len(kept) < len(messages):
            kept = self._heard(messages)
        if self._end is not None and kept and _offset_of(kept[-1]) >= self._end:
            kept = [each for each in kept if _offset_of(each) < self._end]
            self._offset = self._end
        self._taken = kept
        if kept:
            self._offset = max(self._offset, _offset_of(kept[-1]) + 1)
            self._answered, self._waited = True, False

    def _heard(self, messages: Sequence[Message]) -> list[Message]:
        records: list[Message] = []
        for message in messages:
            if (error := message.error()) is None:
                records.append(message)
                continue
            self._hear(error, message.offset())
            if self._trouble is not None:
                break
        return records

    def _record_of(self, message: Message) -> Record:
        kind, milliseconds = message.timestamp()
        time_s = milliseconds / 1000 if kind else 0.0
        headers: Any = message.headers()  # pairs; the stub's other forms are those of producers
        pairs = tuple(headers) if headers else ()
        return Record(self._topic, self._number, _offset_of(message), time_s, message.key(), message.value(), pairs)

    def _hear(self, error: KafkaError, offset: int | None) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self._answered, self._waited = True, False
            if offset is not None:
                self._offset = max(self._offset, offset)
            self._ended_at = self._offset
        elif is_passing(error):
            _log.warning("source %r, partition %s-%d: %s", self._operator, self._topic, self._number, error.str())
        else:
            self._trouble = error

    def _story(self, consumer: Consumer, error: KafkaError) -> str:
        if error.code() not in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            return described(error)
        where = TopicPartition(self._topic, self._number)
        try:
            low, high = consumer.get_watermark_offsets(where, timeout=TIMEOUT_S)
        except KafkaException as unknown:
            return f"offset {self._offset} is out of range; the range is not known: {described(unknown)}"
        if self._offset < low:
            return (
                f"offset {self._offset} is out of range: the topic has {low} to {high}; retention removed "
                f"{low - self._offset} offsets that were not read. To go on without them, submit the pipeline again "
                "without its checkpoint; to keep them next time, raise retention.ms or retention.bytes of the topic"
            )
        return (
            f"offset {self._offset} is out of range: the topic has {low} to {high}; was it created again? To read the "
            "new topic, submit the pipeline again without its checkpoint"
        )

    def _failed(self, story: str) -> ConnectorError:
        msg = f"source {self._operator!r}, topic {self._topic!r}, partition {self._number}: {story}"
        return ConnectorError(msg)

    def _drop(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _offset_of(message: Message) -> int:
    offset = message.offset()
    assert offset is not None  # noqa: S101  # a record has one
    return offset
