"""Reading topics of a real server: every position, gaps, retention, a broker that dies, refusals."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicCollection

from heron.clock import monotonic_s
from heron.errors import ConnectorError, UsageError
from heron_connector_kafka import KafkaSink, KafkaSource, Record, Transactions
from heron_connector_kafka import reader as reader_module
from heron_connector_kafka.cluster import Cluster
from heron_connector_kafka.topic_watch import TopicWatch
from heron_streamlet.connectors.sources import MeasuredReader, PlacedReader, Reader
from heron_streamlet.connectors.transformer import StageContext
from heron_testing.waiting import Eventually
from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics

CONTEXT = StageContext("clicks")
READ_S = 60.0


@pytest.fixture
def topics(kafka: KafkaServer) -> Topics:
    kafka.start()
    return Topics(kafka.address)


@pytest.fixture
def opened() -> Iterator[Callable[..., Reader[Record]]]:
    """Opens readers, which end with the test."""
    readers: list[Reader[Record]] = []

    def open_reader(source: KafkaSource, name: str, position: object = None) -> Reader[Record]:
        copy: KafkaSource = pickle.loads(pickle.dumps(source))
        reader = copy.open(name, position, CONTEXT)
        readers.append(reader)
        return reader

    yield open_reader
    for reader in readers:
        reader.close()


Opened = Callable[..., Reader[Record]]


def texts(records: Sequence[Record]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def read(reader: Reader[Record], count: int | None = None, limit: int = 7) -> list[str]:
    """Read so many elements, or to the end of the partition."""
    found: list[str] = []
    until_s = monotonic_s() + READ_S
    while count is None or len(found) < count:
        assert monotonic_s() < until_s, found
        elements = reader.read(limit if count is None else min(limit, count - len(found)))
        if elements is None:
            assert count is None, found
            return found
        found += texts(elements)
    return found


def test_each_partition_is_read_in_its_order_with_all_that_a_record_has(
    kafka: KafkaServer, topics: Topics, opened: Opened
) -> None:
    """Lateness depends on the order in a partition, and authors on key, time and place."""
    topic = topics.make(partitions=2)
    topics.fill(topic, range(30), keyed=True)
    topics.fill(topic, range(100, 110), partition=1)
    source = KafkaSource(kafka.address, topic, until="latest")
    names = source.partitions(1)
    assert names == [f"{topic}-0", f"{topic}-1"]
    assert source.bounded
    assert read(opened(source, names[0])) == [str(number) for number in range(30)]
    assert read(opened(source, names[1])) == [str(number) for number in range(100, 110)]
    first = (opened(source, names[0]).read(1) or [])[0]
    assert (first.topic, first.partition, first.offset, first.key, first.value) == (topic, 0, 0, b"0", b"0")
    assert first.timestamp_s > 1_700_000_000


def test_reading_again_from_each_position_gives_the_rest(kafka: KafkaServer, topics: Topics, opened: Opened) -> None:
    """A checkpoint may be at any element, also at one beside a gap: exactly once depends on it."""
    topic = topics.make()
    topics.fill(topic, ["a", "b"])
    topics.transaction(topic, ["c", "d"])
    topics.transaction(topic, ["lost"], commit=False)
    topics.transaction(topic, ["e"])
    topics.transaction(topic, ["lost"], commit=False)
    source = KafkaSource(kafka.address, topic, until="latest")
    (name,) = source.partitions(1)
    everything = ["a", "b", "c", "d", "e"]
    for done in range(len(everything) + 1):
        reader = opened(source, name)
        assert read(reader, done, limit=2) == everything[:done]
        assert read(opened(source, name, reader.position)) == everything[done:]
    reader = opened(source, name)
    records = reader.read(10) or ()
    assert isinstance(reader, PlacedReader)
    for index in range(len(records)):
        assert read(opened(source, name, reader.position_of(index))) == everything[index:]


def test_uncommitted_records_are_read_if_the_options_say_so(kafka: KafkaServer, topics: Topics, opened: Opened) -> None:
    """The option of the client is the author's choice."""
    topic = topics.make()
    topics.transaction(topic, ["x"], commit=False)
    source = KafkaSource(kafka.address, topic, until="latest", options={"isolation.level": "read_uncommitted"})
    (name,) = source.partitions(1)
    assert read(opened(source, name)) == ["x"]


