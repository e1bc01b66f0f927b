"""What a run of `step_rules.py` has to show, on each engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["check_kept", "check_skipped", "check_stopped"]

_WORDS = ("dead-letters", "step_rules")
_FAILED = {"here": "2", "there": "3", "consume-1": "8", "windows": "'odd'"}


def check_skipped(run: HeronRun) -> None:
    """All results but those of the records that failed, and the errors of all four steps."""
    wanted = [f"here {60 // (number - 2)}" for number in range(1, 11) if number != 2]
    wanted += [f"there {60 // (number - 3)}" for number in range(1, 11) if number != 3]
    wanted += [f"consumed {number}" for number in range(1, 11) if number != 8]
    wanted += ["window even 10"]
    printed = [line.rpartition(" | ")[2] for line in run.stdout.splitlines()]  # without the task, where there are two
    results = [line for line in printed if line.startswith(("here ", "there ", "consumed ", "window "))]
    assert sorted(results) == sorted(wanted)
    for step in _FAILED:
        assert f"operator '{step}' (step_rules.py:" in run.all_output


def check_kept(sandbox: Sandbox, run: HeronRun) -> None:
    """As skipped; a letter for each failure, which commands show and drop."""
    check_skipped(run)
    letters = json.loads(sandbox.output_of(*_WORDS, "list", "--json"))
    assert {each["step"]: each["values"][0] for each in letters} == _FAILED
    assert len(letters) == len(_FAILED)
    assert all(each["failures"] == 1 and "Traceback" in each["trace"] for each in letters)
    (first,) = [each for each in letters if each["step"] == "here"]
    assert "element 2" in first["tup_id"]
    shown = sandbox.output_of(*_WORDS, "show", first["id"])
    assert "step here (number 1)" in shown
    assert "ZeroDivisionError" in shown
    assert sandbox.output_of(*_WORDS, "drop", "--all", "--yes") == "4 of 4 dead letters dropped\n"
    assert json.loads(sandbox.output_of(*_WORDS, "list", "--json")) == []


def check_stopped(run: HeronRun) -> None:
    """The run fails with the error of a step and the author's line."""
    assert run.process.returncode == 1, run.all_output
    assert run.report().state == "failed"
    assert "(step_rules.py:" in run.stderr
    assert "ZeroDivisionError" in run.stderr
    assert "because on_error or topology.on.error is 'stop' for it" in run.stderr
