"""Writing to topics of a real server: each result once, whatever dies, or at once and never lost."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from heron.api import TopologyReliabilityMode
from heron.errors import ConnectorError, UnreachableError, UserCodeError
from heron_connector_kafka import KafkaSink, KafkaSource, NewRecord, Transactions, cluster, immediate, transactions
from heron_connector_kafka.cluster import Cluster
from heron_connector_kafka.immediate import ImmediateWriter
from heron_connector_kafka.outgoing import Outgoing, encoded
from heron_connector_kafka.transactions import TransactionWriter
from heron_streamlet.connectors.staging import StagingFolder
from heron_streamlet.connectors.transformer import StageContext
from heron_testing.waiting import wait_until
from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics

PROGRAM = Path(__file__).with_name("dying_sink.py")
INSTANTS = (
    "before-prepare",
    "in-prepare",
    "after-prepare",
    "before-commit",
    "before-begin_transaction",
    "after-begin_transaction",
    "in-produce",
    "before-send_offsets_to_transaction",
    "after-send_offsets_to_transaction",
    "after-commit_transaction",
    "after-commit",
)
RUN_S = 60.0
Sinks = Callable[..., KafkaSink[object]]


@pytest.fixture
def topics(kafka: KafkaServer) -> Topics:
    kafka.start()
    return Topics(kafka.address)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Sinks]:
    """Starts copies of sinks, as tasks do; they are closed with the test."""
    sinks: list[KafkaSink[object]] = []

    def start(sink: KafkaSink[object], task: int = 0, tasks: int = 1) -> KafkaSink[object]:
        copy: KafkaSink[object] = pickle.loads(pickle.dumps(sink))
        copy.setup(StageContext("counts", task, tasks))
        sinks.append(copy)
        return copy

    yield start
    for each in sinks:
        each.close()


def exact(kafka: KafkaServer, topic: str, folder: Path) -> KafkaSink[object]:
    return KafkaSink(kafka.address, topic, value=str, transactions=Transactions("counts", folder / "staged"))


def put(sink: KafkaSink[object], *elements: object) -> None:
    for each in elements:
        sink.put(each)


def run(kafka: KafkaServer, topic: str, folder: Path, instant: str = "") -> int:
    command = [sys.executable, str(PROGRAM), kafka.address, topic, str(folder), instant]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
    return ended.returncode


@pytest.mark.parametrize("instant", INSTANTS)
def test_each_result_is_there_once_whenever_the_task_is_killed(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, instant: str
) -> None:
    """The instants are all calls that change a file or the cluster; two deaths in a row change nothing either."""
    topic = topics.make()
    assert run(kafka, topic, tmp_path, instant) == -signal.SIGKILL
    run(kafka, topic, tmp_path, instant)
    assert run(kafka, topic, tmp_path) == 0
    assert topics.values(topic) == [str(number) for number in range(30)]
    assert list((tmp_path / "s").iterdir()) == []


def test_results_are_visible_with_their_checkpoint_and_newer_ones_are_discarded(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks
) -> None:
    """A restore begins again behind its checkpoint, so what came later comes again."""
    topic = topics.make()
    sink = started(exact(kafka, topic, tmp_path))
    sink.restore(0)
    put(sink, 1, 2)
    sink.prepare(1)
    put(sink, 3)
    sink.prepare(2)
    put(sink, 4)
    assert topics.values(topic, "read_uncommitted") == []
    sink.commit(1)
    assert topics.values(topic) == ["1", "2"]
    sink.restore(1)
    sink.commit(2)
    assert topics.values(topic) == ["1", "2"]
    put(sink, 3)
    sink.prepare(2)
    sink.commit(2)
    sink.commit(2)
    assert topics.values(topic) == ["1", "2", "3"]


def test_new_submission_counts_its_checkpoints_from_the_begin(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks
) -> None:
    """The marker of an earlier submission has a greater number; it must not hide new results."""
    topic = topics.make()
    former = started(exact(kafka, topic, tmp_path))
    for checkpoint in (1, 2, 3):
        put(former, f"old {checkpoint}")
        former.prepare(checkpoint)
        former.commit(checkpoint)
    put(former, "never complete")
    former.prepare(4)
    given = exact(kafka, topic, tmp_path)
    killed = started(given)
    killed.restore(0)
    put(killed, "new 1")
    killed.prepare(1)
    restarted = started(given)
    restarted.restore(1)
    restarted.restore(1)
    assert topics.values(topic) == ["old 1", "old 2", "old 3", "new 1"]


def test_batch_that_begins_again_after_its_commit_writes_nothing_again(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks
) -> None:
    """A batch job has no checkpoint to go on from; killed after the commit, it computes everything once more."""
    topic = topics.make()
    given = exact(kafka, topic, tmp_path)
    for _ in range(2):
        sink = started(given)
        sink.restore(0)
        put(sink, 1, 2)
        sink.prepare(1)
        sink.commit(1)
    assert topics.values(topic) == ["1", "2"]


def test_task_zero_writes_what_tasks_that_an_update_removed_have_left(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks
) -> None:
    """Their checkpoint is complete, so their results belong to the output."""
    topic = topics.make()
    given = exact(kafka, topic, tmp_path)
    for task in range(3):
        sink = started(given, task, 3)
        put(sink, task)
        sink.prepare(1)
    started(given, 0, 1).restore(1)
    assert sorted(topics.values(topic)) == ["0", "1", "2"]


def test_older_process_of_a_task_is_refused_and_writes_nothing_twice(
    kafka: KafkaServer, topics: Topics, tmp_path: Path
) -> None:
    """A process that the engine has given up may wake up in the middle of its commit."""
    topic = topics.make()
    folder = StagingFolder(tmp_path, "counts", "run", 0)
    for checkpoint in (1, 2):
        folder.append(encoded(Outgoing(None, str(checkpoint).encode())))
        folder.prepare(checkpoint)
    first, second = folder.staged(1)
    brokers = Cluster(kafka.address, {})
    old, new = (TransactionWriter(brokers, topic, "counts", 0, 60_000) for _ in range(2))
    try:
        old.write(first)
        new.write(second)
        with pytest.raises(ConnectorError, match=r"transactional id 'counts\.0': .*FENCED"):
            old.write(second)
        old.write(second)  # it has the transactional id again, and sees the marker
        with pytest.raises(ConnectorError, match="FENCED"):
            new.write(replace(second, checkpoint=3))
    finally:
        old.close()
        new.close()
    assert topics.values(topic) == ["1", "2"]


def test_commit_waits_for_a_cluster_that_is_away(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results stay on disk meanwhile; a restore does not fail, or the task would be given up."""
    monkeypatch.setattr(transactions, "TIMEOUT_S", 3.0)
    topic = topics.make(flush_messages="1")
    given = exact(kafka, topic, tmp_path)
    sink = started(given)
    put(sink, 1)
    sink.prepare(1)
    sink.commit(1)
    put(sink, 2)
    sink.prepare(2)
    kafka.kill()
    with pytest.raises(UnreachableError, match=topic):
        sink.commit(2)
    restarted = started(given)
    restarted.restore(2)
    kafka.start()
    monkeypatch.undo()
    put(restarted, 3)
    restarted.prepare(3)
    restarted.commit(3)
    assert topics.values(topic) == ["1", "2", "3"]


