"""A model of a log and of processes. Each record of a staged file is in the log once, whatever process dies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import ConnectorError
from heron_connector_dlog import FencedError, staged_records
from heron_connector_dlog.staged_records import discard, discard_notes, records_of, write_file
from heron_streamlet.connectors.staging import StagingFolder


class Killed(BaseException):
    """The process ends here."""


class ModelLog:
    """A log: its records are numbered from 1. Its metadata has an owner, and the version of its list of segments."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.owner: ModelWriter | None = None
        self.version = 0
        self.segment: ModelWriter | None = None
        """The writer of the segment that is open."""


class ModelWriter:
    """A writer as `StreamWriter`. What is on its way may arrive, or be lost from some record on.

    To open a log closes its segment. A former writer that has begun no segment may still begin one, as long as the
    version that it has read is that of the log. The owner is refused then, and opens the log again.
    """

    def __init__(self, log: ModelLog) -> None:
        self._log = log
        self._waiting: list[bytes] = []
        self._last: int | None = None
        self._version = -1

    def put(self, payload: bytes) -> None:
        self._waiting.append(payload)

    def flush(self) -> int:
        if self._last is None:
            self._log.owner = self
            self._last = self._opened()
        while self._waiting:
            reach()
            if self._may_write():
                self._log.records.append(self._waiting[0])
                reach()  # the answer is on its way
                found = self._last + 1
            elif self._log.owner is self:
                found = self._opened()
            else:
                message = "another writer"
                raise FencedError(message)
            del self._waiting[: found - self._last]
            self._last = found
        return self._last

    def records(self, after: int, last: int) -> Iterator[bytes]:
        return iter(self._log.records[after:last])

    def _opened(self) -> int:
        reach()
        self._version, self._log.segment = self._log.version, None
        return len(self._log.records)

    def _may_write(self) -> bool:
        if self._version == self._log.version:
            self._log.version += 1
            self._log.segment, self._version = self, -1  # it begins no other one
        return self._log.segment is self


class Process:
    """A process of a task, which restores. It goes on by one step at a time."""

    current: Process | None = None

    def __init__(self, log: ModelLog, folder: Path, number: int = 0, tasks: int = 1) -> None:
        self._folder, self._staging, self._tasks = folder, StagingFolder(folder, "counts", "run", number), tasks
        self._writer = ModelWriter(log)
        self._thread = threading.Thread(target=self._restore, daemon=True)
        self._goes, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        self._is_killed = self._has_ended = False
        self.error: Exception | None = None

    def go(self) -> None:
        """Go on to the next step, or to the end."""
        if self._has_ended:
            return
        Process.current = self
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._goes.release()
        self._stands.acquire()
        Process.current = None

    def end(self, *, is_killed: bool = False) -> None:
        """Go on to the end, or end at the present step."""
        self._is_killed = is_killed and self._thread.ident is not None
        while not (self._has_ended or (is_killed and self._thread.ident is None)):
            self.go()

    def stand(self) -> None:
        """Stand still until it goes on."""
        self._stands.release()
        self._goes.acquire()
        if self._is_killed:
            raise Killed

    def _restore(self) -> None:
        try:
            discard_notes(self._folder, "counts.")
            for file in self._staging.staged(self._tasks):
                write_file(file, self._writer)
        except Killed:
            pass
        except Exception as error:
            self.error = error
        self._has_ended = True
        self._stands.release()


def reach() -> None:
    """A step of the process that goes on now; before and after it, it may stand still or end."""
    if Process.current is not None:
        Process.current.stand()


@pytest.fixture(scope="module", autouse=True)
def steps_of_files() -> Iterator[None]:
    """What a process does with files is a step, too."""
    real_note, real_unlink = staged_records._write_note, Path.unlink

    def note(path: Path, begin: int) -> None:
        reach()
        real_note(path, begin)
        reach()

    def unlink(path: Path, missing_ok: bool = False) -> None:
        reach()
        real_unlink(path, missing_ok)
        reach()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staged_records, "_write_note", note)
        patch.setattr(Path, "unlink", unlink)
        yield


def staged(folder: Path, sizes: list[int], task: int = 0) -> list[bytes]:
    """Files of checkpoints; returns all records."""
    found: list[bytes] = []
    for checkpoint, size in enumerate(sizes, 1):
        waiting = StagingFolder(folder, "counts", "run", task)
        for _ in range(size):
            found.append(b"%d" % len(found))
            waiting.append(found[-1])
        waiting.prepare(checkpoint)
    return found


some_sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(max_examples=40)
@given(sizes=some_sizes, steps=st.lists(st.integers(1, 30), max_size=6), before=st.integers(0, 3))
def test_each_record_is_there_once_wherever_processes_die(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], steps: list[int], before: int
) -> None:
    """Each step may be the last one of a process, again and again; the log had records of former runs."""
    folder = tmp_path_factory.mktemp("staged")
    log = ModelLog()
    log.records = [b"former"] * before
    wanted = log.records + staged(folder, sizes)
    for count in steps:
        process = Process(log, folder)
        for _ in range(count):
            process.go()
        process.end(is_killed=True)
    Process(log, folder).end()
    assert log.records == wanted
    assert list(folder.iterdir()) == []


@settings(max_examples=60)
@given(
    sizes=some_sizes,
    task=st.integers(0, 1),
    turns=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12)), max_size=12),
    killed=st.sets(st.integers(0, 2)),
)
def test_former_processes_that_go_on_write_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    task: int,
    turns: list[tuple[int, int]],
    killed: set[int],
) -> None:
    """A process stands still at any step, with records on their way, while others write; an update may have removed it.

    It is fenced, finds its file gone, or writes what its successor would have written.
    """
    folder = tmp_path_factory.mktemp("staged")
    log = ModelLog()
    wanted = staged(folder, sizes, task)
    processes = [Process(log, folder, task, task + 1), Process(log, folder), Process(log, folder)]
    for number, count in turns:
        for _ in range(count):
            processes[number].go()
    for number, process in enumerate(processes):
        process.end(is_killed=number in killed)
        assert process.error is None or isinstance(process.error, FencedError)
    Process(log, folder).end()
    assert log.records == wanted
    assert not list(folder.glob("*.staged"))


def test_records_of_another_program_are_noticed(tmp_path: Path) -> None:
    """Otherwise as many records of the file would be taken for written."""
    log = ModelLog()
    staged(tmp_path, [3])
    process = Process(log, tmp_path)
    while not log.records:
        process.go()
    process.end(is_killed=True)
    log.records.append(b"of somebody else")
    (file,) = StagingFolder(tmp_path, "counts", "run", 0).staged(1)
    with pytest.raises(ConnectorError, match="record 2 of the log is not the one of the file; another program"):
        write_file(file, ModelWriter(log))
    assert file.path.exists()


def test_a_file_that_is_cut_is_an_error(tmp_path: Path) -> None:
    """A disk that has lost what was synchronised must not become missing results."""
    staged(tmp_path, [2])
    (file,) = StagingFolder(tmp_path, "counts", "run", 0).staged(1)
    file.path.write_bytes(file.path.read_bytes()[:-1])
    with pytest.raises(ConnectorError, match="the file is cut"):
        list(records_of(file))


def test_a_discarded_file_leaves_no_note(tmp_path: Path) -> None:
    """The number of its checkpoint comes again after a restore, with other records."""
    staged(tmp_path, [1])
    (file,) = StagingFolder(tmp_path, "counts", "run", 0).staged(1)
    file.path.with_suffix(".begin").write_text("7")
    discard(file)
    assert list(tmp_path.iterdir()) == []
