"""A sink that writes staged files elsewhere: what is shown, when, and what waits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from heron.errors import ConnectorError, UnreachableError, UsageError
from heron_streamlet import StageContext
from heron_streamlet.connectors.staged_sink import StagedSink
from heron_streamlet.connectors.staging import StagedFile


class Queue(StagedSink[str]):
    """Another system, in memory: `shown` has what was written, with the place of each file."""

    def __init__(self, folder: Path, name: str = "counts") -> None:
        super().__init__(id=name, folder=folder)
        self.shown: list[tuple[int, int, list[bytes]]] = []
        self.is_away = False

    def put(self, element: str) -> None:
        self.staging.append(element.encode())

    def write(self, files: Sequence[StagedFile]) -> None:
        if self.is_away:
            msg = "the queue does not answer"
            raise UnreachableError(msg)
        self.shown += [(file.task, file.checkpoint, list(file.messages())) for file in files]


def started(sink: Queue, task: int = 0, tasks: int = 1) -> Queue:
    sink.setup(StageContext("sink-1", task, tasks, {}))
    return sink


def prepared(sink: Queue, checkpoint: int, *texts: str) -> None:
    for each in texts:
        sink.put(each)
    sink.prepare(checkpoint)


def test_a_commit_shows_what_its_checkpoints_have_once(tmp_path: Path) -> None:
    """Commits may come for several checkpoints, and again."""
    sink = started(Queue(tmp_path))
    prepared(sink, 1, "a", "")
    prepared(sink, 2)
    prepared(sink, 3, "b")
    sink.commit(2)
    assert sink.shown == [(0, 1, [b"a", b""])]
    sink.commit(3)
    sink.commit(3)
    assert sink.shown[1:] == [(0, 3, [b"b"])]
    assert list(tmp_path.iterdir()) == []


def test_results_wait_while_the_other_system_is_away(tmp_path: Path) -> None:
    """A commit says so; a restore goes on, because a task that cannot start is given up."""
    sink = started(Queue(tmp_path))
    prepared(sink, 1, "a")
    sink.is_away = True
    with pytest.raises(UnreachableError):
        sink.commit(1)
    sink.put("not in a checkpoint")
    sink.restore(1)
    sink.is_away = False
    prepared(sink, 2, "b")
    sink.commit(2)
    assert sink.shown == [(0, 1, [b"a"]), (0, 2, [b"b"])]


def test_a_restore_discards_what_is_newer(tmp_path: Path) -> None:
    """Also what a process has left that was killed before it could prepare."""
    killed = started(Queue(tmp_path))
    prepared(killed, 1, "a")
    prepared(killed, 2, "b")
    killed.put("c")
    again = started(Queue(tmp_path))
    again.restore(1)
    assert again.shown == [(0, 1, [b"a"])]
    assert list(tmp_path.iterdir()) == []
    killed.close()


def test_the_first_task_shows_what_removed_tasks_have_left(tmp_path: Path) -> None:
    """An update removes tasks between the preparation and the commit of a checkpoint."""
    for task in (0, 1, 2):
        prepared(started(Queue(tmp_path), task, 3), 1, f"of {task}")
    first = started(Queue(tmp_path), 0, 2)
    first.restore(1)
    assert first.shown == [(0, 1, [b"of 0"]), (2, 1, [b"of 2"])]


def test_a_cut_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    """Its disk has lost what was on it."""
    sink = started(Queue(tmp_path))
    prepared(sink, 1, "text")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ConnectorError, match=rf"{path.name}: the file is cut"):
        sink.commit(1)


def test_an_id_that_cannot_name_a_file_is_refused(tmp_path: Path) -> None:
    """Where the sink is made, so that the author's line is shown."""
    with pytest.raises(UsageError, match=r"Queue: id='a/b' is not 1 to 100 letters"):
        Queue(tmp_path, "a/b")