def test_broker_that_dies_in_a_transaction_and_comes_back_stops_no_commit_for_ever(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka may wait without end for the answer to a marker. The commit fails instead, and a later one writes."""
    monkeypatch.setattr(transactions, "TIMEOUT_S", 3.0)
    topic = topics.make(flush_messages="1")
    died = threading.Event()

    class DyingBrokerProducer(Producer):
        def send_offsets_to_transaction(self, *arguments: Any) -> None:  # noqa: ANN401  # handed on
            if not died.is_set():
                kafka.kill()
                died.set()
            super().send_offsets_to_transaction(*arguments)

    monkeypatch.setattr(cluster, "Producer", DyingBrokerProducer)
    sink = started(exact(kafka, topic, tmp_path))
    put(sink, 1)
    sink.prepare(1)
    failures: list[UnreachableError] = []

    def committed() -> bool:
        try:
            sink.commit(1)
        except UnreachableError as error:
            failures.append(error)
            return False
        return True

    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(wait_until, committed, 2 * RUN_S, "the commit")
        assert died.wait(RUN_S)
        kafka.start()  # a server ends with the thread that has started it
        commit.result()
    assert topics.values(topic) == ["1"]
    assert "transactional id" in str(failures)


def test_without_transactions_records_are_written_at_once_and_survive_a_dead_broker(
    kafka: KafkaServer, topics: Topics, started: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint fails until the cluster has what was put before it; nothing is given up meanwhile."""
    monkeypatch.setattr(immediate, "TIMEOUT_S", 2.0)
    topic = topics.make(flush_messages="1")
    sink = started(KafkaSink(kafka.address, topic, options={"message.timeout.ms": 1500}))
    put(sink, "a", b"b")
    sink.prepare(1)
    assert topics.values(topic) == ["a", "b"]
    kafka.kill()
    put(sink, "c")
    for _ in range(2):  # the second time after the client itself has given up
        with pytest.raises(UnreachableError, match=r"1 records wait"):
            sink.prepare(2)
    kafka.start()
    monkeypatch.undo()
    sink.prepare(2)
    assert topics.values(topic) == ["a", "b", "c"]


def test_record_that_was_not_delivered_is_kept_as_it_was() -> None:
    """The client's report has key and value, where empty is not the same as none, and no headers."""
    options = {"message.timeout.ms": 100}
    writer = ImmediateWriter(Cluster("127.0.0.1:1", options), "counts")
    records = [Outgoing(b"k", b"v"), Outgoing(None, None), Outgoing(b"", b""), Outgoing(None, b"h", (("x", None),), 7)]
    for each in records:
        writer.append(each.key, each.value, each.headers, each.timestamp_ms)
    writer.append_all([b"row", None], [None, b"row"])
    assert writer._producer is not None
    writer._producer.flush(RUN_S)
    assert sorted(writer._failed, key=repr) == sorted(
        [*records, Outgoing(b"row", None), Outgoing(None, b"row")], key=repr
    )


@pytest.mark.usefixtures("topics")
def test_missing_topic_is_an_error_that_names_it(
    kafka: KafkaServer, tmp_path: Path, started: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The author sees the wrong name, and not a commit that never ends."""
    monkeypatch.setattr(transactions, "TIMEOUT_S", 3.0)
    sink = started(exact(kafka, "no-such-topic", tmp_path))
    put(sink, 1)
    sink.prepare(1)
    with pytest.raises((ConnectorError, UnreachableError), match=r"topic 'no-such-topic'"):
        sink.commit(1)


def test_keys_are_placed_as_javas_producers_place_them(kafka: KafkaServer, topics: Topics, started: Sinks) -> None:
    """Joins in Kafka Streams need the same key in the same partition, whoever has written it. Values from Java."""
    topic = topics.make(partitions=10)
    sink = started(KafkaSink(kafka.address, topic, key=str))
    put(sink, "21", "foobar", "a-little-bit-long-string")
    sink.prepare(1)
    places = [value for key, value in topics.pairs(topic)]
    wanted = sorted(
        ["21", "foobar", "a-little-bit-long-string"],
        key=lambda text: (
            {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}[text] % (1 << 31) % 10
        ),
    )
    assert places == wanted


def test_values_that_cannot_be_records_fail_alone(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks
) -> None:
    """A record that can never be written must not stop every later commit."""
    topic = topics.make()
    sink = started(KafkaSink(kafka.address, topic, transactions=Transactions("counts", tmp_path)))
    with pytest.raises(UserCodeError, match=r"sink 'counts': the value 7 is neither text nor bytes"):
        sink.put(7)
    with pytest.raises(UserCodeError, match=r"a record of 1000000 bytes is larger than 999900; raise message\.max"):
        sink.put("x" * 1_000_000)
    put(sink, "x" * 999_900, "y")
    sink.prepare(1)
    sink.commit(1)
    assert [len(value) for value in topics.values(topic)] == [999_900, 1]


@pytest.mark.parametrize("exactly", [False, True])
def test_records_have_the_headers_and_the_time_that_the_author_gives(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks, exactly: bool
) -> None:
    """A pipeline that reads the topic finds the event time there, and tools find their headers."""
    topic = topics.make()
    transactions = Transactions("headers", tmp_path) if exactly else None
    sink = started(KafkaSink(kafka.address, topic, transactions=transactions))
    sink.put(NewRecord("full", "key", (("trace", b"\x01"), ("trace", "two"), ("empty", None)), 1_700_000_000.25))
    sink.put(NewRecord(None, key=b"gone"))
    sink.put("plain")
    sink.prepare(1)
    sink.commit(1)
    full, gone, plain = topics.messages(topic)
    assert (full.key(), full.value()) == (b"key", b"full")
    assert full.headers() == [("trace", b"\x01"), ("trace", b"two"), ("empty", None)]
    assert full.timestamp()[1] == 1_700_000_000_250
    assert (gone.key(), gone.value(), gone.headers()) == (b"gone", None, None)
    assert (plain.key(), plain.value()) == (None, b"plain")
    assert gone.timestamp()[1] > 1_700_000_000_250  # of now
    read = KafkaSource(kafka.address, topic).open(f"{topic}-0", 0, StageContext("records"))
    try:
        first = next(iter(read.read(1) or ()))
    finally:
        read.close()
    assert (first.timestamp_s, first.headers[1]) == (1_700_000_000.25, ("trace", b"two"))


@pytest.mark.parametrize("time_s", [0.0, -1.0, 1.7e12, float("nan")])
def test_wrong_time_fails_alone(kafka: KafkaServer, topics: Topics, started: Sinks, time_s: float) -> None:
    """Milliseconds are the usual mistake."""
    sink = started(KafkaSink(kafka.address, topics.make()))
    with pytest.raises(UserCodeError, match=r"is not above 0 and below 100,000,000,000 s since 1970"):
        sink.put(NewRecord("x", timestamp_s=time_s))


def test_timeout_of_transactions_that_the_brokers_do_not_allow_is_an_error_with_its_remedy(
    kafka: KafkaServer, topics: Topics, tmp_path: Path, started: Sinks
) -> None:
    """It is found by the first commit. The results wait."""
    topic = topics.make()
    transactions = Transactions("slow", tmp_path)
    options = {"transaction.timeout.ms": 900_001}
    sink = started(KafkaSink(kafka.address, topic, transactions=transactions, options=options))
    put(sink, "x")
    sink.prepare(1)
    with pytest.raises(ConnectorError, match=r"transaction\.max\.timeout\.ms is shorter: raise it"):
        sink.commit(1)


def test_transaction_lasts_as_long_as_checkpoints_are_apart(kafka: KafkaServer, topics: Topics, tmp_path: Path) -> None:
    """librdkafka's own timeout of a minute is for producers that write all the time."""
    topic = topics.make()
    sink: KafkaSink[object] = KafkaSink(kafka.address, topic, transactions=Transactions("long", tmp_path))
    seen: list[object] = []

    class SeenProducer(Producer):
        def __init__(self, config: dict[str, object], **named: object) -> None:
            seen.append(config["transaction.timeout.ms"])
            super().__init__(config, **named)

    mode = TopologyReliabilityMode.EFFECTIVELY_ONCE
    sink.check({"topology.reliability.mode": mode, "topology.stateful.checkpoint.interval.seconds": 120.0})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cluster, "Producer", SeenProducer)
        sink.setup(StageContext("counts"))
        sink.put("x")
        sink.prepare(1)
        sink.commit(1)
        sink.close()
    assert seen == [120_000]
    assert topics.values(topic) == ["x"]
