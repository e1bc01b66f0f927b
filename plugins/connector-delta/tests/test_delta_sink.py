"""Appending to tables in a local folder: each row once, whatever dies."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from heron.errors import ConnectorError, UnreachableError, UsageError, UserCodeError
from heron_connector_delta import DeltaSink, transactions
from heron_connector_delta.table import Table
from heron_streamlet.connectors.staging import StagingFolder
from heron_streamlet.connectors.transformer import StageContext

PROGRAM = Path(__file__).with_name("dying_delta_sink.py")
INSTANTS = (
    "before-prepare",
    "in-prepare",
    "after-prepare",
    "before-commit",
    "before-write",
    "in-write",
    "after-write",
    "before-unlink",
    "after-commit",
)
RUN_S = 60.0
NUMBERS = pa.schema([("n", pa.int64())])
Sinks = Callable[..., DeltaSink]


@pytest.fixture
def started() -> Iterator[Sinks]:
    """Starts copies of sinks, as tasks do; they are closed with the test."""
    sinks: list[DeltaSink] = []

    def start(sink: DeltaSink, task: int = 0, tasks: int = 1) -> DeltaSink:
        copy: DeltaSink = pickle.loads(pickle.dumps(sink))
        copy.setup(StageContext("counts", task, tasks))
        sinks.append(copy)
        return copy

    yield start
    for each in sinks:
        each.close()


def sink_of(folder: Path, **named: Any) -> DeltaSink:  # noqa: ANN401  # arguments of the sink
    return DeltaSink(folder / "table", **{"id": "counts", "folder": folder / "staged", "schema": NUMBERS, **named})


def put(sink: DeltaSink, *numbers: int) -> None:
    for each in numbers:
        sink.put({"n": each})


def rows(folder: Path) -> list[dict[str, Any]]:
    return DeltaTable(folder / "table").to_pyarrow_table().to_pylist()  # type: ignore[no-any-return]


def numbers_in(folder: Path) -> list[int]:
    return sorted(row["n"] for row in rows(folder))


def run(folder: Path, instant: str = "") -> int:
    command = [sys.executable, str(PROGRAM), str(folder / "table"), str(folder), instant]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
    return ended.returncode


@pytest.mark.matrix
@pytest.mark.parametrize("instant", INSTANTS)
def test_each_row_is_there_once_whenever_the_task_is_killed(tmp_path: Path, instant: str) -> None:
    """The instants are all calls that change a file or the table; two deaths in a row change nothing either."""
    assert run(tmp_path, instant) == -signal.SIGKILL
    run(tmp_path, instant)
    assert run(tmp_path) == 0
    assert numbers_in(tmp_path) == list(range(30))
    assert list((tmp_path / "s").iterdir()) == []


def test_rows_are_visible_with_their_checkpoint_and_newer_ones_are_discarded(tmp_path: Path, started: Sinks) -> None:
    """A restore begins again behind its checkpoint, so what came later comes again."""
    sink = started(sink_of(tmp_path))
    sink.restore(0)
    put(sink, 1, 2)
    sink.prepare(1)
    put(sink, 3)
    sink.prepare(2)
    put(sink, 4)
    assert rows(tmp_path) == []
    sink.commit(1)
    assert numbers_in(tmp_path) == [1, 2]
    sink.restore(1)
    sink.commit(2)
    assert numbers_in(tmp_path) == [1, 2]
    put(sink, 3)
    sink.prepare(2)
    sink.commit(2)
    version = DeltaTable(tmp_path / "table").version()
    sink.commit(2)
    sink.prepare(3)
    sink.commit(3)
    assert numbers_in(tmp_path) == [1, 2, 3]
    assert DeltaTable(tmp_path / "table").version() == version


def test_checkpoints_that_wait_are_one_transaction(tmp_path: Path, started: Sinks) -> None:
    """A commit may come for several checkpoints, and some of them may be in the table."""
    given = sink_of(tmp_path)
    sink = started(given)
    for checkpoint in (1, 2, 3):
        put(sink, checkpoint)
        sink.prepare(checkpoint)
    (first, *_) = kept = [file.path for file in StagingFolder(tmp_path / "staged", "counts", given._run, 0).staged(1)]
    bodies = [path.read_bytes() for path in kept]
    sink.commit(2)
    assert DeltaTable(tmp_path / "table").version() == 1
    first.write_bytes(bodies[0])
    sink.commit(3)
    assert numbers_in(tmp_path) == [1, 2, 3]
    assert DeltaTable(tmp_path / "table").version() == 2


def test_new_submission_counts_its_checkpoints_from_the_begin(tmp_path: Path, started: Sinks) -> None:
    """The version of an earlier submission is greater; it must not hide new rows."""
    former = started(sink_of(tmp_path))
    for checkpoint in (1, 2, 3):
        put(former, checkpoint)
        former.prepare(checkpoint)
        former.commit(checkpoint)
    put(former, 4)
    former.prepare(4)
    given = sink_of(tmp_path)
    killed = started(given)
    killed.restore(0)
    put(killed, 11)
    killed.prepare(1)
    restarted = started(given)
    restarted.restore(1)
    restarted.restore(1)
    assert numbers_in(tmp_path) == [1, 2, 3, 11]


def test_batch_that_begins_again_after_its_commit_writes_nothing_again(tmp_path: Path, started: Sinks) -> None:
    """A batch job has no checkpoint to go on from; killed after the commit, it computes everything once more."""
    given = sink_of(tmp_path)
    for _ in range(2):
        sink = started(given)
        sink.restore(0)
        put(sink, 1, 2)
        sink.prepare(1)
        sink.commit(1)
    assert numbers_in(tmp_path) == [1, 2]


def test_task_zero_writes_what_tasks_that_an_update_removed_have_left(tmp_path: Path, started: Sinks) -> None:
    """Their checkpoint is complete, so their rows belong to the output."""
    given = sink_of(tmp_path)
    for task in range(3):
        sink = started(given, task, 3)
        put(sink, task)
        sink.prepare(1)
    started(given, 0, 1).restore(1)
    assert numbers_in(tmp_path) == [0, 1, 2]


def test_tasks_that_commit_at_once_all_append(tmp_path: Path, started: Sinks) -> None:
    """Their versions of the table collide; Delta's optimistic concurrency orders them. So does the creation."""
    tasks, checkpoints = 4, 5
    given = sink_of(tmp_path)
    barrier = threading.Barrier(tasks)
    errors: list[BaseException] = []

    def work(task: int) -> None:
        try:
            barrier.wait(RUN_S)
            sink = started(given, task, tasks)
            for checkpoint in range(1, checkpoints + 1):
                put(sink, task * 100 + checkpoint)
                sink.prepare(checkpoint)
                barrier.wait(RUN_S)
                sink.commit(checkpoint)
        except BaseException as error:  # the test reports it
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(task,)) for task in range(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert numbers_in(tmp_path) == sorted(t * 100 + c for t in range(tasks) for c in range(1, checkpoints + 1))


def test_older_process_that_wakes_up_in_its_commit_appends_nothing_twice(
    tmp_path: Path, started: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read the version before the newer process wrote: Delta refuses it, and it looks again."""
    given = sink_of(tmp_path)
    sink = started(given)
    put(sink, 1)
    sink.prepare(1)
    files = StagingFolder(tmp_path / "staged", "counts", given._run, 0).staged(1)
    table = Table.of(tmp_path / "table", None, "test")
    calls = []

    def late(*args: Any, **named: Any) -> None:  # noqa: ANN401  # as delta-rs's
        calls.append(1)
        if len(calls) == 1:
            transactions.append(table, "counts", files)  # of the other process
        write_deltalake(*args, **named)

    monkeypatch.setattr(transactions, "write_deltalake", late)
    transactions.append(table, "counts", files)
    assert len(calls) == 2
    assert numbers_in(tmp_path) == [1]


def test_partitions_types_and_columns_that_came_later(tmp_path: Path, started: Sinks) -> None:
    """Rows have all columns of the table; elements may have fewer, and batches other types of the same kind."""
    schema = pa.schema([("day", pa.string()), ("n", pa.int64()), ("x", pa.float64())])
    sink = started(sink_of(tmp_path, schema=schema, partition_by=["day"]))
    sink.put({"day": "a b/%ü", "n": 1})
    sink.put(pa.record_batch({"n": pa.array([2], pa.int32()), "day": pa.array(["c"]).dictionary_encode()}))
    sink.put(pa.table({"x": [0.5], "n": [3]}))
    sink.prepare(1)
    wider = pa.table({"day": ["d"], "n": [4], "x": [1.0], "late": ["new"]})
    write_deltalake(tmp_path / "table", wider, mode="append", schema_mode="merge")
    sink.commit(1)
    names = ("day", "n", "x", "late")
    assert sorted((tuple(row[name] for name in names) for row in rows(tmp_path)), key=lambda row: row[1]) == [
        ("a b/%ü", 1, None, None),
        ("c", 2, None, None),
        (None, 3, 0.5, None),
        ("d", 4, 1.0, "new"),
    ]
    assert DeltaTable(tmp_path / "table").metadata().partition_columns == ["day"]


def test_elements_that_are_no_rows_fail_alone(tmp_path: Path, started: Sinks) -> None:
    """A row that can never be appended must not stop every later commit."""
    schema = pa.schema([pa.field("n", pa.int32(), nullable=False), ("t", pa.string())])
    sink = started(sink_of(tmp_path, schema=schema))
    for element, message in (
        ({"n": "x"}, r"sink 'counts', table .*table: column 'n' of type int32 does not take a value of type str$"),
        ({"n": 1 << 40}, r"column 'n' of type int32 does not take a value of type int$"),
        ({"n": 1, "m": 2}, r"the table has no column 'm'; it has n, t"),
        ({"t": "a"}, r"column 'n' has a null, which the table does not take"),
        (7, r"a int was put: int, not a RecordBatch"),
        (pa.record_batch({"n": ["1"]}), r"column 'n' has the type string, but the table int32"),
        (pa.record_batch({"n": [1 << 40]}), r"column 'n' of type int64 does not fit the table's int32"),
        (pa.record_batch([[1], [1]], ["n", "n"]), r"a column is there twice: n, n"),
    ):
        with pytest.raises(UserCodeError, match=message):
            sink.put(element)
    sink.put({"n": 1, "t": "a"})
    sink.prepare(1)
    sink.commit(1)
    assert rows(tmp_path) == [{"n": 1, "t": "a"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "a b"}, r"DeltaSink: id='a b' is not 1 to 100 letters"),
        ({"schema": pa.schema([])}, r"DeltaSink: schema=.* is not a pyarrow\.Schema of one or more"),
        ({"schema": {"n": "int"}}, r"DeltaSink: schema=\{'n': 'int'\} is not a pyarrow\.Schema"),
        ({"schema": pa.schema([("d", pa.duration("s"))])}, r"column 'd': .*Invalid data type for Delta Lake"),
        ({"partition_by": ["m"]}, r"partition_by: `schema` has no column 'm'; it has n"),
        ({"partition_by": ["n"]}, r"partition_by has all columns"),
        ({"schema": None, "partition_by": ["n"]}, r"give its `schema`, too"),
        ({"options": {"timeout": 3}}, r"options: 'timeout' has a value of type int, not a text"),
    ],
)
def test_wrong_sink_is_refused_where_it_is_made(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    """The author sees the line, and no task starts."""
    with pytest.raises(UsageError, match=message):
        sink_of(tmp_path, **arguments)


def test_table_that_does_not_fit_is_an_error_at_the_start(tmp_path: Path, started: Sinks) -> None:
    """The task says what the table has."""
    with pytest.raises(ConnectorError, match=r"there is no table at .*table; give DeltaSink a `schema`"):
        started(sink_of(tmp_path, schema=None))
    write_deltalake(tmp_path / "table", pa.table({"n": ["text"]}))
    with pytest.raises(ConnectorError, match=r"`schema` has 'n' of type int64; the table has the type string"):
        started(sink_of(tmp_path))
    with pytest.raises(ConnectorError, match=r"`schema` has 'm' of type int64; the table has only n"):
        started(sink_of(tmp_path, schema=pa.schema([("m", pa.int64())])))
    two = pa.schema([("n", pa.string()), ("o", pa.string())])
    write_deltalake(tmp_path / "table", pa.table({"n": ["a"], "o": ["b"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(ConnectorError, match=r"partition_by=\['o'\], but the table has \[\]"):
        started(sink_of(tmp_path, schema=two, partition_by="o"))


def test_commit_waits_for_storage_that_is_away(tmp_path: Path, started: Sinks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows stay on disk meanwhile; a restore does not fail, or the task would be given up."""
    given = sink_of(tmp_path)
    sink = started(given)
    put(sink, 1)
    sink.prepare(1)

    def away(*args: Any, **named: Any) -> None:  # noqa: ANN401  # as delta-rs's
        msg = "error sending request"
        raise OSError(msg)

    monkeypatch.setattr(transactions, "write_deltalake", away)
    with pytest.raises(UnreachableError, match=r"table .*table: error sending request"):
        sink.commit(1)
    restarted = started(given)
    restarted.restore(1)
    monkeypatch.undo()
    put(restarted, 2)
    restarted.prepare(2)
    restarted.commit(2)
    assert numbers_in(tmp_path) == [1, 2]


def test_cut_file_is_an_error_that_names_it(tmp_path: Path, started: Sinks) -> None:
    """Nothing of it is appended."""
    sink = started(sink_of(tmp_path))
    put(sink, *range(100))
    sink.prepare(1)
    (path,) = (tmp_path / "staged").iterdir()
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ConnectorError, match=r"counts\.0\..*\.staged"):
        sink.commit(1)
    assert rows(tmp_path) == []
