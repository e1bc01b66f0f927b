"""Reading logs of a real DistributedLog: from any place, as they grow, and what is gone is never passed over."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from heron.clock import monotonic_s
from heron.errors import UsageError
from heron_connector_dlog import ClientDiedError, DlogSource, LogNamespace, Record, TruncatedError
from heron_connector_dlog.columns import DlogColumns
from heron_connector_dlog.reader import StreamReader
from heron_streamlet.connectors.sources import MeasuredReader
from heron_streamlet.connectors.transformer import StageContext
from heron_testing.waiting import wait_until
from heron_testing_servers.log_streams import LogStreams

WITHIN_S = 60.0
Readers = Callable[..., StreamReader]


@pytest.fixture
def opened(namespace: LogNamespace) -> Iterator[Readers]:
    """Opens readers as tasks do: of a copy of the source."""
    readers: list[StreamReader] = []

    def open_reader(stream: str, position: object = None, **given: Any) -> StreamReader:  # noqa: ANN401  # of the source
        source = DlogSource(namespace, stream, **given)
        assert stream in source.partitions(2)
        copy: DlogSource = pickle.loads(pickle.dumps(source))
        reader = copy.open(stream, position, StageContext("records"))
        assert isinstance(reader, StreamReader)
        readers.append(reader)
        return reader

    yield open_reader
    for each in readers:
        each.close()


def take(reader: StreamReader, count: int, found: list[Record] | None = None) -> list[Record]:
    """Read so many records; appends them to `found`, so that an error of the reader loses none."""
    taken = [] if found is None else found
    wanted = len(taken) + count

    def enough() -> bool:
        taken.extend(reader.read(wanted - len(taken)) or ())
        return len(taken) >= wanted

    wait_until(enough, WITHIN_S, f"{count} records")
    return taken


def texts(records: list[Record]) -> list[str]:
    return [each.data.decode() for each in records]


def test_each_place_is_one_to_go_on_from(streams: LogStreams, opened: Readers) -> None:
    """A checkpoint has the place of an element, or the one behind the last one, in any segment."""
    streams.make("places")
    wanted = [f"{number}" for number in range(12)]
    for begin in (0, 4, 8):
        streams.write("places", wanted[begin : begin + 4])
        streams.roll("places")
    first = opened("places")
    records = take(first, 12)
    assert texts(records) == wanted
    assert [each.transaction_id for each in records] == list(range(1, 13))
    assert [each.place.passed for each in records] == list(range(12))
    reader = opened("places", first.position)
    streams.write("places", ["new"])
    assert texts(take(reader, 1)) == ["new"]
    for index in (3, 4, 9):
        assert texts(take(opened("places", list(records[index].place)), 2)) == wanted[index : index + 2]
    middle = opened("places", records[4].place)
    wait_until(lambda: middle.backlog() == 9.0, WITHIN_S, "what is behind the place")


def test_a_record_is_pushed_within_a_second(streams: LogStreams, opened: Readers) -> None:
    """Also the last one, which no other record follows; the median of ten, for a busy machine."""
    streams.make("tail")
    streams.write("tail", ["first"])
    reader = opened("tail", start="latest")
    assert not reader.read(1)
    took_s = []
    for number in range(10):
        streams.write("tail", [f"{number}"])
        begin_s = monotonic_s()
        assert texts(take(reader, 1)) == [f"{number}"]
        took_s.append(monotonic_s() - begin_s)
    assert sorted(took_s[1:])[len(took_s) // 2] <= 1.0


def test_start_and_until_are_places_of_the_start_of_the_pipeline(
    streams: LogStreams, namespace: LogNamespace, opened: Readers
) -> None:
    """Times are transaction ids in milliseconds; the end is what is there when the pipeline starts."""
    streams.make("timed")
    streams.write("timed", ["a", "b", "c"], first_id=1_700_000_000_000)
    reader = opened("timed", start=1_700_000_000.001, until="latest")
    streams.write("timed", ["late"])
    assert texts(take(reader, 2)) == ["b", "c"]
    assert reader.read(1) is None
    streams.make("timed-empty")
    assert opened("timed-empty", until="latest").read(1) is None
    assert DlogSource(namespace, "timed*").partitions(1) == ["timed", "timed-empty"]
    with pytest.raises(UsageError, match=r"there is no log 'timer' \(nearest: 'timed'\)"):
        DlogSource(namespace, "timer").partitions(1)


def test_what_was_truncated_away_is_an_error_or_counted(streams: LogStreams, opened: Readers) -> None:
    """A reader that has everything before the first record that is left has lost nothing."""
    streams.make("truncated")
    for begin in (0, 5, 10):
        streams.write("truncated", [f"{number}" for number in range(begin, begin + 5)])
        streams.roll("truncated")
    reader = opened("truncated")
    records = take(reader, 5)
    behind = reader.position
    streams.truncate("truncated", 6)
    assert texts(take(opened("truncated", behind), 10)) == [f"{number}" for number in range(5, 15)]
    strict = opened("truncated", records[2].place)
    for _ in range(2):
        with pytest.raises(TruncatedError, match=r"3 records behind place .* were truncated away"):
            take(strict, 1)
    lenient = opened("truncated", records[2].place, truncated="skip")
    assert texts(take(lenient, 2)) == ["5", "6"]
    assert lenient.gauges() == {"truncated": 3.0}


def test_a_jvm_that_dies_is_named_once_and_replaced(streams: LogStreams, opened: Readers) -> None:
    """Nothing is lost or read twice: what was received and not returned is read again.

    The log is larger than what a client sends ahead, so the JVM dies before it has sent everything.
    """
    streams.make("dying")
    wanted = [f"{number:01000}" for number in range(3000)]
    streams.write("dying", wanted)
    reader = opened("dying")
    found = take(reader, 700)
    os.kill(reader._client.pid, signal.SIGKILL)
    with pytest.raises(ClientDiedError, match=r"source 'records', log 'dying': the JVM .* was killed by signal 9"):
        take(reader, 3000 - len(found), found)
    take(reader, 3000 - len(found), found)
    assert texts(found) == wanted


def test_columns_have_the_records_and_end_where_reading_goes_on(streams: LogStreams, namespace: LogNamespace) -> None:
    """A checkpoint lies between two batches."""
    streams.make("columns")
    wanted = [f"{number}" for number in range(2500)]
    streams.write("columns", wanted, first_id=1)
    source = DlogSource(namespace, "columns", until="latest")
    assert source.partitions(1) == ["columns"]
    chosen = DlogColumns(source, columns=["data", "transaction_id"], rows=1000)
    with closing(chosen.open("columns", None, StageContext("records"))) as reader:
        assert isinstance(reader, MeasuredReader)
        batches = list(wait_until(lambda: reader.read(1) or (), WITHIN_S, "a batch"))
        position = reader.position
    with closing(chosen.open("columns", position, StageContext("records"))) as reader:
        until_s = monotonic_s() + WITHIN_S
        while (found := reader.read(1)) is not None:
            assert monotonic_s() < until_s
            batches += found
    assert 0 < max(each.num_rows for each in batches) <= 1000
    rows = [row for each in batches for row in each.to_pylist()]
    assert rows == [{"data": each.encode(), "transaction_id": number} for number, each in enumerate(wanted, 1)]
