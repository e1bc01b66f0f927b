"""The logs of a run: the lines, their order, and how they are followed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.driver_kit.log import JsonLines, RotatingLog
from heron.errors import UsageError
from heron_cli.topologies.logs.log_files import LogFile, LogFolder, LogLine, log_line, who_writes


@pytest.fixture
def file(tmp_path: Path) -> Iterator[LogFile]:
    """Return a log file with three lines, and the beginning of a fourth."""
    path = tmp_path / "count-3.out"
    path.write_text("one\ntwo\nthree\nfo", encoding="utf-8")
    made = LogFile(path)
    yield made
    made.close()


def engine_line(at: str, message: str) -> str:
    return f'{{"at":"{at}","level":"info","logger":"heron.x","message":"{message}","container":1}}\n'


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)


def test_the_last_lines_and_those_that_follow_join_up(file: LogFile) -> None:
    """No line is repeated, lost or split."""
    assert file.last(2) == ["two", "three"]
    assert list(file.lines()) == []
    append(file.path, "ur\nfive\nsi")
    assert list(file.lines()) == ["four", "five"]
    assert list(file.lines(final=True)) == ["si"]
    assert list(file.lines(final=True)) == []


def test_no_last_lines_at_all(file: LogFile) -> None:
    """With 0, a user sees only new lines."""
    assert file.last(0) == []
    append(file.path, "ur\n")
    assert list(file.lines()) == ["four"]


def test_the_last_lines_of_a_large_file(tmp_path: Path) -> None:
    """The file is read from its end, in pieces; lines may be longer than a piece."""
    path = tmp_path / "large.out"
    lines = [f"{number} {'x' * (200_000 if number == 998 else 100)}" for number in range(1000)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for count in (1, 2, 3, 700, 1000, 2000):
        file = LogFile(path)
        assert file.last(count) == lines[-count:]
        file.close()


def test_a_log_that_is_renamed_is_followed(tmp_path: Path) -> None:
    """A role process rotates its log; the last lines include those of older files."""
    path = tmp_path / "stmgr-1.log"
    log = RotatingLog(path, max_bytes=200, older_files=2)
    log.setFormatter(logging.Formatter("%(message)s"))

    def write(number: int) -> None:
        log.emit(logging.LogRecord("x", logging.INFO, "", 0, f"line {number} {'.' * 50}", None, None))

    for number in range(5):
        write(number)
    file = LogFile(path)
    assert [line.split()[1] for line in file.last(3)] == ["2", "3", "4"]
    seen = []
    for number in range(5, 20):
        write(number)
        seen += [line.split()[1] for line in file.lines()]
    log.close()
    assert seen == [str(number) for number in range(5, 20)]
    file.close()


def test_a_file_that_comes_later_goes_and_is_emptied_is_followed(tmp_path: Path) -> None:
    """A container may start at any time, and a user may remove logs."""
    path = tmp_path / "late.out"
    file = LogFile(path)
    assert file.last(5) == []
    assert list(file.lines()) == []
    path.write_text("one\n", encoding="utf-8")
    assert list(file.lines()) == ["one"]
    path.write_text("2\n", encoding="utf-8")  # truncated and written again
    assert list(file.lines()) == ["2"]
    path.unlink()
    assert list(file.lines(final=True)) == []
    path.write_text("three\n", encoding="utf-8")
    assert list(file.lines()) == ["three"]
    file.close()


def test_bytes_that_are_not_text_are_shown(tmp_path: Path) -> None:
    """User code may print any bytes."""
    path = tmp_path / "odd.out"
    path.write_bytes(b"\xff\x00\r\nend\n")
    file = LogFile(path)
    assert file.last(5) == ["\\xff\0", "end"]
    file.close()


def test_the_name_of_a_file_tells_process_or_task() -> None:
    """Files of the engine have the number of a container, files of tasks the name of a component."""
    assert who_writes("stmgr-1") == ("stmgr-1", 0)
    assert who_writes("supervisor") == ("supervisor", 0)
    assert who_writes("my-count-12") == ("my-count/12", 12)


def test_a_record_is_decoded_and_other_text_is_unchanged() -> None:
    """A process may be killed while it writes a line."""
    record = log_line("stmgr-1", engine_line("2026-01-02T03:04:05.678+00:00", "plan 1").strip(), engine=True)
    assert record.formatted() == "stmgr-1 | 2026-01-02 03:04:05.678 info     plan 1"
    formatter = JsonLines(container=1)
    with pytest.raises(ValueError, match="no") as caught:
        int("no")
    failed = logging.LogRecord(
        "heron.x", logging.ERROR, "", 0, "it failed", None, (caught.type, caught.value, caught.tb)
    )
    formatted = log_line("stmgr-1", formatter.format(failed), engine=True).formatted().splitlines()
    assert formatted[0].endswith("error    it failed")
    assert formatted[-1] == "stmgr-1 | ValueError: invalid literal for int() with base 10: 'no'"
    for odd in ('{"at":"2026', "[]", "plain", "", '{"at": 1, "level": 2, "message": 3}'):
        assert log_line("stmgr-1", odd, engine=True).formatted() == f"stmgr-1 | {odd}"
    assert log_line("count/3", '{"at":"x","level":"y","message":"z"}', engine=False).text.startswith("{")


def test_a_folder_shows_the_engine_by_time_and_then_the_output(tmp_path: Path) -> None:
    """The lines of the engine are merged; metrics and events are not logs."""
    (tmp_path / "stmgr-1.log").write_text(engine_line("2026-01-01T00:00:01.000", "second"), encoding="utf-8")
    (tmp_path / "tmanager-0.log").write_text(
        engine_line("2026-01-01T00:00:00.000", "first") + engine_line("2026-01-01T00:00:02.000", "third"),
        encoding="utf-8",
    )
    (tmp_path / "count-3.out").write_text("printed\n", encoding="utf-8")
    (tmp_path / "metrics-1.jsonl").write_text("{}\n", encoding="utf-8")
    folder = LogFolder(tmp_path)
    assert [(line.who, line.text) for line in folder.last(10)] == [
        ("tmanager-0", "first"),
        ("stmgr-1", "second"),
        ("tmanager-0", "third"),
        ("count/3", "printed"),
    ]
    append(tmp_path / "count-3.out", "more\nand")
    (tmp_path / "count-4.out").write_text("new\n", encoding="utf-8")
    assert list(folder.new()) == [LogLine("count/3", "more"), LogLine("count/4", "new")]
    assert list(folder.new(final=True)) == [LogLine("count/3", "and")]
    folder.close()


def test_one_task_has_its_own_files(tmp_path: Path) -> None:
    """They are its output and the log of its process; container 3 is not task 3."""
    for name in ("count-3.out", "stmgr-3.out", "count-13.out"):
        (tmp_path / name).write_text(f"{name}\n", encoding="utf-8")
    (tmp_path / "count-3.log").write_text(engine_line("2026-01-01T00:00:00.000", "begins"), encoding="utf-8")
    folder = LogFolder(tmp_path, 3)
    assert [line.text for line in folder.last(10)] == ["begins", "count-3.out"]
    folder.close()
    with pytest.raises(UsageError, match=r"task 4 has no logs in .*; tasks: count/13, count/3"):
        LogFolder(tmp_path, 4).last(10)
