"""The output of tasks is followed in whole lines, each once, from all files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from heron.driver_kit.log import rename_older
from heron_cli.foreground.run_monitor import Outputs

OpenOutputs = Callable[[Mapping[str, int]], Outputs]


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[OpenOutputs]:
    """Opens the outputs of the folder of the test."""
    with ExitStack() as stack:
        yield lambda parallelism: stack.enter_context(closing(Outputs(tmp_path, parallelism)))


def append(path: Path, data: bytes) -> None:
    """Append bytes to the file, as an instance does."""
    with path.open("ab") as file:
        file.write(data)


def test_lines_come_whole_and_once(tmp_path: Path, follow: OpenOutputs) -> None:
    """A line is returned when its end has been written."""
    outputs = follow({"count": 1})
    append(tmp_path / "count-3.out", b"one\ntw")
    assert list(outputs.lines()) == ["one"]
    assert list(outputs.lines()) == []
    append(tmp_path / "count-3.out", b"o\nthree")
    assert list(outputs.lines()) == ["two"]
    assert list(outputs.lines(final=True)) == ["three"]
    assert list(outputs.lines(final=True)) == []


def test_lines_of_several_tasks_begin_with_the_task(tmp_path: Path, follow: OpenOutputs) -> None:
    """A single task needs no name; the name of a component may have a hyphen."""
    outputs = follow({"word-count": 2, "report": 1})
    append(tmp_path / "word-count-4.out", b"a\n")
    append(tmp_path / "word-count-5.out", b"b\r\n")
    append(tmp_path / "report-6.out", b"c\n")
    append(tmp_path / "report-6.log", b"not for people\n")
    append(tmp_path / "stmgr-1.out", b"nor this\n")
    assert list(outputs.lines()) == ["c", "word-count/4 | a", "word-count/5 | b"]


def test_any_bytes_and_long_lines_are_shown(tmp_path: Path, follow: OpenOutputs) -> None:
    """A long line is shown in pieces, so memory stays bounded."""
    outputs = follow({"x": 1})
    append(tmp_path / "x-1.out", b"\xff\n" + b"a" * 3_000_000)
    lines = list(outputs.lines(final=True))
    assert lines[0] == "\\xff"
    assert sum(map(len, lines[1:])) == 3_000_000


def test_a_truncated_file_is_read_from_its_start(tmp_path: Path, follow: OpenOutputs) -> None:
    """A restarted container may truncate its file."""
    outputs = follow({"x": 1})
    append(tmp_path / "x-1.out", b"first attempt\n")
    assert list(outputs.lines()) == ["first attempt"]
    (tmp_path / "x-1.out").write_bytes(b"second\n")
    assert list(outputs.lines()) == ["second"]


def test_renamed_files_are_read_to_their_end(tmp_path: Path, follow: OpenOutputs) -> None:
    """An executor renames a full file; a line that the renaming has cut goes on in the next file."""
    outputs = follow({"x": 1})
    path = tmp_path / "x-1.out"
    append(path, b"1\n")
    assert list(outputs.lines()) == ["1"]
    append(path, b"2\n3")
    rename_older(path)
    append(path, b"3\n")
    rename_older(path)
    assert list(outputs.lines()) == ["2", "33"]
    append(path, b"4\n")
    assert list(outputs.lines()) == ["4"]


def test_parts_that_were_removed_unread_are_named(tmp_path: Path, follow: OpenOutputs) -> None:
    """A person must not take what is shown for all that was printed."""
    outputs = follow({"x": 1})
    path = tmp_path / "x-1.out"
    append(path, b"0\n")
    assert list(outputs.lines()) == ["0"]
    append(path, b"half")
    for number in range(4):
        rename_older(path)
        append(path, b"%d\n" % number)
    note = "heron: lines of x-1 are left out: they came faster than they were shown"
    assert list(outputs.lines(final=True)) == ["half", note, "1", "2", "3"]
