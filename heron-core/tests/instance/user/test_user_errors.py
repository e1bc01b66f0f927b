"""Failures of user code: printed once, always counted, and described so that the author finds the line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from heron.api.definition import ComponentDefinition, ComponentKind, StreamDefinition
from heron.api.tuple import Tuple
from heron.author_text import Described
from heron.errors import UserCodeError
from heron.instance.user.user_errors import UserErrors, named_values


def errors_of(*, shows_values: bool = True) -> UserErrors:
    errors = UserErrors("words", "count", 5)
    errors.shows_values = lambda: shows_values
    errors.fields_of = lambda _component, stream: ("name", "password") if stream == "logins" else ()
    return errors


def failure(action: str) -> Exception:
    try:
        exec(compile(action, "/home/me/heron/topology.py", "exec"), {"json": json})  # noqa: S102  # a made-up file
    except Exception as error:
        return error
    raise AssertionError


def test_the_line_has_task_record_place_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """It is printed once, above the traceback."""
    errors = errors_of()
    line = errors.report("process", failure("\n\n1 / 0"), "the task goes on", ("a", 1))
    assert line == (
        "topology 'words', component 'count', task 5: process with ('a', 1) raised ZeroDivisionError: division by "
        "zero; at /home/me/heron/topology.py, line 3; the task goes on"
    )
    shown = capsys.readouterr().err
    assert shown.startswith(f"heron: {line}\nTraceback")
    assert errors.last == line


def test_values_of_records_are_shown_only_where_they_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    """The description reaches pages and `heron status`, where `heron inspect` is refused. Its text is the author's."""
    login = Tuple.source("web", "logins", 3)(values=("ada", "hunter2"))
    columns = Described("a batch of 2 rows of (name, password)")
    records = (login, ("ada", "hunter2"), {"name": "ada", "password": "hunter2"}, 7, columns)
    shown = []
    for errors in (errors_of(shows_values=False), errors_of()):
        lines = [errors.report("process", failure("1 / 0"), "it goes on", each) for each in records]
        shown.append([line.partition(" process with ")[2].partition(" raised ")[0] for line in lines])
        assert all("ada" not in each for each in shown[0])
    named = "{'name': 'ada', 'password': (hidden)}"
    source = "Tuple(component='web', stream='logins', task=3, values="
    assert shown == [
        [f"{source}(hidden))", "(hidden)", "(hidden)", "(hidden)", columns],
        [f"{source}{named})", "('ada', 'hunter2')", named, "7", columns],
    ]
    assert "ada" not in capsys.readouterr().err.partition("Traceback")[0]


def test_the_first_failure_names_the_switch(capsys: pytest.CaptureFixture[str]) -> None:
    """Once, in the output alone, and only where values are hidden."""
    errors, open_errors = errors_of(shows_values=False), errors_of()
    lines = [errors.report(doing, failure("1 / 0"), "it goes on", record) for doing, record in (("a", None), ("b", 1))]
    errors.report("c", failure("1 / 0"), "it goes on", 2)
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("heron: ")]
    assert shown[:2] == [f"heron: {lines[0]}", f"heron: {lines[1]}; (hidden): topology.inspect.tuples shows values"]
    assert shown[2].endswith("it goes on")
    open_errors.report("process", failure("1 / 0"), "it goes on", {"password": "hunter2"})
    assert "topology.inspect.tuples" not in capsys.readouterr().err


def test_values_without_names_are_counted() -> None:
    """One of them may be a password: the stream has left the plan, or the values are not those of its fields."""
    assert named_values((), ["ada", "hunter2"]) == "2 values without names"
    assert isinstance(named_values(("name",), ("ada", "hunter2")), Described)
    assert named_values(("name",), ("ada",)) == {"name": "ada"}


def test_a_rejected_row_has_the_names_of_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """A row of a stream with one field is the value itself, also if the value is a tuple."""
    streams = (StreamDefinition("logins", ("name", "password")), StreamDefinition("one", ("pair",)))
    component = ComponentDefinition("web", ComponentKind.SPOUT, "m:C", 1, streams)
    errors = errors_of()
    shown = []
    for stream, row in (
        ("logins", ("ada", "hunter2")),
        ("one", ("a", "b")),
        ("one", "a"),
        ("one", Described("2 rows")),
    ):
        errors.rejected(component, stream, row, ValueError("no"))
        shown.append(errors.last.partition(" with ")[2].partition(" raised ")[0])
    assert shown == ["{'name': 'ada', 'password': (hidden)}", "{'pair': ('a', 'b')}", "{'pair': 'a'}", "2 rows"]
    assert capsys.readouterr().err


