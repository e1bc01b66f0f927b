"""Rules of steps between processes, and the commands for their dead letters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from checked_rules import check_kept, check_skipped, check_stopped

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


def test_a_step_keeps_what_fails_among_the_dead_letters(sandbox: Sandbox) -> None:
    """In the tasks of spouts and of bolts; nothing else is lost."""
    run = sandbox.run("step_rules.py", args=("--rule", "dead_letter"))
    run.finished()
    check_kept(sandbox, run)


def test_a_step_skips_although_the_topology_stops(sandbox: Sandbox) -> None:
    """The rule of the step decides."""
    run = sandbox.run("step_rules.py", args=("--rule", "skip", "--stops", "1"))
    run.finished()
    check_skipped(run)


def test_a_step_stops_the_run(sandbox: Sandbox) -> None:
    """With its error."""
    check_stopped(sandbox.run("step_rules.py", args=("--rule", "stop")))


def test_letters_of_steps_are_dropped_while_the_pipeline_runs_and_not_replayed(sandbox: Sandbox) -> None:
    """The refusal names the step; the tasks that wrote the letters drop them."""
    run = sandbox.start("step_rules.py", args=("--rule", "dead_letter", "--wait", "1"))
    words = ("dead-letters", "step_rules")

    def stored() -> dict[str, str]:
        return {each["step"]: each["id"] for each in json.loads(sandbox.output_of(*words, "list", "--json"))}

    run.until((sandbox.home / ".heron" / "state" / "pplans" / "step_rules").exists, "its topology manager leads")
    run.until(lambda: stored().keys() >= {"here", "there"}, "letters of a spout and of a bolt")
    letters = stored()
    refused = sandbox.heron(*words, "replay", letters["here"], letters["there"], "--json", code=1)
    answer = json.loads(refused.stdout)
    assert answer["done"] == []
    for step in ("here", "there"):
        assert f"is of the step '{step}', which cannot get it again" in answer["left"][letters[step]]
    assert stored().items() >= letters.items()
    dropped = sandbox.output_of(*words, "drop", letters["here"], letters["there"], "--yes")
    assert dropped == "2 of 2 dead letters dropped\n"
    assert not stored().keys() & {"here", "there"}
    (run.out / "go").touch()
    run.finished()