def test_compacted_topic_is_read_over_its_gaps(
    kafka: KafkaServer, topics: Topics, opened: Opened, eventually: Eventually
) -> None:
    """Compaction removes records behind a position; nothing that is left may be skipped or read twice."""
    topic = topics.make(
        cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="200"
    )
    topics.fill(topic, ["k", "k", "k", "m", "k", "m", "n"], keyed=True)
    source = KafkaSource(kafka.address, topic, until="latest")
    (name,) = source.partitions(1)
    reader = opened(source, name)
    records = reader.read(4) or ()
    assert isinstance(reader, PlacedReader)
    assert texts(records) == ["k", "k", "k", "m"]
    place = reader.position_of(1)

    def compacted() -> bool:
        topics.fill(topic, ["z"], keyed=True)  # the active segment is never compacted
        return len([value for value in topics.values(topic) if value != "z"]) == 3

    eventually(compacted, READ_S)
    assert read(opened(source, name, place)) == ["k", "m", "n"]
    assert read(opened(source, name, reader.position)) == ["k", "m", "n"]


def test_partition_without_an_end_says_that_there_is_nothing_now(
    kafka: KafkaServer, topics: Topics, opened: Opened
) -> None:
    """An empty read means that everything is read: a query that reads what is available ends then."""
    topic = topics.make()
    topics.fill(topic, range(10))
    source = KafkaSource(kafka.address, topic)
    (name,) = source.partitions(1)
    assert not source.bounded
    reader = opened(source, name)
    found: list[str] = []
    while elements := reader.read(3):
        found += texts(elements)
    assert found == [str(number) for number in range(10)]
    topics.fill(topic, ["more"])
    assert read(reader, 1) == ["more"]


def test_start_and_end_are_found_when_the_pipeline_starts(kafka: KafkaServer, topics: Topics, opened: Opened) -> None:
    """A task that starts again before its first checkpoint has to read what the first one read."""
    topic = topics.make()
    topics.fill(topic, ["old"])
    latest = KafkaSource(kafka.address, topic, start="latest")
    history = KafkaSource(kafka.address, topic, until="latest")
    (name,) = latest.partitions(1)
    history.partitions(1)
    topics.fill(topic, ["new"])
    assert read(opened(latest, name), 1) == ["new"]
    assert read(opened(latest, name), 1) == ["new"]
    assert read(opened(history, name)) == ["old"]


def test_times_choose_the_first_record_that_is_not_older(kafka: KafkaServer, topics: Topics, opened: Opened) -> None:
    """A batch over a day reads the records of that day."""
    topic = topics.make()
    topics.fill(topic, range(3))
    (name,) = KafkaSource(kafka.address, topic).partitions(1)
    first = (opened(KafkaSource(kafka.address, topic), name, 0).read(1) or [])[0]
    before, after = first.timestamp_s - 1, first.timestamp_s + 3600
    for start, until, wanted in ((before, after, ["0", "1", "2"]), (after, after, []), (before, before, [])):
        source = KafkaSource(kafka.address, topic, start=start, until=until)
        source.partitions(1)
        assert read(opened(source, name)) == wanted


