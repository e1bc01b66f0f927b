"""What needs no server: wrong arguments, files that wait for their checkpoint, and the rule of the marker."""

from __future__ import annotations

import itertools
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from heron.api import TopologyReliabilityMode
from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE as _MODE
from heron.api.api_constants import TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS as _INTERVAL
from heron.errors import ConnectorError, UnreachableError, UsageError
from heron_connector_kafka import KafkaSink, KafkaSource, Transactions, topic_watch, transactions
from heron_connector_kafka import source as source_module
from heron_connector_kafka.cluster import Cluster
from heron_connector_kafka.columns import KafkaColumns
from heron_connector_kafka.outgoing import Outgoing, decoded, encoded
from heron_connector_kafka.reader import PartitionReader, Place
from heron_connector_kafka.topic_watch import TopicWatch
from heron_connector_kafka.transactions import TransactionWriter, is_written
from heron_streamlet import Builder, Items
from heron_streamlet.connectors.staging import StagedFile, StagingFolder
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.topology.topology_compiler import compile_topology

if TYPE_CHECKING:
    from confluent_kafka import Consumer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"servers": "kafka1"}, r"KafkaSource: servers: 'kafka1' is not HOST:PORT"),
        ({"servers": []}, r"KafkaSource: servers"),
        ({"topics": []}, r"KafkaSource: topics=\[\] is neither a name nor a list"),
        ({"start": "first"}, r"start='first' is not 'earliest' or 'latest', a datetime with a time zone, or seconds"),
        ({"start": datetime(2026, 1, 1)}, r"a datetime with a time zone"),  # noqa: DTZ001  # the mistake
        ({"until": "earliest"}, r"until='earliest' is not 'latest'"),
        ({"until": 1.7e12}, r"seconds since 1970 from 0 to 100,000,000,000"),
        ({"until": True}, r"until=True is not"),
        ({"start": float("nan")}, r"start=nan is not"),
        ({"recreated": "restart"}, r"recreated='restart' is not 'error' or 'continue'"),
        ({"recreated": "continue", "until": "latest"}, r"recreated='continue' and `until` exclude each other"),
        ({"options": {"auto.offset.reset": "latest"}}, r"options: 'auto.offset.reset' is set by KafkaSource itself"),
    ],
)
def test_wrong_source_is_refused_where_it_is_made(arguments: dict[str, Any], message: str) -> None:
    """The author sees the line, and no task starts."""
    with pytest.raises(UsageError, match=message):
        KafkaSource(**{"servers": "kafka1:9092", "topics": "clicks", **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topic": ""}, r"KafkaSink: topic is empty"),
        ({"options": {"transactional.id": "x"}}, r"options: 'transactional.id' is set by KafkaSink itself"),
    ],
)
def test_wrong_sink_is_refused_where_it_is_made(arguments: dict[str, Any], message: str) -> None:
    """As above."""
    with pytest.raises(UsageError, match=message):
        KafkaSink(**{"servers": "kafka1:9092", "topic": "counts", **arguments})
    with pytest.raises(UsageError, match=r"id='a\.b' is not 1 to 100 letters"):
        Transactions("a.b", "/nowhere")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["keys"]}, r"no column 'keys' \(nearest: 'key'\); known: topic, partition, offset, timestamp"),
        ({"columns": "key"}, r"columns='key' is not a list of one or more different names"),
        ({"columns": []}, r"columns=\[\] is not a list"),
        ({"columns": ["key", "key"]}, r"columns=\['key', 'key'\] is not a list"),
        ({"rows": 0}, r"rows=0"),
    ],
)
def test_wrong_columns_are_refused_where_they_are_made(arguments: dict[str, Any], message: str) -> None:
    """As above."""
    with pytest.raises(UsageError, match=message):
        KafkaColumns(KafkaSource("kafka1:9092", "clicks"), **arguments)


def test_source_has_an_end_if_it_is_given_one() -> None:
    """Batch engines refuse the others."""
    day = datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1)))
    assert not KafkaSource("kafka1:9092", "clicks").bounded
    assert KafkaSource(["kafka1:9092", "kafka2:9092"], ["clicks"], start=day, until=day).bounded


def test_partition_that_was_not_found_at_the_start_is_refused() -> None:
    """It has no begin."""
    with pytest.raises(UsageError, match=r"source 'clicks': there is no partition 'clicks-7'"):
        KafkaSource("kafka1:9092", "clicks").open("clicks-7", None, StageContext("clicks"))


