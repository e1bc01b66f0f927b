"""A sink that writes to a topic: at once, or in transactions with the checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from heron.api import TopologyReliabilityMode
from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE as _MODE
from heron.api.api_constants import TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS as _INTERVAL
from heron.api.config import setting
from heron.errors import UsageError, UserCodeError
from heron_connector_kafka.cluster import LATEST_S, Cluster, Option, Options
from heron_connector_kafka.immediate import ImmediateWriter
from heron_connector_kafka.outgoing import Headers, Outgoing, encoded
from heron_connector_kafka.record import NewRecord
from heron_connector_kafka.transactions import (
    DEFAULT_TIMEOUT_MS,
    PRODUCER_OPTIONS,
    TIMEOUT_OPTION,
    TransactionWriter,
)
from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.connectors.staged_sink import StagedSink
from heron_streamlet.connectors.staging import StagedFile, check_sink_id
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["KafkaSink", "Transactions"]

_RESERVED = frozenset({*PRODUCER_OPTIONS, "transactional.id"})
_LARGEST_BYTES = 1_000_000  # librdkafka's default of `message.max.bytes`
_LONGEST_MS = 900_000  # of a transaction, unless the brokers are set otherwise
_FRAME_BYTES = 100  # of a record in a request, at most

T_contra = TypeVar("T_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Transactions:
    """Lets each result be in the topic once, for consumers with ``isolation.level=read_committed``.

    Args:
        id: begins the transactional ids, and names the groups that keep the markers. No other sink of the cluster may
            have it, and a pipeline must keep it. Letters, digits, ``_`` and ``-``; at most 100.
        folder: where results wait until their checkpoint is complete. All machines that may run the task need it.

    Raises:
        UsageError: when the id has other characters.
    """

    id: str
    folder: str | Path

    def __post_init__(self) -> None:
        check_sink_id(self.id, "Transactions")


class KafkaSink(TransactionalSink[T_contra]):
    """Writes each element as a record of a topic.

    Without `transactions` an element is written at once. A checkpoint waits until the cluster has everything, so with
    checkpoints nothing is lost, and after a death some records may be there twice. With `transactions` records become
    visible when their checkpoint is complete, each once.

    Args:
        servers: ``host:port`` of some brokers: a list, or a text with commas.
        topic: the name of the topic, which must exist.
        key: the record's key for an element; records of a key are in one partition. None for records without keys.
        value: the record's value for an element, or a `NewRecord`; None is a tombstone. Without it, elements are texts,
            bytes or `NewRecord`s.
        transactions: see `Transactions`; None to write at once.
        options: configuration of librdkafka, or a function that returns it, as for `KafkaSource`.

    Raises:
        UsageError: when an argument is wrong.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        topic: str,
        *,
        key: Callable[[T_contra], str | bytes | None] | None = None,
        value: Callable[[T_contra], str | bytes | NewRecord | None] | None = None,
        transactions: Transactions | None = None,
        options: Options | None = None,
    ) -> None:
        if not topic:
            msg = "KafkaSink: topic is empty; give the name of a topic"
            raise UsageError(msg)
        self.topic = topic
        self.transactions = transactions
        self._cluster = Cluster.of(servers, options, _RESERVED, "KafkaSink")
        self._key, self._value = key, value
        self._interval_s = 0.0
        self._staged = None if transactions is None else _StagedRecords(self._cluster, topic, transactions)

    def check(self, config: Mapping[str, object]) -> None:
        """`Sink.check`. A transaction must be able to last as long as what it contains took to come.

        Raises:
            UsageError: when the timeout of transactions is shorter than the interval of checkpoints.
        """
        mode = config.get(_MODE)
        saves = mode == TopologyReliabilityMode.EFFECTIVELY_ONCE
        saves |= mode == TopologyReliabilityMode.ATLEAST_ONCE and _INTERVAL in config
        if self.transactions is not None and saves:
            self._interval_s = float(str(setting(config, _INTERVAL)))
            # A function is called in tasks only: the command may not have its password.
            self._timeout_ms({} if callable(self._cluster.options) else self._cluster.options)

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`. Does not wait for the cluster.

        Raises:
            UsageError: as `check`, when `options` is a function.
        """
        options = self._cluster.given()
        self._largest_bytes = int(options.get("message.max.bytes", _LARGEST_BYTES)) - _FRAME_BYTES
        self._name = context.name
        if self._staged is not None:
            self._staged.timeout_ms = self._timeout_ms(options)
            self._staged.setup(context)
        self._way = self._staged or ImmediateWriter(self._cluster, self.topic)
        self._append = self._way.append

    def put(self, element: T_contra) -> None:
        """`Sink.put`.

        Raises:
            UserCodeError: when key, value or a header are neither text nor bytes, or too large for a record, or when
                the time is not one.
        """
        given: object = element if self._value is None else self._value(element)
        key: object = None if self._key is None else self._key(element)
        if type(given) is bytes and key is None and len(given) <= self._largest_bytes:  # the quick way
            self._append(None, given)
        else:
            self._append_any(key, given)

    def _append_any(self, key: object, given: object) -> None:
        headers: Headers = ()
        timestamp_ms = 0
        if isinstance(given, NewRecord):
            headers = tuple((name, self._bytes(f"header {name!r}", each)) for name, each in given.headers)
            timestamp_ms = self._milliseconds(given.timestamp_s)
            key = given.key if self._key is None else key
            given = given.value
        key_bytes, value = self._bytes("key", key), self._bytes("value", given)
        size = len(key_bytes or b"") + len(value or b"")
        if headers:
            size += sum(len(name) + len(each or b"") for name, each in headers)
        self._check_size(size)
        self._append(key_bytes, value, headers, timestamp_ms)

    def _check_size(self, size: int) -> None:
        if size > self._largest_bytes:
            msg = (
                f"sink {self._name!r}: a record of {size} bytes is larger than {self._largest_bytes}; raise "
                "message.max.bytes in `options`, and max.message.bytes of the topic"
            )
            raise UserCodeError(msg)

    def prepare(self, checkpoint: int) -> None:
        """`TransactionalSink.prepare`.

        Raises:
            UnreachableError: without `transactions`, when the cluster does not take what was put.
        """
        self._way.prepare(checkpoint)

    def commit(self, checkpoint: int) -> None:
        """`TransactionalSink.commit`.

        Raises:
            UnreachableError: when the cluster does not answer; the next commit writes what waits.
            ConnectorError: when it refuses the records.
        """
        self._way.commit(checkpoint)

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`. While the cluster does not answer, results wait for the next commit."""
        self._way.restore(checkpoint)

    def close(self) -> None:
        """`Sink.close`."""
        if hasattr(self, "_way"):
            self._way.close()

    def _timeout_ms(self, options: Mapping[str, Option]) -> int:
        """How long a transaction may be open."""
        interval_ms = round(self._interval_s * 1000)
        usual_ms = min(max(DEFAULT_TIMEOUT_MS, interval_ms), _LONGEST_MS)
        timeout_ms = int(options.get(TIMEOUT_OPTION, usual_ms))
        if timeout_ms < interval_ms:
            msg = (
                f"KafkaSink({self.topic!r}): a transaction has the results between two checkpoints, so it may take as "
                f"long as they took; but {TIMEOUT_OPTION} is {timeout_ms} ms, and {_INTERVAL} is "
                f"{self._interval_s:g} s. Shorten the interval, or set {TIMEOUT_OPTION} in `options` to at least "
                f"{interval_ms}; the brokers allow their transaction.max.timeout.ms, usually {_LONGEST_MS}"
            )
            raise UsageError(msg)
        return timeout_ms

    def _milliseconds(self, given_s: float | None) -> int:
        if given_s is None:
            return 0
        if not 0 < given_s < LATEST_S:  # also refuses what is not a number
            msg = f"sink {self._name!r}: the time {given_s!r:.60} is not above 0 and below {LATEST_S:,.0f} s since 1970"
            raise UserCodeError(msg)
        return max(1, round(given_s * 1000))

    def _bytes(self, what: str, given: object) -> bytes | None:
        if given is None or isinstance(given, bytes):
            return given
        if isinstance(given, str):
            return given.encode()
        msg = (
            f"sink {self._name!r}: the {what} {given!r:.60} is neither text nor bytes; give KafkaSink a function "
            "`key` or `value` that returns one of them"
        )
        raise UserCodeError(msg)


class _StagedRecords(StagedSink[Outgoing]):
    """Records wait in files for their checkpoint, and then are written in a transaction for each."""

    timeout_ms = DEFAULT_TIMEOUT_MS

    def __init__(self, cluster: Cluster, topic: str, transactions: Transactions) -> None:
        super().__init__(id=transactions.id, folder=transactions.folder)
        self._cluster, self._topic = cluster, topic
        self._writers: dict[int, TransactionWriter] = {}

    def put(self, record: Outgoing) -> None:
        """`Sink.put`."""
        self.staging.append(encoded(record))

    def append(self, key: bytes | None, value: bytes | None, headers: Headers = (), timestamp_ms: int = 0) -> None:
        """`ImmediateWriter.append`."""
        self.put(Outgoing(key, value, headers, timestamp_ms))

    def append_all(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> None:
        """`ImmediateWriter.append_all`."""
        for key, value in zip(keys, values, strict=False):
            self.put(Outgoing(key, value))

    def write(self, files: Sequence[StagedFile]) -> None:
        """`StagedSink.write`. The transactions of a task have a marker that says which file they have written."""
        task = files[0].task
        if task not in self._writers:
            self._writers[task] = TransactionWriter(self._cluster, self._topic, self.id, task, self.timeout_ms)
        for file in files:
            self._writers[task].write(file)
            file.path.unlink(missing_ok=True)

    def close(self) -> None:
        """`Sink.close`."""
        super().close()
        for writer in self._writers.values():
            writer.close()
