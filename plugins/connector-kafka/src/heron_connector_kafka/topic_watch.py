"""What the readers of a task ask the cluster about topics, beside reading: which topic a name means, and where it ends.

A topic that is deleted and created again has the same name and other records. librdkafka goes on in it at the old
offset, and reports nothing if this is quick. Only the id of the topic tells them apart. An id never comes back. So the
records that were fetched before an answer with the expected id are of the expected topic.
"""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # their documented place
    AdminClient,
    ListOffsetsResultInfo,
    OffsetSpec,
)

from heron.clock import monotonic_s
from heron_connector_kafka.cluster import Cluster, Refusal

__all__ = ["TopicWatch"]

_ZERO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # of a broker before 2.8, which has no ids
_LATE_S = 3.0
_END_S = 0.2  # the task waits for the answer


class TopicWatch:
    """One client for the readers of a task. It connects with the first question."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._refusal = Refusal()
        self._admin: AdminClient | None = None
        self._users: dict[int, tuple[str, int]] = {}
        self._ids: dict[str, tuple[float, str]] = {}  # when it was asked for, and the answer
        self._ends: dict[tuple[str, int], Future[ListOffsetsResultInfo]] = {}  # of the last question, not taken yet
        self._late: Future[ListOffsetsResultInfo] | None = None  # one that was waited for, and has not come

    def use(self, reader: object, topic: str, partition: int) -> None:
        """A reader begins to use it."""
        self._users[id(reader)] = topic, partition

    def release(self, reader: object) -> None:
        """A reader has ended; the last one disconnects the client. Again has no effect."""
        self._users.pop(id(reader), None)
        if not self._users:
            self._disconnect()
            self._ids.clear()

    def id_of(self, topic: str, trusted_s: float, wait_s: float) -> str:
        """The id of the topic that has this name now; an answer that is younger than `trusted_s` serves. Waits.

        Empty if the brokers have no ids.

        Raises:
            KafkaException: when the cluster does not answer within `wait_s`, has no such topic, or refuses the client.
                The next question has a new client, with the options of then.
        """
        asked_s, found = self._ids.get(topic, (0.0, ""))
        now_s = monotonic_s()
        if asked_s and now_s - asked_s < trusted_s:
            return found
        client = self._client()
        try:
            question = client.describe_topics(TopicCollection([topic]), request_timeout=wait_s)[topic]
            given = str(question.result(wait_s + 1).topic_id)
        except (KafkaException, FutureTimeoutError) as error:
            client.poll(0)  # delivers what the client has heard, such as a refused password
            cause = error.args[0] if isinstance(error, KafkaException) else KafkaError(KafkaError._TIMED_OUT)
            self._disconnect()
            raise KafkaException(self._refusal.error or cause) from error
        found = "" if given == _ZERO_ID else given
        self._ids[topic] = now_s, found
        return found

    def end_of(self, topic: str, partition: int, *, committed: bool) -> int | None:
        """The offset behind the last record; `committed`: that consumers of committed records can read.

        None while the cluster does not answer. Waits up to 0.2 s, and not again until the answer has come, which serves
        then. One question is about the partitions of all readers, and its answer serves each of them once.
        """
        if self._late is not None:
            if not self._late.done():
                return None
            if self._late.exception() is not None:
                self._disconnect()  # this client would send a former password, or the epoch of a former leader
            self._late = None
        place = topic, partition
        if place not in self._ends:
            self._ends = self._asked({place, *self._users.values()}, committed=committed)
        try:
            offset: int = self._ends[place].result(_END_S).offset
        except FutureTimeoutError:
            self._late = self._ends[place]
            return None
        except KafkaException:
            self._disconnect()
            return None
        del self._ends[place]
        return offset

    def _asked(
        self, places: set[tuple[str, int]], *, committed: bool
    ) -> dict[tuple[str, int], Future[ListOffsetsResultInfo]]:
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client's own
        wanted = {TopicPartition(topic, number): latest for topic, number in places}
        asked = self._client().list_offsets(wanted, isolation_level=level, request_timeout=_LATE_S)
        return {(each.topic, each.partition): answer for each, answer in asked.items()}

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._refusal = Refusal()
            self._admin = self._cluster.admin(self._refusal)
        return self._admin

    def _disconnect(self) -> None:
        self._admin = self._late = None
        self._ends.clear()  # a client that has ended answers no question
