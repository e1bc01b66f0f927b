"""Writes each staged file in one transaction, together with a marker that says that it is written.

A transaction of a process that died cannot be committed by another one. So nothing is in a transaction before its
checkpoint is complete. The marker is a committed offset of a consumer group that has no consumers: its number is the
checkpoint, its text the run. Kafka makes records and marker visible together, or neither. A new process first calls
`init_transactions`, after which the transaction of an older one is either complete or aborted, and older ones are
refused. Then the marker tells whether a file is already written.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from heron.errors import ConnectorError, UnreachableError
from heron_connector_kafka.cluster import TIMEOUT_S, Cluster, Option, Refusal, described, is_passing
from heron_connector_kafka.outgoing import decoded
from heron_streamlet.connectors.staging import StagedFile

__all__ = ["DEFAULT_TIMEOUT_MS", "PRODUCER_OPTIONS", "TIMEOUT_OPTION", "TransactionWriter", "is_written"]

PRODUCER_OPTIONS: Mapping[str, Option] = {
    "enable.idempotence": True,
    "partitioner": "murmur2_random",  # places keys as Java's producers do
}
TIMEOUT_OPTION = "transaction.timeout.ms"
DEFAULT_TIMEOUT_MS = 60_000  # librdkafka's
_LATE_S = 5.0  # behind the client's own timeout


class TransactionWriter:
    """The transactions of one task. It connects when it has something to write."""

    def __init__(self, cluster: Cluster, topic: str, name: str, task: int, timeout_ms: int) -> None:
        """The broker aborts a transaction that is open for longer than `timeout_ms`."""
        self._cluster, self._topic, self._id, self._timeout_ms = cluster, topic, f"{name}.{task}", timeout_ms
        self._refusal = Refusal()
        self._producer: Producer | None = None
        self._group: Consumer | None = None
        self._marker = ("", 0)

    def write(self, file: StagedFile) -> None:
        """Write the records of a file, unless they are written. After an error the outcome is unknown; call it again.

        Raises:
            UnreachableError: when the cluster does not answer.
            ConnectorError: when it refuses the records or the client, or another process has the transactional id.
        """
        try:
            producer, group = self._connected()
            if is_written(file, self._marker):
                return
            producer.begin_transaction()
            for record in map(decoded, file.messages()):
                record.produce(producer, self._topic)
            mark = TopicPartition(self._topic, 0, file.checkpoint, file.run)
            members = group.consumer_group_metadata()
            _ended(partial(producer.send_offsets_to_transaction, [mark], members, TIMEOUT_S), TIMEOUT_S + _LATE_S)
            producer.commit_transaction(TIMEOUT_S)
            self._marker = (file.run, file.checkpoint)
        except KafkaException as error:
            raise self._failed(error) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the clients. A transaction that is open ends by the next `init_transactions`."""
        if self._producer is not None:
            self._producer.purge()
        if self._group is not None:
            self._group.close()
        self._producer = self._group = None

    def _connected(self) -> tuple[Producer, Consumer]:
        if self._producer is None or self._group is None:
            self._refusal = Refusal()
            own = {**PRODUCER_OPTIONS, "transactional.id": self._id, TIMEOUT_OPTION: self._timeout_ms}
            self._producer = self._cluster.producer(own, self._refusal)
            # Only what is read as committed waits for markers that the broker still writes.
            committed: dict[str, Option] = {"group.id": self._id, "isolation.level": "read_committed"}
            self._group = self._cluster.consumer({**committed, "enable.auto.commit": False}, self._refusal)
            self._producer.init_transactions(TIMEOUT_S)
            (found,) = self._group.committed([TopicPartition(self._topic, 0)], timeout=TIMEOUT_S)
            if found.error is not None:
                raise KafkaException(found.error)
            self._marker = (found.metadata or "", found.offset) if found.offset >= 0 else ("", 0)
        return self._producer, self._group

    def _failed(self, error: KafkaException) -> ConnectorError | UnreachableError:
        if self._producer is not None:
            with contextlib.suppress(KafkaException):  # again, of a client that is fenced
                self._producer.poll(0)  # delivers what the client has heard
        cause = self._refusal.error or error.args[0]
        self.close()
        msg = f"topic {self._topic!r}, transactional id {self._id!r}: {described(cause)}"
        return UnreachableError(msg) if is_passing(cause) else ConnectorError(msg)


def _ended(call: Callable[[], None], wait_s: float) -> None:
    """Carry out a call that may ignore its own timeout, as librdkafka's does after a broker was killed (issue 5456).

    A call that is late keeps its thread and its client. The transaction of that client is never committed: the next
    client with the transactional id aborts it, and brokers refuse the older one from then on.

    Raises:
        KafkaException: when the call fails, or does not return within `wait_s`.
    """
    outcome: Future[None] = Future()

    def carry_out() -> None:
        try:
            call()
        except BaseException as error:  # raised again by `result`
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=carry_out, name="kafka-offsets", daemon=True).start()
    try:
        outcome.result(wait_s)
    except FutureTimeoutError as error:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error


def is_written(file: StagedFile, marker: tuple[str, int]) -> bool:
    """Whether a marker, the run and the checkpoint of the last file that was written, is not before this file."""
    run, checkpoint = marker
    return run == file.run and checkpoint >= file.checkpoint
