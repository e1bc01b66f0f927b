"""Letters of several tasks are taken by those that run, and each is emitted once."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Self, cast

import msgspec
import pytest

from heron.errors import RefusedError
from heron.ipc.documents.letter_line import LetterLine, LettersAnswer
from heron.ipc.documents.status import TaskStatus, TopologyStatus
from heron_cli.client.client import Client
from heron_cli.commands import dead_letters
from heron_cli.topologies.logs.dead_letters import stored_letters


class Running:
    """A client of one topology, whose tasks 2 and 10 run; it is the topology too."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, tuple[str, ...], bool]] = []
        self.refuses: set[int] = set()

    def names(self) -> list[str]:
        """As `Client.names`."""
        return ["words"]

    def topology(self, _name: str, *, timeout_s: float) -> Self:
        """As `Client.topology`."""
        assert timeout_s > 0
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def status(self) -> TopologyStatus:
        """As `RemoteTopology.status`."""
        tasks = tuple(TaskStatus(each, "check", 1, "running", 1) for each in (2, 10))
        return TopologyStatus("words", "words-1", "running", 1.0, tasks=tasks)

    def take_letters(self, task_id: int, ids: Collection[str], *, drop: bool) -> LettersAnswer:
        """As `RemoteTopology.take_letters`."""
        if task_id in self.refuses:
            message = "it is paused"
            raise RefusedError(message)
        if ids:
            self.taken.append((task_id, tuple(ids), drop))
        return LettersAnswer(dict.fromkeys(ids, ""))


@pytest.fixture
def topology() -> Running:
    return Running()


def write(folder: Path, task_id: int, *ids: str) -> None:
    """Write the file of a task."""
    lines = [LetterLine(each, "lines", "default", ("1",), "1", 3, "failed") for each in ids]
    data = b"".join(msgspec.json.encode(each) + b"\n" for each in lines)
    (folder / f"dead-letters-{task_id}.jsonl").write_bytes(data)


def taken(topology: Running, folder: Path, *ids: str, drop: bool) -> dict[str, str]:
    """What the command is told of each letter."""
    return dead_letters._taken(cast("Client", topology), "words", folder, ids, 1.0, drop=drop)


def test_a_letter_that_two_files_have_is_emitted_once(topology: Running, tmp_path: Path) -> None:
    """The copy is dropped, or the next `replay` would emit it again."""
    write(tmp_path, 2, "2-0-1")
    write(tmp_path, 10, "2-0-1", "10-0-1")
    assert taken(topology, tmp_path, "2-0-1", "10-0-1", drop=False) == {"2-0-1": "", "10-0-1": ""}
    emitted = [each for task, ids, drop in topology.taken if not drop for each in ids]
    assert sorted(emitted) == ["10-0-1", "2-0-1"]
    assert len([each for each in topology.taken if each[2]]) == 1


def test_a_letter_that_was_emitted_does_not_stay_in_the_file_of_a_task_that_has_left(
    topology: Running, tmp_path: Path
) -> None:
    """It is reported as emitted, although the task of one of its files has left."""
    write(tmp_path, 3, "3-0-1", "3-0-2")
    write(tmp_path, 10, "3-0-1")
    found = taken(topology, tmp_path, "3-0-1", "3-0-2", drop=False)
    assert found["3-0-1"] == ""
    assert found["3-0-2"].startswith("task 3 has left the topology")
    assert topology.taken == [(10, ("3-0-1",), False)]
    assert [each.id for each in stored_letters(tmp_path) if each.id == "3-0-2"] == ["3-0-2"]
    assert (tmp_path / "dead-letters-3.jsonl").read_bytes().count(b"3-0-1") == 0


def test_a_command_changes_no_file_of_a_task_that_runs(topology: Running, tmp_path: Path) -> None:
    """Only the task writes it; a letter that the task keeps is not called dropped."""
    write(tmp_path, 3, "3-0-1")
    write(tmp_path, 10, "3-0-1")
    before = (tmp_path / "dead-letters-10.jsonl").read_bytes()
    topology.refuses = {10}
    assert taken(topology, tmp_path, "3-0-1", drop=True) == {"3-0-1": "it is paused"}
    assert (tmp_path / "dead-letters-10.jsonl").read_bytes() == before