def test_option_that_the_client_does_not_know_is_an_error() -> None:
    """The client's own message names it."""
    source = KafkaSource("kafka1:9092", "clicks", options={"no.such.option": 1})
    with pytest.raises(ConnectorError, match=r"no\.such\.option"):
        source.partitions(1)


def test_only_a_marker_of_the_same_submission_counts() -> None:
    """Each submission counts its checkpoints from 1."""
    file = StagedFile(5, "b", 0, Path("unused"))
    assert [is_written(file, marker) for marker in (("b", 4), ("b", 5), ("b", 6), ("a", 9), ("", 0))] == [
        False, True, True, False, False,
    ]  # fmt: skip


def test_file_appears_when_it_is_complete_and_has_what_was_put(tmp_path: Path) -> None:
    """A process that dies in between leaves nothing that looks complete."""
    folder = StagingFolder(tmp_path, "counts", "run", 1)
    records = [Outgoing(b"k", b"v"), Outgoing(None, None), Outgoing(b"", b"")]
    for each in records:
        folder.append(encoded(each))
    assert folder.staged(2) == []
    folder.prepare(12)
    folder.prepare(13)
    (file,) = folder.staged(2)
    assert (file.checkpoint, file.run, file.task, list(map(decoded, file.messages()))) == (12, "run", 1, records)
    other = StagingFolder(tmp_path, "counts", "run", 0)
    assert other.staged(2) == []
    assert other.staged(1) == [file]  # an update has removed task 1
    file.path.write_bytes(file.path.read_bytes()[:-1])
    with pytest.raises(ConnectorError, match=r"staged: the file is cut"):
        list(file.messages())


class Electing:
    """Answers as a client while brokers choose the leader of a partition."""

    def __init__(self, code: int, refusals: int) -> None:
        self._code, self._refusals = code, refusals
        self.asked = 0

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        self.asked += 1
        if self.asked <= self._refusals:
            raise KafkaException(KafkaError(self._code))
        return 0, 7

    def list_topics(self, timeout: float) -> None:
        pass

    def poll(self, timeout: float) -> None:
        pass


def resolve(consumer: Electing) -> None:
    source = KafkaSource("127.0.0.1:1", "clicks", until="latest")
    source._resolve_when_led(cast("Consumer", consumer), TopicPartition("clicks", 0))


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE])
def test_a_partition_whose_leader_is_being_chosen_is_waited_for(code: int) -> None:
    """A topic that was made a moment ago is there, and its broker does not know yet that it leads."""
    consumer = Electing(code, refusals=3)
    resolve(consumer)
    assert consumer.asked == 4


