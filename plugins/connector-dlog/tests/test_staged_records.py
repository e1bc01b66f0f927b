"""A model of a log and of tasks that die: each record of a staged file is there once, whatever ends in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import ConnectorError
from heron_connector_dlog import FencedError, staged_records
from heron_connector_dlog.staged_records import discard, discard_notes, records_of, write_file
from heron_streamlet.connectors.staging import StagingFolder

STEPS = ("open", "note", "write", "acknowledge", "remove")


class Died(BaseException):
    """The process of the task ends here."""


class ModelLog:
    """A log: its records are numbered from 1, and one writer has it."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.owner: ModelWriter | None = None


class ModelWriter:
    """A writer as `StreamWriter`. What is on its way may arrive, or be lost from some record on."""

    def __init__(self, log: ModelLog, reach: Callable[[str], int]) -> None:
        self._log, self._reach = log, reach
        self._waiting: list[bytes] = []
        self._is_open = False

    def put(self, payload: bytes) -> None:
        self._waiting.append(payload)

    def flush(self) -> int:
        if not self._is_open:
            self._log.owner, self._is_open = self, True
            self._reach("open")
        while self._waiting:
            if self._log.owner is not self:
                message = "another writer"
                raise FencedError(message)
            self._reach("write")
            self._log.records.append(self._waiting.pop(0))
            self._reach("acknowledge")
        return len(self._log.records)

    def records(self, after: int, last: int) -> Iterator[bytes]:
        return iter(self._log.records[after:last])


class Task:
    """A process with one sink; it dies at the wanted visit of a step."""

    def __init__(self, log: ModelLog, folder: Path, death: tuple[str, int]) -> None:
        self._log, self._folder, self._death = log, folder, death
        self._visits = dict.fromkeys(STEPS, 0)
        self.writer = ModelWriter(log, self.reach)

    def reach(self, step: str) -> int:
        self._visits[step] += 1
        if (step, self._visits[step]) == self._death:
            raise Died
        return self._visits[step]

    def commit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Writes what waits, as a restore does."""
        real_note, real_unlink = staged_records._write_note, Path.unlink

        def note(path: Path, begin: int) -> None:
            self.reach("note")
            real_note(path, begin)
            self.reach("note")

        def unlink(path: Path, missing_ok: bool = False) -> None:
            self.reach("remove")
            real_unlink(path, missing_ok)
            self.reach("remove")

        monkeypatch.setattr(staged_records, "_write_note", note)
        monkeypatch.setattr(Path, "unlink", unlink)
        try:
            discard_notes(self._folder, "counts.0.")
            for file in StagingFolder(self._folder, "counts", "run", 0).staged(1):
                write_file(file, self.writer)
        finally:
            monkeypatch.undo()


def staged(folder: Path, sizes: list[int]) -> list[bytes]:
    """Files of checkpoints; returns all records."""
    found: list[bytes] = []
    for checkpoint, size in enumerate(sizes, 1):
        waiting = StagingFolder(folder, "counts", "run", 0)
        for _ in range(size):
            found.append(b"%d" % len(found))
            waiting.append(found[-1])
        waiting.prepare(checkpoint)
    return found


deaths = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 9)), max_size=6)


@settings(max_examples=40)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3), dying=deaths, before=st.integers(0, 3))
def test_each_record_is_there_once_wherever_tasks_die(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], dying: list[tuple[str, int]], before: int
) -> None:
    """Each step may be the last one of a process, again and again; the log had records of former runs."""
    folder = tmp_path_factory.mktemp("staged")
    log = ModelLog()
    log.records = [b"former"] * before
    wanted = log.records + staged(folder, sizes)
    with pytest.MonkeyPatch.context() as patch:
        for death in [*dying, ("", 0)]:
            try:
                Task(log, folder, death).commit(patch)
            except Died:
                continue
            break
    assert log.records == wanted
    assert list(folder.iterdir()) == []


@settings(max_examples=20)
@given(size=st.integers(2, 5), stops=st.integers(1, 5))
def test_a_former_process_that_wakes_up_writes_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, size: int, stops: int
) -> None:
    """A process that stood still while another one wrote the file is fenced, and finds nothing when it tries again."""
    folder = tmp_path_factory.mktemp("staged")
    log = ModelLog()
    wanted = staged(folder, [size])
    (file,) = StagingFolder(folder, "counts", "run", 0).staged(1)

    def wake_up(step: str) -> int:
        nonlocal stops
        stops -= step == "acknowledge"
        if not stops:
            write_file(file, ModelWriter(log, lambda _: 0))
        return 0

    former = ModelWriter(log, wake_up)
    try:
        write_file(file, former)
    except FencedError:
        assert not file.path.exists()
    assert log.records == wanted


def test_records_of_another_program_are_noticed(tmp_path: Path) -> None:
    """Otherwise as many records of the file would be taken for written."""
    log = ModelLog()
    staged(tmp_path, [3])
    with pytest.raises(Died), pytest.MonkeyPatch.context() as patch:
        Task(log, tmp_path, ("acknowledge", 1)).commit(patch)
    log.records.append(b"of somebody else")
    (file,) = StagingFolder(tmp_path, "counts", "run", 0).staged(1)
    with pytest.raises(ConnectorError, match="record 2 of the log is not the one of the file; another program"):
        write_file(file, ModelWriter(log, lambda _: 0))
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
