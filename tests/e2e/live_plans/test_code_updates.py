"""A running topology gets new code: its state and its output stay exact, and code that does not work returns."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from committed_lines import PARTITIONS, check_committed, commits
from held_instants import HeldInstants
from line_journal import PATIENT, Lines
from tallies import check_tallies

if TYPE_CHECKING:
    import psutil

    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

STRIKES = (
    *(("prepare", "tmanager"), ("prepare", "new"), ("prepare", "old"), ("prepare", "command")),
    *(("switch", "tmanager"), ("switch", "new"), ("switch", "old"), ("switch", "command")),
    *(("canary", "tmanager"), ("canary", "new"), ("canary", "old"), ("canary", "command")),
)
"""A phase of a change of the code, and its victim: also a task with the new code, and one with the former."""

EXACT_STRIKES = (("initialize", "new"), ("pre_save", "tmanager"), ("pre_save", "old"), ("pre_restore", "command"))
"""An instant of a change of the code with checkpoints, and its victim."""

PATIENT_S = 90.0
"""A machine that is busy with other tests needs a while."""

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
    without_packages(sandbox, run)
    check_exact(run)


def without_packages(sandbox: Sandbox, run: HeronRun) -> None:
    """A container that starts while the store is away says so, and goes on when the store is back."""
    store = sandbox.home / ".heron" / "packages"
    away = store.rename(store.with_name("away"))
    run.the("executor", "/c1.json").kill()
    run.printed("container 1: exit code 1: ")
    away.rename(store)
    commits(run, "of a container that restarts, with the new package")


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
    other = sandbox.root / "other"
    shutil.copytree(program.parent, other)
    edit(other / program.name, COUNTS, f"        print('canary', flush=True)\n{COUNTS}")
    words = ("exactly_once", "--code", str(other / program.name), "--canary", "50%", "--canary-for", "600")
    asked = sandbox.start_command("update", *words)
    asked.printed("canary: ")
    edit(program, "second version", "third version")
    run.printed("heron: not reloaded yet, the former code runs on: an update of topology 'exactly_once' is under way")
    edit(program, "third version", "fourth version")
    asked.process.send_signal(signal.SIGINT)
    assert asked.wait() != 0
    run.printed("fourth version")
    assert "third version" not in run.stdout
    check_exact(run)


def code_of(sandbox: Sandbox, name: str) -> dict[str, Any]:
    """Return the change of the code that is under way, or the last one that the topology manager knows."""
    found: dict[str, Any] = sandbox.status(name)["code"] or {"phase": "", "tasks": []}
    return found


def kill(sandbox: Sandbox, name: str, component: str, victim: str, asked: HeronRun) -> None:
    """Kill a process of the topology, or the command that has asked for the new code."""
    run = sandbox.runs[0]
    if victim == "command":
        asked.process.kill()
        assert asked.wait() < 0
        return
    if victim == "tmanager":
        found = run.the("tmanager")
    else:
        new = set(code_of(sandbox, name)["tasks"])

        def victims() -> list[psutil.Process]:
            tasks = run.commands("instance", f"/{component}-")
            return [each for each, words in tasks if (task_of(words) in new) is (victim == "new")]

        run.until(victims, f"a {victim} task")  # a task that an update adds starts a little later
        found = victims()[0]
    found.kill()
    found.wait(30.0)


def task_of(words: list[str]) -> int:
    """Return the id of the task that a command line starts."""
    return int(Path(words[-1]).stem.rpartition("-")[2])


def wait_for_the_end(sandbox: Sandbox, name: str) -> None:
    """Wait until the change of the code is over; a topology manager that has taken over may not know it any more."""
    over = {"", "complete", "returned"}
    sandbox.runs[0].until(lambda: code_of(sandbox, name)["phase"] in over, "the end of the change")


class CodeOfJournal:
    """A run of ``journal.py`` whose task ``split`` gets other code; each word says by which version it was split."""

    def __init__(self, sandbox: Sandbox, programs: Path) -> None:
        self.sandbox, self.instants = sandbox, HeldInstants(sandbox)
        self.lines = Lines(sandbox, *PATIENT)
        sandbox.wait_for_tasks(self.lines.run, "journal")
        self.lines.flow("the start", PATIENT_S)
        self.program = sandbox.root / "program" / "journal.py"
        self.program.parent.mkdir()
        shutil.copyfile(programs / "recording.py", self.program.with_name("recording.py"))
        self.text = (programs / "journal.py").read_text(encoding="utf-8")
        self.version = self.last = 0

    def ask(self, *options: str) -> HeronRun:
        """Start a command that gives the topology the next version."""
        self.last += 1
        before = 'line % 7}", line, attempt]'
        assert self.text.count(before) == 1
        text = self.text.replace(before, f'line % 7}}", line, {100 + self.last}]')
        self.program.write_text(text, encoding="utf-8")
        return self.sandbox.start_command("update", "journal", "--code", str(self.program), *options)

    def strike(self, phase: str, victim: str) -> None:
        """Kill a process in a phase of a change of the code: all tasks have one version afterwards.

        Only a new task can be held in PREPARE. In SWITCH each task is held before it is told of the new routes.
        Canaries are not held; their death may come after they were compared.
        """
        run, former = self.lines.run, self.version
        instant = {"prepare": "initialize", "switch": "process"}.get(phase, "")
        if instant:
            self.instants.hold(instant)
        if phase == "switch":
            self.instants.reached(run, instant)
        asked = self.ask(*(("--canary", "50%", "--canary-for", "3") if phase == "canary" else ()))
        if phase == "canary":
            asked.printed("canary: ")
        else:
            run.until(lambda: (self.sandbox.status("journal")["update"] or {}).get("phase") == phase, phase)
        kill(self.sandbox, "journal", "split", victim, asked)
        if instant:
            self.instants.release(instant)
        ended = asked.wait()
        wait_for_the_end(self.sandbox, "journal")
        self.lines.flow(f"{victim} died in {phase}", PATIENT_S)
        run.until(lambda: len(self.newest_versions()) == 1, "one version")
        (self.version,) = self.newest_versions()
        what = f"{victim} in {phase}: {asked.all_output}"
        assert self.version in {former, self.last}, what
        assert victim == "command" or (self.version == self.last) is (ended == 0), what
        assert phase == "canary" or self.version == self.last, what

    def newest_versions(self) -> set[int]:
        """Return the versions that have split the newest words; 0 is that of the submission."""
        rows = (self.lines.run.out / "journal").read_text(encoding="utf-8").splitlines()[-100:]
        return {max(0, int(row.split()[2]) - 100) for row in rows}


def test_a_death_at_each_step_of_a_change_loses_nothing(sandbox: Sandbox, sandbox_programs: Path) -> None:
    """All tasks run one version afterwards: the new one, unless canaries have died, or their command has."""
    topology = CodeOfJournal(sandbox, sandbox_programs)
    for phase, victim in STRIKES:
        topology.strike(phase, victim)
    topology.lines.finish()


def test_a_death_at_each_step_of_a_change_with_checkpoints_changes_no_result(sandbox: Sandbox, program: Path) -> None:
    """The topology manager ends the change, also without the command; every line is committed once, in order."""
    instants = HeldInstants(sandbox)
    run = sandbox.start(program, *PATIENT, args=("--out", str(sandbox.root / "out0"), "--interval", "600"))
    sandbox.wait_for_tasks(run, "exactly_once")
    former = COUNTS
    for number, (instant, victim) in enumerate(EXACT_STRIKES):
        sandbox.output_of("checkpoints", "exactly_once", "take")  # a restore after the death before is over
        newer = f"        self.version = {number}\n{COUNTS}"
        edit(program, former, newer)
        former = newer
        instants.hold(instant)
        asked = sandbox.start_command("update", "exactly_once", "--code", str(program))
        instants.reached(run, instant)
        kill(sandbox, "exactly_once", "count", victim, asked)
        instants.release(instant)
        assert (asked.wait() == 0) is (victim != "command"), f"{victim} at {instant}: {asked.all_output}"
        wait_for_the_end(sandbox, "exactly_once")
        assert code_of(sandbox, "exactly_once")["phase"] in {"", "complete"}
    sandbox.output_of("checkpoints", "exactly_once", "take")
    check_exact(run)