def test_the_place_is_the_authors_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The innermost frame is often in the standard library, where the author cannot correct anything."""
    line = errors_of().report("process", failure("json.loads('{')"), "correct it")
    assert "at /home/me/heron/topology.py, line 1" in line
    assert "json/decoder.py" in capsys.readouterr().err


def test_each_distinct_failure_is_printed_once_and_always_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A bolt that fails for every tuple must not fill the disk."""
    errors = errors_of()
    for number in range(1000):
        errors.report("process", failure("1 / 0"), "the task goes on", number)
    errors.report("ack", failure("1 / 0"), "the task goes on")
    errors.report("process", failure("\n1 / 0"), "the task goes on")
    assert errors.count == 1002
    shown = capsys.readouterr().err
    assert shown.count("Traceback") == 3
    place = "ZeroDivisionError at /home/me/heron/topology.py"
    (again,) = [line for line in shown.splitlines() if "again" in line]  # where a person would look for the others
    assert again.startswith(f"heron: topology 'words', component 'count', task 5: process: {place}, line 1: was raised")
    assert [(each.labels["error"], each.value) for each in errors.metrics()] == [
        (f"process: {place}, line 1", 1000),
        (f"ack: {place}, line 1", 1),
        (f"process: {place}, line 2", 1),
    ]
    events = errors.take_events()
    assert [event.attributes["error"] for event in events] == [each.labels["error"] for each in errors.metrics()]
    assert f"{events[0].attributes['exception']} at {events[0].attributes['place']}" == f"{place}, line 1"
    assert events[0].attributes["trace"].endswith("ZeroDivisionError: division by zero\n")
    assert [(event.name, event.subject) for event in events] == [("user-error", "task-5")] * 3
    assert len({event.id for event in events}) == 3
    assert errors.take_events() == ()


def test_a_failure_that_was_shown_is_only_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A description costs as much as a hundred tuples; another line, class or call is described."""
    errors = errors_of()
    same = "raise ValueError('first' if __name__ else 'second')"
    for number in range(3):
        errors.note("process", failure(same), "the task goes on", number)
    assert "with 0 raised" in errors.last
    errors.note("ack", failure(same), "the task goes on", 7)
    assert "ack with 7 raised" in errors.last
    errors.note("process", failure(f"\n{same}"), "the task goes on", 8)
    assert "with 8 raised" in errors.last
    assert errors.count == 5
    assert [each.value for each in errors.metrics()] == [3, 1, 1]
    shown = capsys.readouterr().err
    assert (shown.count("Traceback"), shown.count("was raised again")) == (3, 1)


def test_two_lines_that_call_one_function_are_two_failures(capsys: pytest.CaptureFixture[str]) -> None:
    """The author has caught and reported them: the first frame is the author's, not the engine's."""
    errors = errors_of()
    for lines in ("", "\n"):
        errors.note("report", failure(f"{lines}__import__('json').loads('{{')"), "the task goes on")
    assert [each.value for each in errors.metrics()] == [1, 1]
    assert capsys.readouterr().err.count("Traceback") == 2


def test_distinct_failures_and_their_texts_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    """An author may make classes and code without end, with names and tracebacks of any length."""
    errors = errors_of()
    for number in range(230):
        errors.note("p" * 400, failure("\n" * number + f"raise ValueError({'x' * 9000!r})"), "x")
    found = errors.metrics()
    assert (len(found), found[-1].labels, found[-1].value) == (201, {"error": "other errors"}, 30)
    assert found[0].labels["error"].endswith("ValueError at /home/me/heron/topology.py, line 1")
    events = errors.take_events()
    assert max(len(each.labels["error"]) for each in found) == 300
    assert max(len(event.attributes["trace"]) for event in events) < 4100
    assert capsys.readouterr().err


def test_errors_that_carry_their_place_are_told_apart_by_it(capsys: pytest.CaptureFixture[str]) -> None:
    """All of them are raised at one line of the engine, or never."""
    errors = errors_of()
    for place in ("job.py, line 3", "job.py, line 4", "job.py, line 3"):
        try:
            error = UserCodeError("it failed")
            error.place = place
            raise error
        except UserCodeError as raised:
            errors.note("the component", raised, "the task continues")
        errors.note("emit", ValueError("was not raised"), "the task continues", place)
        assert f"with '{place}' raised" in errors.last
    assert errors.count == 6
    assert capsys.readouterr().err.count("; the task continues\n") == 3


def test_records_are_shortened_and_may_have_no_repr(capsys: pytest.CaptureFixture[str]) -> None:
    """A record of a megabyte or a broken __repr__ must not hide the failure."""

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    errors = errors_of()
    assert len(errors.report("process", failure("1 / 0"), "x", "y" * 10_000)) < 400
    assert "with Broken() raised" in errors.report("process", failure("1 / 0"), "x", Broken())
    assert capsys.readouterr().err


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_stderr_may_be_closed_or_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, stderr: str | None
) -> None:
    """The author's code may do anything with `sys.stderr`; the failure is counted, and the log has it."""
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if stderr else None)
    errors = errors_of()
    assert "ZeroDivisionError" in errors.report("process", failure("1 / 0"), "x")
    assert errors.count == 1
    assert "ZeroDivisionError" in caplog.text


