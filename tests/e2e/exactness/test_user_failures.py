"""Errors in user code at run time: counted, shown once, and survived if possible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox
    from heron_testing.waiting import Eventually

TOPOLOGIES = Path(__file__).parents[1] / "topologies"
NUMBERS = 90
TIMES = 3


@pytest.mark.guarantee
def test_mistakes_fail_their_tuple_and_are_shown_once(sandbox: Sandbox) -> None:
    """Each error happens three times; all good tuples arrive, and the message gives the next step.

    Guarantee: a mistake of user code fails its tuple and is shown once.
    """
    run = sandbox.start("mishaps.py", "--set", "heron.tuple.max.bytes=4096")
    report = run.finished()

    rows = [row for rows in run.results("record").values() for row in rows]
    assert [row[-1] for row in rows] == [number for number in range(NUMBERS) if not lost(number)]
    figures = {name: (each.emitted, each.executed, each.failed) for name, each in report.components.items()}
    assert figures["numbers"] == (NUMBERS, 0, 0)
    assert figures["mishap"][1:] == (NUMBERS, 7 * TIMES)
    assert figures["record"][1:] == (len(rows), 0)

    for output in (
        "values=(hidden)) raised ZeroDivisionError: division by zero",
        "emit of 1 values, the stream declares 2 fields (key, number)",
        "emit to unknown stream 'defalt' (nearest: 'default')",
        "emit of a int, not a list of values",
        "cannot be encoded",
        "exceeds heron.tuple.max.bytes, 4096 bytes",
        "is of type list, which cannot be grouped by",
        "next_tuple raised ConnectionError: the source is away",
    ):
        lines = [line for line in run.stderr.splitlines() if output in line and line.startswith("heron: error:")]
        assert len(lines) == 1, f"{output!r} is shown {len(lines)} times\n{run.all_output}"
        component = "numbers" if "next_tuple" in output else "mishap"
        assert f"topology 'mishaps', component '{component}', task " in lines[0]
        assert "mishaps.py, line " in lines[0]


def test_the_last_report_has_how_often_each_error_happened(sandbox: Sandbox, eventually: Eventually) -> None:
    """The counts come with the last metrics of a task; the history and the output have the first of each alone."""
    run = sandbox.run("mishaps.py", "--set", "heron.tuple.max.bytes=4096", command="submit local")
    assert run.process.returncode == 0, run.all_output
    eventually((sandbox.home / ".heron" / "state" / "reports" / "mishaps").exists, what="the topology has ended")
    report = sandbox.status_document("mishaps")["status"]
    errors = {each["exception"]: each for each in report["user_errors"]}
    division = errors["ZeroDivisionError"]
    (task,) = division["tasks"]
    assert (division["component"], division["count"], division["tasks"]) == ("mishap", TIMES, {task: TIMES})
    assert division["first_at_s"] <= division["newest_at_s"]
    assert "mishaps.py, line " in division["place"]
    assert division["trace"].endswith("ZeroDivisionError: division by zero\n")
    assert "values=(hidden)" in division["message"]
    assert errors["ConnectionError"]["count"] == 1
    assert f"(raised {TIMES} times, first " in sandbox.output_of("status", "mishaps").replace("\n", " ")
    assert (
        sandbox.log_text("mishap-*.out").count("ZeroDivisionError at ") == 1
    )  # the second one says that it is counted
    (problem,) = [
        each
        for each in json.loads(sandbox.output_of("explain", "mishaps", "--json"))["problems"]
        if "ZeroDivisionError" in each["what"]
    ]
    assert problem["what"].startswith(f"mishap/{task} raised ZeroDivisionError {TIMES} times at mishaps.py, line ")
    sandbox.output_of("kill", "mishaps")  # removes what an ended topology left


def lost(number: int) -> bool:
    """Return whether the good tuple of a number is never emitted, because its process raised before."""
    return number // 10 < TIMES and number % 10 in (0, 1, 2, 3, 6)


@pytest.mark.parametrize(
    "where", ["constructor", pytest.param("initialize", marks=pytest.mark.guarantee), "finish", "process"]
)
def test_a_component_that_cannot_go_on_fails_the_run(sandbox: Sandbox, where: str) -> None:
    """Exit code 1 and one complete line for the author; in `process` only with `topology.on.error`.

    Guarantee: a component that cannot start fails the run with the line of the author's code.
    """
    run = sandbox.run("broken.py", args=("--where", where))
    assert run.process.returncode == 1, run.all_output
    assert run.report().state == "failed"
    source = (TOPOLOGIES / "broken.py").read_text(encoding="utf-8").splitlines()
    number = 1 + next(index for index, line in enumerate(source) if "raise LookupError" in line)
    called = "the constructor" if where == "constructor" else where
    for text in (
        "topology 'broken', component 'prices', task ",
        f"{called} ",
        "raised LookupError: the table of prices is missing",
        f"broken.py, line {number}",
    ):
        assert text in run.stderr, run.all_output
    errors = [line for line in run.stderr.splitlines() if line.startswith("heron: error:")]
    assert len(errors) == 1, run.all_output
    assert "Traceback" in run.stdout


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        (
            "exit",
            "process with Tuple(component='numbers', stream='default', task=1, values=(hidden)) raised SystemExit: 3;",
        ),
        ("thread", "ends after 2 s without waiting for the threads 'poller' (at "),
        ("os", "exit code 3 (not given by Heron)"),
        ("streams", "raised LookupError: after the streams; at "),
    ],
)
def test_code_that_ends_its_process_costs_a_restart(sandbox: Sandbox, where: str, shown: str) -> None:
    """It never ends the topology, whatever the exit code, and a thread of the author does not hold it."""
    run = sandbox.run("exiting.py", args=("--where", where))
    report = run.finished()
    assert shown in run.all_output
    assert "died too often" not in run.all_output
    restarted = "(container 1) died and is restarted: exit code " in run.all_output
    assert restarted == (where != "streams"), run.all_output
    if where != "os":
        assert "exiting.py, line " in run.all_output
    assert report.components["exiting"].executed >= 20
