"""The records of topics of a real server as columns, and columns as records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from heron.clock import monotonic_s
from heron.errors import UserCodeError
from heron_connector_kafka import KafkaSink, KafkaSource, NewRecord, Transactions
from heron_connector_kafka.column_sink import KafkaColumnSink
from heron_connector_kafka.columns import KafkaColumns
from heron_streamlet.connectors.sources import MeasuredReader, Reader
from heron_streamlet.connectors.transformer import StageContext
from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics

CONTEXT = StageContext("clicks")
READ_S = 60.0
TIME_S = 1_700_000_000.5


def filled(kafka: KafkaServer) -> str:
    """A topic with two records, a gap and a third record, which has what a record can have."""
    topics = Topics(kafka.address)
    topic = topics.make()
    topics.fill(topic, ["a", "b"], keyed=True)
    topics.transaction(topic, ["lost"], commit=False)
    sink = KafkaSink[NewRecord](kafka.address, topic)
    sink.setup(CONTEXT)
    sink.put(NewRecord("c", headers=(("from", b"x"), ("empty", None)), timestamp_s=TIME_S))
    sink.prepare(1)
    sink.close()
    return topic


def batches(reader: Reader[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches to the end of the partition."""
    until_s = monotonic_s() + READ_S
    while (found := reader.read(1)) is not None:
        assert monotonic_s() < until_s
        yield from found


def test_batches_have_the_columns_of_the_records_and_end_where_reading_goes_on(kafka: KafkaServer) -> None:
    """A checkpoint lies between two batches; gaps count for the position and for nothing else."""
    kafka.start()
    topic = filled(kafka)
    records = KafkaSource(kafka.address, topic, until="latest")
    (name,) = records.partitions(1)
    with closing(KafkaColumns(records, rows=2).open(name, None, CONTEXT)) as reader:
        first, second = batches(reader)
    assert first.column_names == ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    assert first.column("value").to_pylist() == first.column("key").to_pylist() == [b"a", b"b"]
    (third,) = second.to_pylist()
    assert (third["topic"], third["partition"], third["key"], third["value"]) == (topic, 0, None, b"c")
    assert third["timestamp"] == datetime.fromtimestamp(TIME_S, UTC)
    assert third["headers"] == [{"name": "from", "value": b"x"}, {"name": "empty", "value": None}]
    chosen = KafkaColumns(records, columns=["value", "offset"], rows=2)
    with closing(chosen.open(name, None, CONTEXT)) as reader:
        assert isinstance(reader, MeasuredReader)
        assert next(batches(reader)).num_rows == 2
        assert reader.backlog() == third["offset"] - 1
        place = reader.position
    with closing(chosen.open(name, place, CONTEXT)) as reader:
        assert [each.to_pylist() for each in batches(reader)] == [[{"value": b"c", "offset": third["offset"]}]]
        assert reader.backlog() == 0.0


@pytest.mark.parametrize("exactly", [False, True])
def test_each_row_is_a_record_and_a_batch_with_a_wrong_row_is_not_written(
    kafka: KafkaServer, tmp_path: Path, exactly: bool
) -> None:
    """A record cannot be taken back, so what can fail is found before the first one. Nulls are tombstones."""
    kafka.start()
    topics = Topics(kafka.address)
    topic = topics.make()
    transactions = Transactions("rows", tmp_path) if exactly else None
    with closing(KafkaColumnSink(kafka.address, topic, value="text", key="id", transactions=transactions)) as sink:
        sink.setup(CONTEXT)
        ids = pa.array([b"1", b"2", None, b""]).dictionary_encode()
        sink.put(pa.record_batch({"text": ["a", None, "\u00e4", ""], "id": ids}))
        for wrong, story in (
            ({"text": ["x", "y" * 999_900], "id": [b"1", b"2"]}, "a record of 999901 bytes is larger than 999900"),
            ({"text": ["x", "y" * 999_901], "id": [b"1", b"2"]}, "column 'text': row 1 has 999901 bytes"),
            ({"text": ["x"], "id": [1]}, "column 'id' has the type int64; give a column of text or bytes"),
            ({"text": ["x"]}, "no single column 'id' in the batch; its columns are text"),
        ):
            with pytest.raises(UserCodeError, match=f"sink 'clicks': {story}"):
                sink.put(pa.record_batch(wrong))
        sink.prepare(1)
        sink.commit(1)
    found = [(each.key(), each.value()) for each in topics.messages(topic)]
    assert found == [(b"1", b"a"), (b"2", None), (None, "\u00e4".encode()), (b"", b"")]