def test_another_refusal_and_a_long_election_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a permission."""
    consumer = Electing(KafkaError.TOPIC_AUTHORIZATION_FAILED, refusals=1)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        resolve(consumer)
    assert consumer.asked == 1
    monkeypatch.setattr(source_module, "TIMEOUT_S", 0.0)
    with pytest.raises(KafkaException, match="NOT_LEADER"):
        resolve(Electing(KafkaError.NOT_LEADER_FOR_PARTITION, refusals=10**9))


class Fetched:
    """A record of a fetch, or an error."""

    def __init__(self, offset: int, code: int | None = None) -> None:
        self._offset, self._error = offset, None if code is None else KafkaError(code)

    def error(self) -> KafkaError | None:
        return self._error

    def offset(self) -> int | None:
        return None if self._error else self._offset

    def timestamp(self) -> tuple[int, int]:
        return 0, 0

    def headers(self) -> None:
        return None

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"x"


class Fetching:
    """A client with these fetches; later ones have all records from the next offset to 5."""

    def __init__(self, fetches: list[list[Fetched]]) -> None:
        self._fetches = fetches
        self._next = 0
        self.assigned: list[int] = []

    def assign(self, places: list[TopicPartition]) -> None:
        self._next = places[0].offset
        self.assigned.append(self._next)

    def consume(self, limit: int, timeout: float) -> list[Fetched]:
        found = self._fetches.pop(0) if self._fetches else [Fetched(offset) for offset in range(self._next, 6)]
        self._next += sum(each.error() is None for each in found)
        return found

    def poll(self, timeout: float) -> None:
        pass

    def get_watermark_offsets(self, partition: TopicPartition, cached: bool) -> tuple[int, int]:
        return 0, 6

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class FakeCluster(Cluster):
    """Makes the clients that it is given, one after the other."""

    consumers: Iterator[object] = field(default_factory=lambda: iter(()))
    producers: Iterator[object] = field(default_factory=lambda: iter(()))
    admins: Iterator[object] = field(default_factory=lambda: iter(()))

    def consumer(self, own: object, refusal: object) -> Any:  # noqa: ANN401  # in place of librdkafka's
        return next(self.consumers)

    def producer(self, own: object, refusal: object) -> Any:  # noqa: ANN401  # as above
        return next(self.producers)

    def admin(self, refusal: object) -> Any:  # noqa: ANN401  # as above
        return next(self.admins)


class SameTopic(TopicWatch):
    """The topic is always the same one."""

    def id_of(self, topic: str, trusted_s: float, wait_s: float) -> str:
        return "id"


def reader_with(client: Fetching) -> PartitionReader:
    cluster = FakeCluster("kafka1:9092", {}, itertools.repeat(client))
    return PartitionReader(cluster, SameTopic(cluster), "clicks", Place("clicks", 0, 0, "id", False, None))


@pytest.mark.parametrize(
    "code", [KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG, KafkaError.TOPIC_AUTHORIZATION_FAILED]
)
def test_records_behind_an_error_of_the_same_fetch_are_not_lost(code: int) -> None:
    """The client would go on behind them."""
    fetch = [Fetched(0), Fetched(1), Fetched(0, code), Fetched(2), Fetched(3)]
    client = Fetching([fetch])
    reader = reader_with(client)
    read = [[record.offset for record in reader.read(10) or ()] for _ in range(2)]
    assert read == [[0, 1], [2, 3, 4, 5]]
    assert client.assigned == [0, 2]


def test_error_that_stays_is_raised_and_loses_nothing() -> None:
    """The pipeline says it, and goes on at the same record when it is mended."""
    broken = Fetched(0, KafkaError._BAD_MSG)
    client = Fetching([[Fetched(0), broken, Fetched(1)], [broken, Fetched(1)]])
    reader = reader_with(client)
    assert [record.offset for record in reader.read(10) or ()] == [0]
    with pytest.raises(ConnectorError, match="_BAD_MSG"):
        reader.read(10)
    assert reader.position == ("id", 1)
    assert [record.offset for record in reader.read(10) or ()] == [1, 2, 3, 4, 5]


class Hanging:
    """A producer whose call for the marker never returns; also the consumer of its group."""

    def __init__(self) -> None:
        self.called, self.ended = threading.Event(), threading.Event()
        self.committed_transactions = 0

    def init_transactions(self, timeout: float) -> None:
        pass

    def begin_transaction(self) -> None:
        pass

    def produce(self, *arguments: object, **named: object) -> None:
        pass

    def send_offsets_to_transaction(self, marks: object, members: object, timeout: float) -> None:
        self.called.set()
        self.ended.wait()

    def commit_transaction(self, timeout: float) -> None:
        self.committed_transactions += 1

    def purge(self) -> None:
        pass

    def poll(self, timeout: float) -> None:
        pass

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return places

    def consumer_group_metadata(self) -> None:
        return None

    def close(self) -> None:
        pass


def test_call_that_ignores_its_timeout_ends_the_commit_and_the_next_one_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task must not wait for ever for a client that has lost the answer of a killed broker."""
    monkeypatch.setattr(transactions, "TIMEOUT_S", 0.05)
    monkeypatch.setattr(transactions, "_LATE_S", 0.05)
    folder = StagingFolder(tmp_path, "counts", "run", 0)
    folder.append(encoded(Outgoing(None, b"x")))
    folder.prepare(1)
    (file,) = folder.staged(1)
    first, second = Hanging(), Hanging()
    second.ended.set()
    cluster = FakeCluster("kafka1:9092", {}, iter((Hanging(), Hanging())), iter((first, second)))
    writer = TransactionWriter(cluster, "counts", "counts", 0, 60_000)
    try:
        with pytest.raises(UnreachableError, match=r"transactional id 'counts\.0': .*_TIMED_OUT"):
            writer.write(file)
        assert first.called.is_set()
        writer.write(file)
    finally:
        first.ended.set()
    assert (first.committed_transactions, second.committed_transactions) == (0, 1)


class Asked:
    """An administrator's client that keeps the questions."""

    def __init__(self) -> None:
        self.questions: list[list[int]] = []
        self.answers: list[Future[SimpleNamespace]] = []
        self.is_away = False

    def list_offsets(self, places: dict[TopicPartition, object], **named: object) -> dict[TopicPartition, object]:
        self.questions.append(sorted(each.partition for each in places))
        answers = {each: Future[SimpleNamespace]() for each in places}
        for each, answer in answers.items():
            self.answers.append(answer)
            if not self.is_away:
                answer.set_result(SimpleNamespace(offset=10 * len(self.questions) + each.partition))
        return dict(answers)