def test_an_exception_whose_text_raises_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """It is named by its class."""
    source = "class E(Exception):\n  def __str__(self): raise LookupError\nraise E"
    assert "raised E: <no message: its __str__ raised LookupError>; at /home/me/heron/topology.py, line 3" in (
        errors_of().report("process", failure(source), "x")
    )
    assert capsys.readouterr().err


def test_an_error_without_a_traceback_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """The error of a rejected row was never raised."""
    assert "at an unknown line" in errors_of().report("emit", ValueError("no"), "x")
    assert capsys.readouterr().err


def test_an_error_within_the_engine_names_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a frame of the author, the innermost frame is the place."""
    try:
        Path("/no/such/file").read_bytes()
    except OSError as error:
        line = errors_of().report("x", error, "y")
        assert "test_user_errors.py" in line
    assert capsys.readouterr().err


def test_an_error_of_another_process_has_the_place_that_it_brings(capsys: pytest.CaptureFixture[str]) -> None:
    """Its traceback has stayed there; without a place, all such errors would be one."""
    errors = errors_of()
    for place in ("job.py, line 3", "job.py, line 4", "job.py, line 3"):
        error = UserCodeError("it failed")
        error.place = place
        assert f"at {place}; " in errors.report("the component", error, "the task continues")
    assert errors.count == 3
    assert len(errors.take_events()) == 2
    assert (
        capsys.readouterr().err.count("heron: topology 'words', component 'count', task 5: the component raised") == 2
    )


def test_an_error_of_another_language_is_shown_as_its_author_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Class, line and trace are those of the language; the lines of the engine would hide them."""
    errors = errors_of()
    error = UserCodeError("java.lang.Error: no")
    error.place, error.exception, error.trace = "Split.java:3", "java.lang.Error", "java.lang.Error: no\n\tat Split\n"
    line = errors.report("process", error, "the task goes on")
    assert line.endswith("task 5: process raised java.lang.Error: no; at Split.java:3; the task goes on")
    assert capsys.readouterr().err == f"heron: {line}\njava.lang.Error: no\n\tat Split\n"
    (event,) = errors.take_events()
    assert event.attributes["exception"] == "java.lang.Error"
    assert event.attributes["trace"] == "java.lang.Error: no\n\tat Split\n"


def test_parts_of_a_component_that_fail_at_one_line_are_shown_separately(capsys: pytest.CaptureFixture[str]) -> None:
    """Operators of a pipeline may use one function; the first that fails must not hide the others."""
    errors = errors_of()
    for part in ("map-1", "map-2", "map-1"):
        error = UserCodeError(f"operator {part} failed")
        error.part, error.place = part, "job.py, line 3"
        errors.report("the component", error, "the task continues")
    assert [event.attributes["message"].count("map-2") for event in errors.take_events()] == [0, 1]
    assert [each.value for each in errors.metrics()] == [2, 1]
    assert capsys.readouterr().err.count("the component raised") == 2


def test_a_task_that_was_started_again_has_events_of_its_own() -> None:
    """A reader that knows an event by its id would not see the error of the second life."""
    lives = [UserErrors("words", "count", 5, incarnation) for incarnation in (1, 2)]
    for errors in lives:
        errors.report("process", failure("1 / 0"), "it goes on")
    assert len({event.id for errors in lives for event in errors.take_events()}) == 2
