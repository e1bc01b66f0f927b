"""Writing logs of a real DistributedLog: each result once, whatever dies, or at once and never lost."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from heron.errors import UserCodeError
from heron_connector_dlog import ClientDiedError, DlogSink, FencedError, LogNamespace
from heron_connector_dlog.column_sink import DlogColumnSink
from heron_connector_dlog.log_client import LogClient
from heron_connector_dlog.stream_writer import StreamWriter
from heron_streamlet.connectors.transformer import StageContext
from heron_testing.waiting import wait_until
from heron_testing_servers.distributedlog import DistributedLogCluster
from heron_testing_servers.log_streams import LogStreams

WITHIN_S = 60.0
Sinks = Callable[..., DlogSink[object]]


@pytest.fixture
def started() -> Iterator[Sinks]:
    """Starts copies of sinks, as tasks do; they are closed with the test."""
    sinks: list[DlogSink[object]] = []

    def start(sink: DlogSink[object], task: int = 0, tasks: int = 1) -> DlogSink[object]:
        copy: DlogSink[object] = pickle.loads(pickle.dumps(sink))
        copy.setup(StageContext("counts", task, tasks))
        sinks.append(copy)
        return copy

    yield start
    for each in sinks:
        each.close()


@pytest.fixture
def new_writer(namespace: LogNamespace) -> Iterator[Callable[[str], StreamWriter]]:
    """Writers, each with a JVM."""
    writers: list[StreamWriter] = []

    def make(stream: str) -> StreamWriter:
        writers.append(StreamWriter(LogClient(namespace), stream))
        return writers[-1]

    yield make
    for each in writers:
        each.close()


def put(sink: DlogSink[object], *elements: object) -> None:
    for each in elements:
        sink.put(each)


def test_results_are_there_once_whatever_the_task_did_before(
    streams: LogStreams, namespace: LogNamespace, tmp_path: Path, started: Sinks
) -> None:
    """A restore discards what is newer; a killed commit goes on where the log ends; leftovers of removed tasks too."""
    sink = DlogSink[object](namespace, "results", value=str, folder=tmp_path)
    first, other = started(sink, 0, 2), started(sink, 1, 2)
    for each in (first, other):
        each.restore(0)
    put(first, 1, 2)
    put(other, "a")
    for each in (first, other):
        each.prepare(1)
    put(first, 3)
    first.prepare(2)
    assert streams.read("results-0") == []
    first.commit(1)
    assert streams.read("results-0") == ["1", "2"]
    restarted = started(sink, 0, 1)
    restarted.restore(1)
    assert streams.read("results-1") == ["a"]
    put(restarted, 3, 4)
    restarted.prepare(2)
    streams.write("results-0", ["3"])  # as a process that was killed in its commit
    note = next(tmp_path.glob("results.0.*.staged")).with_suffix(".begin")
    note.write_text("2")
    restarted.commit(2)
    restarted.commit(2)
    assert streams.read("results-0") == ["1", "2", "3", "4"]
    assert list(tmp_path.iterdir()) == []
    assert streams.ids("results-0") == [1, 2, 3, 4]


def test_second_writer_keeps_the_first_out(streams: LogStreams, new_writer: Callable[[str], StreamWriter]) -> None:
    """Two writers that live must not fence each other without end. The loser comes back if a checkpoint asks it to."""
    first, second = new_writer("fenced"), new_writer("fenced")
    first.put(b"first")
    assert first.flush() == 1
    assert second.flush() == 1
    first.put(b"waits")

    def is_out() -> bool:
        first.send()
        return isinstance(first._trouble, FencedError)

    wait_until(is_out, WITHIN_S, "the loser to hear it")
    first.send()
    second.put(b"second")
    assert second.flush() == 2
    assert streams.read("fenced") == ["first", "second"]
    with pytest.raises(FencedError, match="log 'fenced': another writer has taken it over"):
        first.flush()
    assert first.flush() == 3
    assert streams.read("fenced") == ["first", "second", "waits"]
    second.put(b"third")
    with pytest.raises(FencedError):
        second.flush()


def test_a_jvm_and_a_bookie_that_die_cost_no_record(
    distributedlog: DistributedLogCluster, streams: LogStreams, new_writer: Callable[[str], StreamWriter]
) -> None:
    """While the writer lives, nothing is written twice either: the log says what it has."""
    writer = new_writer("deaths")
    for number in range(2000):
        writer.put(b"%d" % number)
        if number == 500:
            writer.send()
            wait_until(lambda: writer._client.pid > 0, WITHIN_S, "the JVM")
            os.kill(writer._client.pid, signal.SIGKILL)
            with pytest.raises(ClientDiedError, match=r"log 'deaths': the JVM of the log client .* signal 9"):
                writer.flush()
        if number == 1000:
            writer.flush()
            distributedlog.bookies[0].kill()
    assert writer.flush(WITHIN_S) == 2000
    distributedlog.start()
    assert streams.read("deaths") == [f"{number}" for number in range(2000)]


def test_what_is_gathered_goes_out_without_another_call(
    streams: LogStreams, new_writer: Callable[[str], StreamWriter]
) -> None:
    """The task may have no more records for hours. The answer to a frame sends the next one."""
    writer = new_writer("gathered")
    writer.put(b"0")
    writer.flush()
    for number in range(1, 3000):
        writer.put(b"%d" % number)
        writer.send()
    wanted = [f"{number}" for number in range(3000)]
    wait_until(lambda: streams.read("gathered") == wanted, WITHIN_S, "the records")
    assert writer.flush() == 3000


def test_the_reader_of_tests_goes_on_inside_an_entry(
    streams: LogStreams, new_writer: Callable[[str], StreamWriter]
) -> None:
    """The library may cancel it there. Records that it reads twice would look like records that are there twice."""
    writer = new_writer("entry")
    wanted = [f"{number}" for number in range(100)]
    writer.put_all([text.encode() for text in wanted])  # one entry
    writer.flush()
    assert streams.read("entry", 51) == wanted[50:]


def test_each_row_is_a_record_and_a_batch_with_a_wrong_row_is_not_written(
    streams: LogStreams, namespace: LogNamespace, started: Sinks
) -> None:
    """A record cannot be taken back, so what can fail is found before the first one."""
    sink = started(DlogColumnSink(namespace, "rows", data="text"))
    wanted = [f"{number}" for number in range(2500)]
    sink.put(pa.record_batch({"text": wanted}))
    for wrong, story in (
        ({"text": ["x", None]}, "1 rows of the column 'text' are null; a record has data"),
        ({"text": ["x", "y" * 1_040_385]}, "column 'text': row 1 has 1040385 bytes, more than 1040384"),
        ({"text": [1]}, "column 'text' has the type int64; give a column of text or bytes"),
        ({"line": ["x"]}, "no single column 'text' in the batch; its columns are line"),
    ):
        with pytest.raises(UserCodeError, match=f"sink 'counts': {story}"):
            sink.put(pa.record_batch(wrong))
    sink.prepare(1)
    assert streams.read("rows-0") == wanted


def test_an_element_that_is_no_record_fails_alone(namespace: LogNamespace, tmp_path: Path, started: Sinks) -> None:
    """The author's function decides what a record is."""
    sink = started(DlogSink[object](namespace, "typed", folder=tmp_path))
    with pytest.raises(UserCodeError, match="7 is neither text nor bytes; give DlogSink a function `value`"):
        sink.put(7)
    with pytest.raises(UserCodeError, match="a record of 2000000 bytes is larger than 1040384"):
        sink.put(b"x" * 2_000_000)