def test_one_question_is_for_all_partitions_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task waits for it; a question for each of a hundred partitions would hold up its records."""
    monkeypatch.setattr(topic_watch, "_END_S", 0.0)
    client = Asked()
    watch = TopicWatch(FakeCluster("kafka1:9092", {}, admins=itertools.repeat(client)))
    readers = [object() for _ in range(3)]
    for number, reader in enumerate(readers):
        watch.use(reader, "clicks", number)

    def ends() -> list[int | None]:
        return [watch.end_of("clicks", number, committed=True) for number in range(3)]

    assert [ends(), ends()] == [[10, 11, 12], [20, 21, 22]]
    assert client.questions == [[0, 1, 2]] * 2
    client.is_away = True
    assert [ends(), ends()] == [[None] * 3] * 2
    assert len(client.questions) == 3
    for each in client.answers:
        if not each.done():
            each.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    client.is_away = False
    assert ends() == [40, 41, 42]


def test_an_answer_that_was_late_serves_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that always takes longer than a call waits would else have no backlog."""
    monkeypatch.setattr(topic_watch, "_END_S", 0.0)
    client = Asked()
    watch = TopicWatch(FakeCluster("kafka1:9092", {}, admins=itertools.repeat(client)))
    client.is_away = True
    for offset in (7, 8):
        assert watch.end_of("clicks", 0, committed=True) is None
        client.answers[-1].set_result(SimpleNamespace(offset=offset))
        assert watch.end_of("clicks", 0, committed=True) == offset


def often(seconds: object) -> dict[str, object]:
    return {_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE, _INTERVAL: seconds}


@pytest.mark.parametrize(
    ("options", "config", "message"),
    [
        (
            {"transaction.timeout.ms": 9_000},
            often(10),
            r"\.ms is 9000 ms, and topology\..* is 10 s\. .* 10000",
        ),
        ({"transaction.timeout.ms": "9000"}, often(10.0), r"at least 10000"),
        ({"transaction.timeout.ms": 60_000}, {_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE}, r"seconds is 300 s"),
        (
            {"transaction.timeout.ms": 9_000},
            {_MODE: TopologyReliabilityMode.ATLEAST_ONCE, _INTERVAL: 10},
            r"at least 10000",
        ),
        ({}, often(1800), r"timeout\.ms is 900000 ms, and .* is 1800 s"),
    ],
)
def test_transactions_that_are_shorter_than_the_interval_of_checkpoints_are_refused_before_the_start(
    options: dict[str, Any], config: dict[str, object], message: str
) -> None:
    """The broker would abort what a busy pipeline writes after its checkpoint, again and again."""
    sink: KafkaSink[str] = KafkaSink("k:1", "counts", transactions=Transactions("a", "/nowhere"), options=options)
    with pytest.raises(UsageError, match=message):
        sink.check(config)
    builder = Builder()
    builder.new_source(Items(["x"])).to_sink(sink)
    with pytest.raises(UsageError, match=message):
        compile_topology("counts", builder.graph(), config)


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({}, often(10)),
        ({}, often(900)),
        ({"transaction.timeout.ms": 10_000}, often(10)),
        ({"transaction.timeout.ms": 1_800_000}, often(1800)),
        ({"transaction.timeout.ms": 9_000}, {}),
        ({"transaction.timeout.ms": 9_000}, {_MODE: TopologyReliabilityMode.ATLEAST_ONCE}),
    ],
)
def test_other_timeouts_are_the_authors_choice(options: dict[str, Any], config: dict[str, object]) -> None:
    """Without checkpoints there is one transaction, at the end of the input."""
    sink: KafkaSink[str] = KafkaSink("k:1", "counts", transactions=Transactions("a", "/nowhere"), options=options)
    sink.check(config)


def test_no_text_has_an_option() -> None:
    """An option may be a password, and texts go to logs and errors."""
    secret = {"sasl.password": "not-to-be-seen", "no.such.option": "neither-is-this"}
    source = KafkaSource("kafka1:9092", "clicks", options=secret)
    assert "not-to-be-seen" not in repr(source._cluster)
    with pytest.raises(ConnectorError) as caught:
        source.partitions(1)
    assert "not-to-be-seen" not in "".join(traceback.format_exception(caught.value))


def test_files_of_an_older_version_are_read() -> None:
    """They wait for their checkpoint while the connector is updated; their records had neither headers nor times."""
    old = msgspec.msgpack.encode([b"k", b"v"])
    assert msgspec.msgpack.decode(old, type=Outgoing) == Outgoing(b"k", b"v")
