"""The search in the logs of a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from heron.errors import UsageError
from heron_cli.commands.logs import logs
from heron_cli.topologies.logs.log_reader import last_logs
from heron_cli.topologies.logs.log_search import process_logs, search_logs


def engine_line(at: str, message: str, error: str = "") -> str:
    return f'{{"at":"{at}","level":"info","logger":"heron.x","message":"{message}","error":"{error}"}}\n'


def texts(folder: Path, text: str, count: int = 10, task_id: int | None = None) -> list[str]:
    """The texts of the lines that are found."""
    return [each.text for each in search_logs(folder, task_id, text, count)]


def test_all_files_of_a_process_are_searched_and_the_last_lines_are_returned(tmp_path: Path) -> None:
    """The line that a person looks for is often in a file that was rotated."""
    for number, name in enumerate(("count-3.out.2", "count-3.out.1", "count-3.out")):
        (tmp_path / name).write_text(f"Order {number}a\nother\norder {number}b\n", encoding="utf-8")
    assert texts(tmp_path, "ORDER") == ["Order 0a", "order 0b", "Order 1a", "order 1b", "Order 2a", "order 2b"]
    assert texts(tmp_path, "order", 3) == ["order 1b", "Order 2a", "order 2b"]
    assert texts(tmp_path, "order", 0) == []
    assert texts(tmp_path, "none of them") == []


def test_records_are_searched_as_people_read_them(tmp_path: Path) -> None:
    """The names of JSON's keys are no text of a record; escapes are what they stand for; a traceback belongs to it."""
    lines = [
        engine_line("2026-01-01T00:00:02", r"a \"quoted\" name"),
        engine_line("2026-01-01T00:00:01", "caf\\u00e9", r"Traceback\nValueError: bad"),
        "logger is a word here\n",
    ]
    (tmp_path / "stmgr-1.log").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "count-3.out").write_text('CAFÉ\nsaid "quoted"\n', encoding="utf-8")
    assert texts(tmp_path, "logger") == ["logger is a word here"]
    assert texts(tmp_path, '"quoted"') == ['a "quoted" name', 'said "quoted"']
    assert texts(tmp_path, "café") == ["café", "CAFÉ"]
    assert texts(tmp_path, "valueerror") == ["café"]


def test_one_task_is_searched_and_a_task_without_logs_is_an_error(tmp_path: Path) -> None:
    """A typing error must not look like a text that is nowhere."""
    for name in ("count-3.out", "count-4.out"):
        (tmp_path / name).write_text("order\n", encoding="utf-8")
    assert [each.who for each in search_logs(tmp_path, 4, "order", 10)] == ["count/4"]
    with pytest.raises(UsageError, match=r"task 9 has no logs in .*; tasks: count/3, count/4"):
        search_logs(tmp_path, 9, "order", 10)


def test_one_process_has_its_own_files(tmp_path: Path) -> None:
    """They are the log and the output of the process; a name is compared and is no path."""
    for name in ("stmgr-1", "stmgr-11", "tmanager-1"):
        (tmp_path / f"{name}.log").write_text(engine_line("2026-01-01T00:00:00", f"{name} began"), encoding="utf-8")
    (tmp_path / "stmgr-1.out").write_text("printed\nhalf", encoding="utf-8")
    assert [each.text for each in process_logs(tmp_path, "stmgr-1", 10)] == ["stmgr-1 began", "printed", "half"]
    assert [each.text for each in process_logs(tmp_path, "stmgr-1", 10, "BEGAN")] == ["stmgr-1 began"]
    for name in ("stmgr-2", "../stmgr-1", "stmgr"):
        with pytest.raises(UsageError, match="has no logs in"):
            process_logs(tmp_path, name, 10)


def test_bytes_that_are_no_text_and_lines_without_an_end_are_searched(tmp_path: Path) -> None:
    """The code of an author may print anything."""
    (tmp_path / "count-3.out").write_bytes(b"\xff order\n" + b"x" * 3_000_000 + b" order")
    found = search_logs(tmp_path, 3, "order", 10)
    assert [each.text[:12] for each in found] == ["\\xff order", "x" * 12]
    assert len(found[1].text) < 2**20


def test_a_file_that_grows_is_searched_up_to_its_end_at_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a process that writes quickly would keep the search going."""
    path = tmp_path / "count-3.out"
    path.write_text("order 1\norder 2\n", encoding="utf-8")
    monkeypatch.setattr(os, "fstat", lambda _: type("Stat", (), {"st_size": len("order 1\n")}))
    assert texts(tmp_path, "order") == ["order 1"]


def test_following_and_searching_exclude_each_other() -> None:
    """A search reads the files once."""
    result = CliRunner().invoke(logs, ["words", "--follow", "--search", "x"])
    assert isinstance(result.exception, UsageError)
    assert "give one of them" in str(result.exception)


@pytest.mark.matrix
def test_the_last_ones_of_a_million_lines_are_returned(tmp_path: Path) -> None:
    """A page asks for the last lines of a task that prints all the time."""
    lines = "".join(f"order {number}\n" for number in range(1_000_000))
    (tmp_path / "count-3.out").write_text(lines, encoding="utf-8")
    assert texts(tmp_path, "order 99999", 3) == ["order 999997", "order 999998", "order 999999"]
    assert [each.text for each in last_logs(tmp_path, 3, 2)] == ["order 999998", "order 999999"]