def test_offset_that_retention_removed_is_an_error_with_range_and_remedy(
    kafka: KafkaServer, topics: Topics, opened: Opened, eventually: Eventually
) -> None:
    """Going on at the earliest or latest record would lose data without a word."""
    topic = topics.make(retention_ms="1000", segment_bytes="1048576", segment_ms="100")
    topics.fill(topic, range(5))
    source = KafkaSource(kafka.address, topic)
    (name,) = source.partitions(1)
    eventually(lambda: topics.low(topic) > 2, READ_S)
    reader = opened(source, name, 2)
    for _ in range(2):  # each call says it
        with pytest.raises(ConnectorError) as caught:
            read(reader, 1)
        low = topics.low(topic)
        assert f"topic {topic!r}, partition 0: offset 2 is out of range: the topic has {low} to" in str(caught.value)
        assert "retention.ms" in str(caught.value)
        assert reader.position == (topic_id(topics, topic), 2)


def test_offset_behind_the_end_is_an_error(kafka: KafkaServer, topics: Topics, opened: Opened) -> None:
    """The topic was created again: its offsets mean other records."""
    topic = topics.make()
    topics.fill(topic, range(5))
    with pytest.raises(ConnectorError, match=r"offset 9 is out of range: the topic has 0 to 5; was it created again"):
        read(opened(KafkaSource(kafka.address, topic), f"{topic}-0", 9), 1)


def test_killed_broker_interrupts_reading_and_loses_nothing(kafka: KafkaServer, topics: Topics, opened: Opened) -> None:
    """A cluster that is away for a while is no failure of the pipeline."""
    topic = topics.make(flush_messages="1")
    topics.fill(topic, range(1000))
    source = KafkaSource(kafka.address, topic)
    (name,) = source.partitions(1)
    reader = opened(source, name)
    found = read(reader, 5)
    kafka.kill()
    while elements := reader.read(100):  # what the client has already fetched
        found += texts(elements)
    assert reader.read(100) == []
    kafka.start()
    topics.fill(topic, range(1000, 1010))
    found += read(reader, 1010 - len(found))
    assert found == [str(number) for number in range(1010)]


def test_missing_topic_is_refused_with_the_nearest(kafka: KafkaServer, topics: Topics) -> None:
    """A misspelt name must not wait for ever, and must not create a topic."""
    topic = topics.make()
    with pytest.raises(UsageError, match=rf"there is no topic '{topic}x' \(nearest: '{topic}'\); known: "):
        KafkaSource(kafka.address, f"{topic}x").partitions(1)


def test_topic_that_is_deleted_is_an_error(kafka: KafkaServer, topics: Topics, opened: Opened) -> None:
    """The pipeline would read nothing for ever."""
    topic = topics.make()
    topics.fill(topic, range(3))
    source = KafkaSource(kafka.address, topic)
    (name,) = source.partitions(1)
    topics.remove(topic)
    with pytest.raises(ConnectorError, match=rf"topic {topic!r}, partition 0: .*create the topic"):
        read(opened(source, name), 1)


@pytest.mark.parametrize("refilled", [3, 9])
def test_topic_that_is_created_again_is_an_error_with_both_ids(
    kafka: KafkaServer, topics: Topics, opened: Opened, monkeypatch: pytest.MonkeyPatch, refilled: int
) -> None:
    """The client itself goes on at the old offset, without a word, if the new topic has reached it."""
    monkeypatch.setattr(reader_module, "_TRUSTED_S", 0.0)
    topic = topics.make()
    topics.fill(topic, range(5))
    source = KafkaSource(kafka.address, topic)
    (name,) = source.partitions(1)
    reader = opened(source, name)
    assert read(reader, 5) == ["0", "1", "2", "3", "4"]
    old = topic_id(topics, topic)
    position = reader.position
    topics.make_again(topic)
    topics.fill(topic, [f"new {number}" for number in range(refilled)])
    for each in (reader, opened(source, name, position)):  # in a task that runs, and in one that is restored
        with pytest.raises(ConnectorError) as caught:
            read(each, 1)
        new = topic_id(topics, topic)
        both = f"offset 5 belongs to the topic with id {old}, and the topic of this name has id {new} now"
        assert both in str(caught.value)
        assert 'recreated="continue"' in str(caught.value)
        assert each.position == (old, 5)


