"""A running topology gets new code: its state and its output stay exact, and code that does not work returns."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from committed_lines import PARTITIONS, check_committed, commits

if TYPE_CHECKING:
    from pathlib import Path

    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

COUNTS = "        self.counts = context.keyed_state("
COUNTED = "        partition, number = tup.values\n        if number"


@pytest.fixture
def program(sandbox: Sandbox, sandbox_programs: Path) -> Path:
    """A copy of the program, which the test changes."""
    folder = sandbox.root / "program"
    folder.mkdir()
    for name in ("exactly_once.py", "recording.py"):
        shutil.copyfile(sandbox_programs / name, folder / name)
    return folder / "exactly_once.py"


def edit(program: Path, before: str, after: str) -> None:
    """Replace a text of the program, which has it once."""
    text = program.read_text(encoding="utf-8")
    assert text.count(before) == 1
    program.write_text(text.replace(before, after), encoding="utf-8")


def started(sandbox: Sandbox, program: Path, *options: str) -> HeronRun:
    """Start the topology; output is committed."""
    out = sandbox.root / "out0"
    run = sandbox.start(program, *options, args=("--out", str(out), "--interval", "0.5"))
    sandbox.wait_for_state(run, "exactly_once")
    commits(run, "at the start")
    return run


def update(sandbox: Sandbox, program: Path, *options: str) -> dict[str, Any]:
    """Give the topology the code of the program."""
    done: dict[str, Any] = json.loads(
        sandbox.output_of("update", "exactly_once", "--code", str(program), *options, "--json")
    )
    return done


def check_exact(run: HeronRun) -> None:
    """End the run: each number is committed once, in order, with its count."""
    (run.out / "stop").touch()
    run.finished()
    assert check_committed(run.out, PARTITIONS) > 0


@pytest.mark.guarantee
def test_new_code_goes_on_with_the_state_and_code_that_does_not_work_returns(sandbox: Sandbox, program: Path) -> None:
    """What does not fit is refused before a task changes; what does not start leaves the former tasks as they are.

    Guarantee: effectively once, new code goes on with the state of the former, and code that fails returns by itself.
    """
    run = started(sandbox, program)
    words = ("update", "exactly_once", "--code", str(program))
    tasks = {each["task_id"] for each in sandbox.status("exactly_once")["tasks"]}
    edit(program, COUNTS, f"        raise ValueError('no counts here')\n{COUNTS}")
    failed = sandbox.output_of(*words, code=1)
    assert "runs its former code again" in failed
    assert "of 'count' in container" in failed
    assert "ValueError: no counts here" in failed
    assert f"{program}:" in failed, "the author's file and line"
    commits(run, "after code that fails")
    assert {each["task_id"] for each in sandbox.status("exactly_once")["tasks"]} == tasks

    edit(program, "        raise ValueError('no counts here')\n", "        print('second version', flush=True)\n")
    edit(program, "class CountBolt(Bolt):", "class CountBolt(Bolt, StatefulComponent):\n    state_version = 2\n")
    assert "state_version 0, and the new code has 2; override migrate_keyed" in sandbox.output_of(*words, code=2)
    edit(program, "class CountBolt(Bolt, StatefulComponent):\n    state_version = 2\n", "class CountBolt(Bolt):")
    edit(program, 'read: Grouping.fields("partition")', "read: Grouping.SHUFFLE")
    assert "'count' reads read/default (shuffle), not read/default (fields by (partition))" in sandbox.output_of(
        *words, code=2
    )
    edit(program, "read: Grouping.SHUFFLE", 'read: Grouping.fields("partition")')

    done = update(sandbox, program)
    assert (done["changed"], len(done["tasks"])) == (["count"], 2)
    run.printed("second version")
    commits(run, "of the new code")
    assert update(sandbox, program)["tasks"] == [], "nothing to change"
    run.processes("instance", "read-")[0].kill()
    commits(run, "of a task that restarts, with the new package")
    check_exact(run)
