"""The state disappears, returns or is damaged: data flows on, and every reader names the error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until, wait_until_grown
from line_journal import SCALED, Lines

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

STMGR_1, TMANAGER, EXECUTOR_2 = ("stmgr", "/c1/"), ("tmanager", "/c0/"), ("executor", "2.json")


def epoch(sandbox: Sandbox) -> int:
    """Return the epoch of the topology manager from its log."""
    lines = [line for line in sandbox.log_text("tmanager-0.log").splitlines() if '"leading, epoch ' in line]
    return int(json.loads(lines[-1])["message"].rsplit(" ", 1)[1])


def killed(lines: Lines, place: tuple[str, str]) -> None:
    """kill -9 of that process."""
    lines.run.processes(*place)[0].kill()


def cut(path: Path) -> bytes:
    """Truncate a file and return its former content."""
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 7])
    return whole


@pytest.mark.guarantee
def test_a_state_directory_that_vanishes_and_returns(sandbox: Sandbox) -> None:
    """Data flows; commands and new processes name the missing folder, and none of them creates an empty one.

    Guarantee: data flows on without a state directory, and no process creates an empty one.
    """
    lines = Lines(sandbox, *SCALED)
    lines.flow("the start")
    former = epoch(sandbox)
    state = sandbox.home / ".heron" / "state"
    away = state.rename(state.with_name("away"))
    try:
        lines.flow("the state went away")
        for words in (("status", "journal"), ("list",), ("kill", "journal")):
            assert f"the state folder {state} is gone; bring it back" in sandbox.output_of(*words, code=1)
        killed(lines, TMANAGER)
        killed(lines, EXECUTOR_2)  # its spouts and bolts end with it: no process can place them now
        error = f"the state folder {state} is gone"
        wait_until(
            lambda: error in sandbox.log_text("tmanager-0.log"),
            30.0,
            "a report by the topology manager",
        )
        wait_until(lambda: error in sandbox.log_text("executor-2.log"), 30.0, "a report by an executor")
        assert not state.exists()
    finally:
        away.rename(state)
    lines.flow("the state came back")
    assert sandbox.status("journal")["state"] == "running"
    assert epoch(sandbox) > former
    lines.finish()


@pytest.mark.guarantee
def test_damaged_state_files_are_named_and_repaired_if_possible(sandbox: Sandbox) -> None:
    """Each file in turn is truncated; the checksum detects it. In the end `heron kill` removes everything.

    Guarantee: a damaged file of the state is found, named, and repaired if possible.
    """
    lines = Lines(sandbox, *SCALED, command="submit local")
    assert lines.run.wait() == 0, lines.run.all_output
    wait_until(lambda: len(lines.acked()) > 100, 60.0, "lines")
    state = sandbox.home / ".heron" / "state"

    location = state / "tmanagers" / "journal"
    whole = cut(location)
    wait_until(lambda: len(location.read_bytes()) == len(whole), 60.0, "the holder rewrites it")
    assert sandbox.status("journal")["state"] == "running"

    cut(state / "pplans" / "journal")  # the next leader makes a new plan, and every process accepts it
    killed_pids = {each.pid for place in (TMANAGER, STMGR_1) for each in lines.run.processes(*place)}
    for place in (TMANAGER, STMGR_1):
        lines.run.processes(*place)[0].kill()

    def renewed() -> bool:
        now = sandbox.status("journal")
        up = {each["pid"] for each in now["processes"] if each["state"] == "running"}
        return now["plan_version"] > 0 and not up & killed_pids and any("pplans/journal" in e for e in now["errors"])

    wait_until(renewed, 60.0, "a new plan, and a log line with the reason")
    wait_until_grown(lambda: len(lines.acked()), 60.0, "lines under the new plan", by=200)

    packing = cut(state / "packingplans" / "journal")  # a process that needs it to start names the error and retries
    lines.run.processes(*EXECUTOR_2)[0].kill()
    named = f"{state}/packingplans/journal: the value has "
    wait_until(lambda: named in sandbox.log_text("executor-2.*"), 30.0, "the name of the damaged node")
    (state / "packingplans" / "journal").write_bytes(packing)
    wait_until_grown(lambda: len(lines.acked()), 60.0, "lines after the repair", by=200)

    cut(state / "executionstate" / "journal")  # the submission record; the engine has a copy
    damage = f"{state}/executionstate/journal: the value has "
    assert damage in sandbox.output_of("status", "journal", code=2)
    assert damage in str(json.loads(sandbox.output_of("list", "--json"))[0]["errors"])
    again = sandbox.start("journal.py", command="submit local")
    assert again.wait() == 2, again.all_output
    assert "topology 'journal' is already running (id journal-" in again.stderr
    assert f"its state is damaged: {damage}" in again.stderr

    sandbox.output_of("kill", "journal")
    assert not sandbox.remaining()


def test_a_missing_definition_is_named(sandbox: Sandbox) -> None:
    """Without it no topology manager can lead. Data flows on, and the topology recovers when the file is back."""
    lines = Lines(sandbox, *SCALED)
    lines.flow("the start")
    definition = sandbox.home / ".heron" / "state" / "topologies" / "journal"
    whole = cut(definition)
    killed(lines, TMANAGER)
    assert f"{definition}: the value has " in sandbox.output_of("status", "journal", code=2)
    lines.flow("the death of the topology manager")
    definition.write_bytes(whole)
    assert sandbox.status("journal")["state"] == "running"
    lines.finish()
