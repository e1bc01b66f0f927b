"""The output of tasks is followed in whole lines, each once, from all files."""

from __future__ import annotations

from pathlib import Path

from heron_cli.foreground.run_monitor import Outputs


def append(path: Path, data: bytes) -> None:
    """Append bytes to the file, as an instance does."""
    with path.open("ab") as file:
        file.write(data)


def test_lines_come_whole_and_once(tmp_path: Path) -> None:
    """A line is returned when its end has been written."""
    outputs = Outputs(tmp_path, {"count": 1})
    append(tmp_path / "count-3.out", b"one\ntw")
    assert list(outputs.lines()) == ["one"]
    assert list(outputs.lines()) == []
    append(tmp_path / "count-3.out", b"o\nthree")
    assert list(outputs.lines()) == ["two"]
    assert list(outputs.lines(final=True)) == ["three"]
    assert list(outputs.lines(final=True)) == []


def test_lines_of_several_tasks_begin_with_the_task(tmp_path: Path) -> None:
    """A single task needs no name; the name of a component may have a hyphen."""
    outputs = Outputs(tmp_path, {"word-count": 2, "report": 1})
    append(tmp_path / "word-count-4.out", b"a\n")
    append(tmp_path / "word-count-5.out", b"b\r\n")
    append(tmp_path / "report-6.out", b"c\n")
    append(tmp_path / "report-6.log", b"not for people\n")
    append(tmp_path / "stmgr-1.out", b"nor this\n")
    assert list(outputs.lines()) == ["c", "word-count/4 | a", "word-count/5 | b"]


def test_any_bytes_and_long_lines_are_shown(tmp_path: Path) -> None:
    """A long line is shown in pieces, so memory stays bounded."""
    outputs = Outputs(tmp_path, {"x": 1})
    append(tmp_path / "x-1.out", b"\xff\n" + b"a" * 3_000_000)
    lines = list(outputs.lines(final=True))
    assert lines[0] == "\\xff"
    assert sum(map(len, lines[1:])) == 3_000_000


def test_a_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    """A restarted container may truncate its file."""
    outputs = Outputs(tmp_path, {"x": 1})
    append(tmp_path / "x-1.out", b"first attempt\n")
    assert list(outputs.lines()) == ["first attempt"]
    (tmp_path / "x-1.out").write_bytes(b"second\n")
    assert list(outputs.lines()) == ["second"]
