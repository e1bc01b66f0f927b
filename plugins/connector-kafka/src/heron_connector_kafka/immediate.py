"""Writes records at once. What the cluster has not taken is kept, and sent again."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from heron.clock import monotonic_s
from heron.errors import ConnectorError, UnreachableError
from heron_connector_kafka.cluster import TIMEOUT_S, Cluster, Option, Refusal, described, is_passing
from heron_connector_kafka.outgoing import ANY_PARTITION, Headers, Outgoing
from heron_connector_kafka.transactions import PRODUCER_OPTIONS

__all__ = ["ImmediateWriter"]

_CLOSE_S = 5.0
_POLL_S = 0.01  # between the questions what has failed; one takes as long as two records
_OPTIONS: Mapping[str, Option] = {**PRODUCER_OPTIONS, "delivery.report.only.error": True}


class ImmediateWriter:
    """The writer of one task."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._refusal = Refusal()
        self._producer: Producer | None = None
        self._failed: deque[Outgoing] = deque()
        self._trouble: KafkaError | None = None
        self._poll_s = 0.0
        self._hear = self._heard  # one object for all records

    def append(self, key: bytes | None, value: bytes | None, headers: Headers = (), timestamp_ms: int = 0) -> None:
        """Hand a record to the client; waits while its queue is full.

        Raises:
            ConnectorError: when the cluster has refused records for good.
        """
        producer = self._opened() if self._producer is None else self._producer
        try:
            if headers or timestamp_ms:
                self._send(producer, Outgoing(key, value, headers, timestamp_ms))
            else:
                try:
                    producer.produce(self._topic, value, key, ANY_PARTITION, self._hear)
                except BufferError:
                    Outgoing(key, value).produce(producer, self._topic, self._hear)
            if (now_s := monotonic_s()) < self._poll_s:
                return
            producer.poll(0)
        except KafkaException as error:
            raise self._refused(error) from error
        self._poll_s = now_s + _POLL_S
        self._check()  # behind, so that a report costs no record

    def append_all(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> None:
        """Hand records to the client; as `append`."""
        producer = self._opened() if self._producer is None else self._producer
        produce, topic, hear = producer.produce, self._topic, self._hear
        try:
            for key, value in zip(keys, values, strict=False):
                try:
                    produce(topic, value, key, ANY_PARTITION, hear)
                except BufferError:
                    Outgoing(key, value).produce(producer, topic, hear)
            producer.poll(0)
        except KafkaException as error:
            raise self._refused(error) from error
        self._check()

    def prepare(self, checkpoint: int) -> None:
        """Wait until the cluster has everything.

        Raises:
            UnreachableError: when it has not after 30 s.
            ConnectorError: when it has refused records for good.
        """
        del checkpoint
        if self._producer is None and not self._failed:
            return
        producer = self._opened() if self._producer is None else self._producer
        try:
            waiting = self._flushed(producer)
        except KafkaException as error:
            raise self._refused(error) from error
        self._check()
        if waiting:
            msg = f"topic {self._topic!r}: {waiting} records wait for the cluster after {TIMEOUT_S:g} s"
            raise UnreachableError(msg)

    def commit(self, checkpoint: int) -> None:
        """Nothing: the records are visible."""

    def restore(self, checkpoint: int) -> None:
        """Nothing: the records cannot be taken back."""

    def close(self) -> None:
        """Wait a moment for what is on its way."""
        if self._producer is not None:
            with contextlib.suppress(KafkaException):  # nothing more can be done
                self._producer.flush(_CLOSE_S)
            self._producer = None

    def _opened(self) -> Producer:
        self._producer = self._cluster.producer(_OPTIONS, self._refusal)
        return self._producer

    def _flushed(self, producer: Producer) -> int:
        """Waits; returns how many records the cluster does not have."""
        until_s = monotonic_s() + TIMEOUT_S
        waiting = 1
        while waiting and self._trouble is None and (left_s := until_s - monotonic_s()) > 0:
            for _ in range(len(self._failed)):
                self._send(producer, self._failed.popleft())
            waiting = producer.flush(left_s) + len(self._failed)
        return waiting

    def _send(self, producer: Producer, record: Outgoing) -> None:
        record.produce(producer, self._topic, partial(self._delivered, record))

    def _heard(self, error: KafkaError | None, message: Message) -> None:
        """What becomes of a record without headers and time: the message has the rest of it."""
        self._delivered(Outgoing(message.key(), message.value()), error, message)

    def _delivered(self, record: Outgoing, error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            self._failed.append(record)
            if not is_passing(error):
                self._trouble = error

    def _refused(self, error: KafkaException) -> ConnectorError:
        """Gives up a client that cannot go on; a new one sends what it had."""
        if self._producer is not None:
            producer, self._producer = self._producer, None
            producer.purge()
            with contextlib.suppress(KafkaException):
                producer.poll(0)  # hands back what was purged
        self._trouble = None
        msg = f"topic {self._topic!r}: {described(error)}; {len(self._failed)} records wait"
        return ConnectorError(msg)

    def _check(self) -> None:
        """Reports a refusal once; the next call tries again."""
        trouble = self._trouble or self._refusal.error
        self._trouble = self._refusal.error = None
        if trouble is not None:
            msg = f"topic {self._topic!r}: {described(trouble)}; {len(self._failed)} records wait"
            raise ConnectorError(msg)