@pytest.mark.parametrize("refilled", [3, 9])
def test_topic_that_is_created_again_is_read_from_its_begin_if_the_author_says_so(
    kafka: KafkaServer, topics: Topics, opened: Opened, monkeypatch: pytest.MonkeyPatch, refilled: int
) -> None:
    """No record of the new topic is lost, and none is read twice."""
    monkeypatch.setattr(reader_module, "_TRUSTED_S", 0.0)
    topic = topics.make()
    topics.fill(topic, range(5))
    source = KafkaSource(kafka.address, topic, start="latest", recreated="continue")
    (name,) = source.partitions(1)
    reader = opened(source, name, 0)
    read(reader, 5)
    position = reader.position
    topics.make_again(topic)
    new = [f"new {number}" for number in range(refilled)]
    topics.fill(topic, new)
    for each in (reader, opened(source, name, position)):
        assert read(each, refilled, limit=2) == new
        assert each.position == (topic_id(topics, topic), refilled)
    again = opened(source, name, reader.position)
    topics.fill(topic, ["more"])
    assert read(again, 1) == ["more"]


def test_backlog_is_what_a_consumer_could_read(
    kafka: KafkaServer, topics: Topics, opened: Opened, eventually: Eventually
) -> None:
    """The health manager sizes the topology by it."""
    topic = topics.make(flush_messages="1")
    topics.fill(topic, range(10))
    source = KafkaSource(kafka.address, topic)
    (name,) = source.partitions(1)
    reader = opened(source, name)
    assert isinstance(reader, MeasuredReader)
    assert reader.backlog() is None  # the first offset is not known
    read(reader, 4)
    eventually(lambda: reader.backlog() == 6, READ_S)  # the client connects with the first question
    topics.fill(topic, range(5))
    assert reader.backlog() == 11
    read(reader, 11)
    assert reader.backlog() == 0
    bounded = KafkaSource(kafka.address, topic, until="latest")
    bounded.partitions(1)
    topics.fill(topic, range(5))
    end = opened(bounded, name, 12)
    assert isinstance(end, MeasuredReader)
    assert end.backlog() == 3
    kafka.kill()
    assert reader.backlog() is None
    kafka.start()
    eventually(lambda: reader.backlog() == 5, READ_S)


def test_another_consumer_of_the_same_group_takes_no_partition_away(
    kafka: KafkaServer, topics: Topics, opened: Opened
) -> None:
    """The engine assigns partitions to tasks. A rebalance of the group must not move them."""
    topic = topics.make()
    topics.fill(topic, range(20))
    source = KafkaSource(kafka.address, topic, options={"group.id": "shared"})
    (name,) = source.partitions(1)
    reader = opened(source, name)
    assert read(reader, 5) == [str(number) for number in range(5)]
    other = Consumer({"bootstrap.servers": kafka.address, "group.id": "shared", "auto.offset.reset": "earliest"})
    try:
        other.subscribe([topic])
        first = other.poll(READ_S)  # it has joined the group, and has the partition
        assert first is not None
        assert first.value() == b"0"
        assert read(reader, 15) == [str(number) for number in range(5, 20)]
    finally:
        other.close()  # it leaves, which is a rebalance too
    topics.fill(topic, ["more"])
    assert read(reader, 1) == ["more"]


def topic_id(topics: Topics, topic: str) -> str:
    admin = topics.admin()
    return str(admin.describe_topics(TopicCollection([topic]))[topic].result(READ_S).topic_id)


SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": KafkaServer.user}


