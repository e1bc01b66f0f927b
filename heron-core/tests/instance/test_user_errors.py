"""Failures of user code: shown once, counted always, and told so that the author finds the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heron.instance.user_errors import UserErrors


def errors_of() -> UserErrors:
    return UserErrors("words", "count", 5)


def failure(action: str) -> Exception:
    try:
        exec(compile(action, "/home/me/heron/topology.py", "exec"), {"json": json})  # noqa: S102  # a made-up file
    except Exception as error:
        return error
    raise AssertionError


def test_the_line_says_who_where_with_what_and_what_next(capsys: pytest.CaptureFixture[str]) -> None:
    """Once, above the traceback."""
    errors = errors_of()
    line = errors.report("process", failure("\n\n1 / 0"), "the task goes on", ("a", 1))
    assert line == (
        "topology 'words', component 'count', task 5: process with ('a', 1) raised ZeroDivisionError: division by "
        "zero; at /home/me/heron/topology.py, line 3; the task goes on"
    )
    shown = capsys.readouterr().err
    assert shown.startswith(f"heron: {line}\nTraceback")
    assert errors.last == line


def test_the_place_is_the_authors_not_a_librarys(capsys: pytest.CaptureFixture[str]) -> None:
    """The innermost frame is often the standard library's; nobody can correct that."""
    line = errors_of().report("process", failure("json.loads('{')"), "correct it")
    assert "at /home/me/heron/topology.py, line 1" in line
    assert "json/decoder.py" in capsys.readouterr().err


def test_each_distinct_failure_is_shown_once_and_counted_always(capsys: pytest.CaptureFixture[str]) -> None:
    """A bolt that fails for every tuple must not fill the disk."""
    errors = errors_of()
    for number in range(1000):
        errors.report("process", failure("1 / 0"), "the task goes on", number)
    errors.report("ack", failure("1 / 0"), "the task goes on")
    errors.report("process", failure("\n1 / 0"), "the task goes on")
    assert errors.count == 1002
    assert capsys.readouterr().err.count("Traceback") == 3
    events = errors.take_events()
    assert [(event.name, event.subject) for event in events] == [("user-error", "task-5")] * 3
    assert len({event.id for event in events}) == 3
    assert errors.take_events() == ()


def test_records_are_shortened_and_may_have_no_repr(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a megabyte nor a broken __repr__ may hide the failure."""

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    errors = errors_of()
    assert len(errors.report("process", failure("1 / 0"), "x", "y" * 10_000)) < 400
    assert "with a Broken whose repr fails" in errors.report("process", failure("1 / 0"), "x", Broken())
    assert capsys.readouterr().err


def test_an_error_without_a_traceback_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    """A rejected row never raised."""
    assert "at an unknown line" in errors_of().report("emit", ValueError("no"), "x")
    assert capsys.readouterr().err


def test_an_error_within_the_engine_names_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    """When no frame is the author's, the innermost one is better than nothing."""
    try:
        Path("/no/such/file").read_bytes()
    except OSError as error:
        line = errors_of().report("x", error, "y")
        assert "test_user_errors.py" in line
    assert capsys.readouterr().err
