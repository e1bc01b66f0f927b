"""What needs no server: wrong arguments, files that wait for their checkpoint, and the rule of the marker."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from heron.errors import ConnectorError, UsageError
from heron_connector_kafka import KafkaSink, KafkaSource, Transactions
from heron_connector_kafka import source as source_module
from heron_connector_kafka.staging import Outgoing, append, records_of
from heron_connector_kafka.transactions import is_written
from heron_streamlet.connectors.staging import StagedFile, StagingFolder
from heron_streamlet.connectors.transformer import StageContext

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
        append(folder.file(), each)
    assert folder.staged(2) == []
    folder.prepare(12)
    folder.prepare(13)
    (file,) = folder.staged(2)
    assert (file.checkpoint, file.run, file.task, list(records_of(file.path))) == (12, "run", 1, records)
    other = StagingFolder(tmp_path, "counts", "run", 0)
    assert other.staged(2) == []
    assert other.staged(1) == [file]  # an update has removed task 1
    file.path.write_bytes(file.path.read_bytes()[:-1])
    with pytest.raises(ConnectorError, match=r"staged: the file is cut"):
        list(records_of(file.path))


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