def test_password_comes_from_a_function_and_a_wrong_one_is_refused(
    kafka: KafkaServer, topics: Topics, opened: Opened
) -> None:
    """A password need not be in the topology, and a wrong one must not look like a broker that is away."""
    topic = topics.make()
    topics.fill(topic, ["x"])
    source = KafkaSource(kafka.sasl_address, topic, until="latest", options=right_password)
    (name,) = source.partitions(1)
    assert read(opened(source, name)) == ["x"]
    wrong = KafkaSource(kafka.sasl_address, topic, options={**SASL, "sasl.password": "wrong"})
    with pytest.raises(ConnectorError, match=r"uthentication.*sasl\.password"):
        wrong.partitions(1)
    with pytest.raises(ConnectorError, match=r"uthentication.*sasl\.password"):
        read(opened(wrong, name, 0), 1)


def right_password() -> dict[str, str]:
    return {**SASL, "sasl.password": KafkaServer.password}


def test_rotated_password_reaches_the_questions_about_topics(
    kafka: KafkaServer, topics: Topics, eventually: Eventually
) -> None:
    """A task asks with the options of now, and not with those of its first question, for as long as it lives."""
    topic = topics.make()
    topics.fill(topic, ["x"])
    former: list[str] = []

    def options() -> dict[str, str]:
        return {**SASL, "sasl.password": former.pop() if former else KafkaServer.password}

    watch = TopicWatch(Cluster(kafka.sasl_address, options))
    former.append("wrong")
    with pytest.raises(KafkaException, match="uthentication"):
        watch.id_of(topic, 0.0, 3.0)
    assert watch.id_of(topic, 0.0, READ_S) == topic_id(topics, topic)
    watch = TopicWatch(Cluster(kafka.sasl_address, options))
    former.append("wrong")
    assert watch.end_of(topic, 0, committed=True) is None
    eventually(lambda: watch.end_of(topic, 0, committed=True) == 1, READ_S)


TLS = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": KafkaServer.user}


def test_tls_with_a_scram_password_reads_and_writes(
    kafka: KafkaServer, topics: Topics, opened: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The options of librdkafka reach each of the clients: that of the start, readers, producers and their groups."""
    caplog.set_level("DEBUG")
    topic = topics.make()
    options = {**TLS, "ssl.ca.location": kafka.ca_file, "sasl.password": KafkaServer.password}
    sink: KafkaSink[str] = KafkaSink(
        kafka.tls_address, topic, transactions=Transactions("tls", tmp_path), options=options
    )
    sink.setup(CONTEXT)
    try:
        sink.put("x")
        sink.prepare(1)
        sink.commit(1)
    finally:
        sink.close()
    source = KafkaSource(kafka.tls_address, topic, until="latest", options=options)
    (name,) = source.partitions(1)
    assert read(opened(source, name)) == ["x"]
    endless = opened(KafkaSource(kafka.tls_address, topic, options=options), name, 0)
    assert read(endless, 1) == ["x"]
    assert isinstance(endless, MeasuredReader)
    assert endless.backlog() is not None
    assert KafkaServer.password not in caplog.text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"sasl.password": "not-the-password"},
            r"uthentication.*; set sasl\.mechanism, sasl\.username and",
        ),
        ({"ssl.ca.location": ""}, r"certificate.*set security\.protocol and ssl\.ca\.location"),
    ],
)
def test_wrong_password_or_authority_is_an_error_with_its_remedy_and_without_the_password(
    kafka: KafkaServer,
    topics: Topics,
    opened: Opened,
    caplog: pytest.LogCaptureFixture,
    wrong: dict[str, str],
    message: str,
) -> None:
    """Neither may look like a broker that is away."""
    caplog.set_level("DEBUG")
    topic = topics.make()
    options = {**TLS, "ssl.ca.location": kafka.ca_file, "sasl.password": KafkaServer.password, **wrong}
    options = {name: value for name, value in options.items() if value}
    source = KafkaSource(kafka.tls_address, topic, options=options)
    with pytest.raises(ConnectorError, match=message) as caught:
        source.partitions(1)
    assert options["sasl.password"] not in str(caught.value)
    with pytest.raises(ConnectorError, match=message) as caught:
        read(opened(source, f"{topic}-0", 0), 1)
    assert options["sasl.password"] not in f"{caught.value} {caplog.text}"
