"""A running topology gets new code: its state and its output stay exact, and code that does not work returns."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from committed_lines import PARTITIONS, check_committed, commits
from tallies import check_tallies

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
    assert f"at {program}, line " in failed
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


def test_canaries_that_fail_return_and_others_take_the_rest_with_them(sandbox: Sandbox, program: Path) -> None:
    """The comparison is printed; what the canaries did to the output is undone."""
    run = started(sandbox, program)
    words = ("update", "exactly_once", "--code", str(program), "--canary", "50%", "--canary-for", "3")
    edit(program, COUNTED, f"        raise ValueError('no process here')\n{COUNTED}")
    failed = sandbox.heron(*words, code=1)
    assert "count: new " in failed.stdout
    assert "worse, 100.0% of its tuples failed with the new code" in failed.stdout
    assert "runs its former code again: count: 100.0% of its tuples failed" in failed.stderr
    commits(run, "after canaries that fail")
    edit(program, "        raise ValueError('no process here')\n", "        self.seen = True\n")
    done = update(sandbox, program, "--canary", "50%", "--canary-for", "3")
    assert (len(done["tasks"]), len(done["canaries"]), len(done["compared"])) == (2, 1, 1)
    commits(run, "of the new code")
    check_exact(run)


def test_without_checkpoints_spouts_and_bolts_are_replaced_and_nothing_is_lost(
    sandbox: Sandbox, sandbox_programs: Path
) -> None:
    """Each number of each spout task is counted once, and the trees of the former spout are complete."""
    folder = sandbox.root / "program"
    folder.mkdir()
    for name in ("updating.py", "recording.py"):
        shutil.copyfile(sandbox_programs / name, folder / name)
    program = folder / "updating.py"
    run = sandbox.start(program, args=("--out", str(sandbox.root / "out0"), "--mode", "ATLEAST_ONCE"))
    sandbox.wait_for_state(run, "updating")
    run.grows(lambda: sandbox.executed("updating", "tally"), "tuples at the start", 300)
    edit(program, "        self.number = number + 1\n", "        self.number = 1 + number\n")
    edit(program, "        self.seen.add(tup.values[2])\n", "        self.seen.add(tup.values[2], 2)\n")
    words = ("update", "updating", "--code", str(program), "--json")
    assert json.loads(sandbox.output_of(*words))["changed"] == ["numbers", "pass"]
    run.grows(lambda: sandbox.executed("updating", "tally"), "tuples of the new code", 300)
    assert all(each["failed"] == 0 for each in sandbox.status("updating")["components"])
    (run.out / "stop").touch()
    components = run.finished().components
    assert check_tallies(run) == components["numbers"].emitted == components["tally"].executed > 0


def test_a_saved_file_reaches_the_running_tasks(sandbox: Sandbox, program: Path) -> None:
    """Tasks go on with their state; code with an error is printed once, with its line, and the former runs on."""
    run = started(sandbox, program, "--reload")
    edit(program, COUNTS, f"        print('second version', flush=True)\n{COUNTS}")
    run.printed("second version")
    run.printed("heron: reloaded count in ")
    edit(program, COUNTS, f"        none.such\n{COUNTS}")
    run.printed("NameError: name 'none' is not defined")
    run.printed("heron: not reloaded, the former code runs on")
    edit(program, "        none.such\n", "        def\n")
    run.printed("SyntaxError: invalid syntax")
    commits(run, "after errors")
    assert run.stderr.count("NameError: name 'none' is not defined") == 1
    assert run.stderr.count("SyntaxError: invalid syntax") == 1
    edit(program, "        def\n", "")
    check_exact(run)
