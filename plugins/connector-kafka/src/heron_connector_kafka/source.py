"""A source that reads topics. Each topic partition is a partition of the source, and its offsets are the positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import TopicMetadata  # type: ignore[attr-defined]  # its documented place

from heron.clock import monotonic_s
from heron.errors import ConnectorError, UsageError, nearest
from heron_connector_kafka.cluster import LATEST_S, TIMEOUT_S, Cluster, Options, Refusal, described
from heron_connector_kafka.reader import READER_OPTIONS, PartitionReader, Place
from heron_connector_kafka.record import Record
from heron_connector_kafka.topic_watch import TopicWatch
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["KafkaSource"]

_RESERVED = frozenset({"auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof"})
_RULES = ("error", "continue")
_SHOWN = 20
_ATTEMPT_S = 3.0
_PAUSE_S = 0.1
_WITHOUT_LEADER = frozenset({KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION})


class KafkaSource(Source[Record]):
    """The records of topics, in the order of each partition.

    The partitions of the topics, and the offsets that `start` and `until` mean, are found when the pipeline starts.
    Only records of committed transactions are read, unless `options` has another ``isolation.level``.

    Args:
        servers: ``host:port`` of some brokers: a list, or a text with commas.
        topics: the name of a topic, or a list of names.
        start: where reading begins without a checkpoint: ``"earliest"``, ``"latest"``, or a time: a `datetime` with a
            time zone, or seconds since 1970 in UTC. A time means the first record that is not older.
        until: where reading ends: None for never, ``"latest"`` for what is there when the pipeline starts, or a time.
            Batch engines need an end.
        recreated: what happens when a topic was deleted and created again, which its id shows: ``"error"``, or
            ``"continue"`` at the begin of the new topic. Positions of the old topic never count in the new one.
        options: configuration of librdkafka, such as ``{"security.protocol": "SASL_SSL"}``. A function that returns it
            is called in each task, so passwords need not be part of the topology.

    Raises:
        UsageError: when an argument is wrong.
    """

    word = "kafka"

    def __init__(
        self,
        servers: str | Sequence[str],
        topics: str | Sequence[str],
        *,
        start: str | datetime | float = "earliest",
        until: str | datetime | float | None = None,
        recreated: str = "error",
        options: Options | None = None,
    ) -> None:
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        if not self.topics or not all(self.topics):
            msg = f"KafkaSource: topics={topics!r} is neither a name nor a list of names"
            raise UsageError(msg)
        self._cluster = Cluster.of(servers, options, _RESERVED, "KafkaSource")
        self._start = _place("start", start, ("earliest", "latest"))
        self._until = None if until is None else _place("until", until, ("latest",))
        self.bounded = until is not None
        if recreated not in _RULES:
            msg = f"KafkaSource: recreated={recreated!r} is not 'error' or 'continue'"
            raise UsageError(msg)
        if self.bounded and recreated != "error":
            msg = "KafkaSource: recreated='continue' and `until` exclude each other: the end is one of the first topic"
            raise UsageError(msg)
        self._follows = recreated == "continue"
        self._begins: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._ids: dict[str, str] = {}
        self._watch = TopicWatch(self._cluster)

    def __getstate__(self) -> dict[str, object]:
        """Each task has a client of its own."""
        return {**self.__dict__, "_watch": TopicWatch(self._cluster)}

    def partitions(self, tasks: int) -> Sequence[str]:  # those of the topics
        """``TOPIC-NUMBER`` of each partition. Asks the cluster.

        Raises:
            UsageError: when a topic does not exist.
            ConnectorError: when the cluster does not answer, or refuses the client.
        """
        refusal = Refusal()
        consumer = self._cluster.consumer({"group.id": "heron", **READER_OPTIONS}, refusal)
        try:
            topics = _listed(consumer, refusal)
            found = [each for topic in dict.fromkeys(self.topics) for each in _partitions_of(topics, topic)]
            for each in found:
                self._resolve_when_led(consumer, each)
            self._ids = {topic: self._watch.id_of(topic, 0.0, TIMEOUT_S) for topic in self.topics}
        except KafkaException as error:
            consumer.poll(0)  # delivers what the client has heard
            text = described(refusal.error or error)
            msg = f"KafkaSource({', '.join(self.topics)}): {self._cluster.servers}: {text}"
            raise ConnectorError(msg) from error
        finally:
            consumer.close()
            self._watch.release(self)
        return [_name(each) for each in found]

    def open(self, partition: str, position: object, context: StageContext) -> PartitionReader:
        """`Source.open`. Does not wait for the cluster.

        Raises:
            UsageError: when the partition is not one that `partitions` has found.
        """
        topic, _, number = partition.rpartition("-")
        where = _where(position)
        if where is None:
            if partition not in self._begins:
                known = ", ".join(sorted(self._begins)) or "none: `partitions` was not called"
                msg = f"source {context.name!r}: there is no partition {partition!r}; known: {known}"
                raise UsageError(msg)
            where = "", self._begins[partition]
        topic_id, offset = where[0] or self._ids.get(topic, ""), where[1]
        place = Place(topic, int(number), offset, topic_id, self._follows, self._ends.get(partition))
        return PartitionReader(self._cluster, self._watch, context.name, place)

    def _resolve_when_led(self, consumer: Consumer, partition: TopicPartition) -> None:
        """Waits while a leader is being chosen, as for a new topic or after a broker has died."""
        until_s = monotonic_s() + TIMEOUT_S
        while True:
            try:
                return self._resolve(consumer, partition)
            except KafkaException as error:
                if error.args[0].code() not in _WITHOUT_LEADER or monotonic_s() >= until_s:
                    raise
            consumer.list_topics(timeout=_ATTEMPT_S)  # the client learns the leader
            consumer.poll(_PAUSE_S)

    def _resolve(self, consumer: Consumer, partition: TopicPartition) -> None:
        """Finds the offsets at which reading begins and ends."""
        _, high = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)
        name = _name(partition)
        if self._start == "earliest":
            self._begins[name] = OFFSET_BEGINNING
        else:
            self._begins[name] = self._offset(consumer, partition, self._start, high)
        if self._until is not None:
            self._ends[name] = self._offset(consumer, partition, self._until, high)

    @staticmethod
    def _offset(consumer: Consumer, partition: TopicPartition, place: str | int, high: int) -> int:
        if isinstance(place, str):
            return high
        asked = TopicPartition(partition.topic, partition.partition, place)
        (found,) = consumer.offsets_for_times([asked], timeout=TIMEOUT_S)
        if found.error is not None:
            raise KafkaException(found.error)
        return found.offset if 0 <= found.offset <= high else high


def _where(position: object) -> tuple[str, int] | None:
    """The id of the topic, and the offset; of a checkpoint of an older version the offset alone."""
    if isinstance(position, int):
        return "", position
    if isinstance(position, Sequence) and len(position) == 2:  # a pair
        return str(position[0]), int(position[1])
    return None


def _listed(consumer: Consumer, refusal: Refusal) -> Mapping[str, TopicMetadata]:
    """All topics: asking for one would create it where the cluster permits that."""
    until_s = monotonic_s() + TIMEOUT_S
    while True:
        try:
            found: Mapping[str, TopicMetadata] = consumer.list_topics(timeout=_ATTEMPT_S).topics
        except KafkaException:
            consumer.poll(0)  # delivers what the client has heard: nobody waits for a wrong password
            if refusal.error is not None or monotonic_s() >= until_s:
                raise
        else:
            return found


def _partitions_of(topics: Mapping[str, TopicMetadata], topic: str) -> list[TopicPartition]:
    if topic not in topics:
        names = sorted(each for each in topics if not each.startswith("__"))
        listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        msg = f"KafkaSource: there is no topic {topic!r}{nearest(topic, names)}; known: {listed or 'none'}"
        raise UsageError(msg)
    if (error := topics[topic].error) is not None:
        raise KafkaException(error)
    return [TopicPartition(topic, number) for number in sorted(topics[topic].partitions)]


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _place(name: str, given: object, words: Sequence[str]) -> str | int:
    """A word, or milliseconds since 1970."""
    if isinstance(given, str) and given in words:
        return given
    seconds: float | None = None
    if isinstance(given, datetime) and given.tzinfo is not None:
        seconds = given.timestamp()
    elif isinstance(given, (int, float)) and not isinstance(given, bool):
        seconds = float(given)
    if seconds is None or not 0 <= seconds < LATEST_S:
        wanted = " or ".join(map(repr, words))
        msg = (
            f"KafkaSource: {name}={given!r} is not {wanted}, a datetime with a time zone, or seconds since 1970 "
            "from 0 to 100,000,000,000"
        )
        raise UsageError(msg)
    return round(seconds * 1000)
