"""The state goes, comes back, or is damaged while data flows: data goes on, and whoever reads it says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from line_journal import SCALED, Lines

from heron_testing.pytest_plugin import wait_until

if TYPE_CHECKING:
    from conftest import Sandbox

STMGR_1, TMANAGER, EXECUTOR_2 = ("stmgr", "/c1/"), ("tmanager", "/c0/"), ("executor", "2.json")


def status(sandbox: Sandbox) -> dict[str, Any]:
    """What `heron status` says of it, once its topology manager is there."""
    document: dict[str, Any] = json.loads(sandbox.say("status", "journal", "--json", "--timeout", "60"))["status"]
    return document


def epoch(sandbox: Sandbox) -> int:
    """Of the topology manager, as its log has it."""
    lines = [line for line in sandbox.log_text("tmanager-0.log").splitlines() if '"leading, epoch ' in line]
    return int(json.loads(lines[-1])["message"].rsplit(" ", 1)[1])


def killed(lines: Lines, place: tuple[str, str]) -> None:
    """kill -9 of that process."""
    lines.run.processes(*place)[0].kill()


def cut(path: Path) -> bytes:
    """Leaves a part of a file, and gives what it was."""
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 7])
    return whole


def test_a_state_directory_that_vanishes_and_returns(sandbox: Sandbox) -> None:
    """Data flows; commands and new processes say where it is missed, and none of them begins an empty one."""
    lines = Lines(sandbox, *SCALED)
    lines.flow("the start")
    former = epoch(sandbox)
    state = sandbox.home / ".heron" / "state"
    away = state.rename(state.with_name("away"))
    try:
        lines.flow("the state went away")
        for words in (("status", "journal"), ("list",), ("kill", "journal")):
            assert f"the state folder {state} is gone; bring it back" in sandbox.say(*words, code=1)
        killed(lines, TMANAGER)
        killed(lines, EXECUTOR_2)  # takes spouts and bolts with it: nobody can place them now
        said = f"the state folder {state} is gone"
        wait_until(lambda: said in sandbox.log_text("tmanager-0.log"), 30.0, "a topology manager that misses it")
        wait_until(lambda: said in sandbox.log_text("executor-2.log"), 30.0, "an executor that misses it")
        assert not state.exists()
    finally:
        away.rename(state)
    lines.flow("the state came back")
    assert status(sandbox)["state"] == "running"
    assert epoch(sandbox) > former
    lines.finish()


def test_damaged_files_of_the_state_are_named_and_what_can_be_known_otherwise_is_repaired(sandbox: Sandbox) -> None:
    """Cut short, one after another; the checksum tells each. In the end `heron kill` removes all there was."""
    lines = Lines(sandbox, *SCALED, command="submit local")
    assert lines.run.wait() == 0, lines.run.spoken
    wait_until(lambda: len(lines.acked()) > 100, 60.0, "lines")
    state = sandbox.home / ".heron" / "state"

    cut(state / "tmanagers" / "journal")  # its holder knows better, and writes it again
    assert status(sandbox)["state"] == "running"

    cut(state / "pplans" / "journal")  # the next leader makes it anew, and everybody takes it
    killed_pids = {each.pid for place in (TMANAGER, STMGR_1) for each in lines.run.processes(*place)}
    for place in (TMANAGER, STMGR_1):
        lines.run.processes(*place)[0].kill()

    def renewed() -> bool:
        now = status(sandbox)
        up = {each["pid"] for each in now["processes"] if each["state"] == "running"}
        return now["plan_version"] > 0 and not up & killed_pids and any("pplans/journal" in e for e in now["errors"])

    wait_until(renewed, 60.0, "a plan that was made anew, and a word of why")
    before = len(lines.acked())
    wait_until(lambda: len(lines.acked()) > before + 200, 60.0, "lines under the new plan")

    packing = cut(state / "packingplans" / "journal")  # who needs it to start says so, and tries again
    lines.run.processes(*EXECUTOR_2)[0].kill()
    named = f"{state}/packingplans/journal: the value has "
    wait_until(lambda: named in sandbox.log_text("executor-2.*"), 30.0, "the name of the damaged node")
    (state / "packingplans" / "journal").write_bytes(packing)
    before = len(lines.acked())
    wait_until(lambda: len(lines.acked()) > before + 200, 60.0, "lines after the repair")

    cut(state / "executionstate" / "journal")  # who submitted it; a copy has it too
    damage = f"{state}/executionstate/journal: the value has "
    assert damage in sandbox.say("status", "journal", code=2)
    assert damage in str(json.loads(sandbox.say("list", "--json"))[0]["errors"])
    again = sandbox.start("journal.py", command="submit local")
    assert again.wait() == 2, again.spoken
    assert "topology 'journal' is already running (id journal-" in again.stderr
    assert f"its state is damaged: {damage}" in again.stderr

    sandbox.say("kill", "journal")
    assert not sandbox.leftovers()


def test_a_topology_that_lost_its_definition_says_so(sandbox: Sandbox) -> None:
    """Without it no topology manager can lead; data flows meanwhile, and with the file it goes on by itself."""
    lines = Lines(sandbox, *SCALED)
    lines.flow("the start")
    definition = sandbox.home / ".heron" / "state" / "topologies" / "journal"
    whole = cut(definition)
    killed(lines, TMANAGER)
    assert f"{definition}: the value has " in sandbox.say("status", "journal", code=2)
    lines.flow("the death of the topology manager")
    definition.write_bytes(whole)
    assert status(sandbox)["state"] == "running"
    lines.finish()
