"""Each kind of process dies at each instant of a checkpoint, a restore and an update; nothing is lost or doubled.

`held_instants` holds the run at the instant. So a death comes neither before nor after it, also on a slow machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from committed_lines import PARTITIONS, check_committed, committed
from held_instants import HeldInstants
from line_journal import PATIENT, Lines

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


NAME = "exactly_once"
STANDBY = ("--set", "topology.tmanager.standbys=1")
NEVER = 600.0

# Instants of a checkpoint: a task is about to save; all have saved; the manifest is stored; it is complete; a restore.
CHECKPOINT = ("pre_save", "manifest", "complete", "post_save", "pre_restore")
# Instants of an update: a new task starts; its checkpoint is taken; the new plan is restored.
UPDATE = ("initialize", "pre_save", "pre_restore")
ENGINE = ("stmgr", "tmanager", "metricsmgr", "executor")
VICTIMS = ("read", "count", "commit", *ENGINE)
JOURNAL_VICTIMS = ("lines", "split", "journal", *ENGINE, "command")

Strike = tuple[str, str]
"""An instant or a phase, and its victim."""

QUICK_CHECKPOINT: tuple[Strike, ...] = (
    ("pre_save", "count"),
    ("manifest", "tmanager"),
    ("complete", "stmgr"),
    ("complete", "tmanager"),
    ("post_save", "commit"),
    ("pre_restore", "executor"),
)
QUICK_UPDATE: tuple[Strike, ...] = (("initialize", "commit"), ("pre_save", "tmanager"), ("pre_restore", "stmgr"))
QUICK_JOURNAL: tuple[Strike, ...] = (("prepare", "tmanager"), ("switch", "split"))


def phase_of(sandbox: Sandbox, name: str) -> str:
    """Return the phase of the update that is under way, or of the last one."""
    found: str = (sandbox.status(name)["update"] or {}).get("phase", "")
    return found


def victim_of(run: HeronRun, victim: str, leader: int) -> psutil.Process:
    """Return a process of a component or of a role of the engine."""
    if victim == "tmanager" and leader:
        return psutil.Process(leader)
    if victim == "executor":
        return run.the("executor", "1.json")
    found = run.processes(victim) if victim in ENGINE else run.processes("instance", f"/{victim}-")
    return found[0]


def kill(process: psutil.Process) -> None:
    """Kill a process and wait until it is gone."""
    process.kill()
    process.wait(30.0)


class ExactlyOnce:
    """A run of ``exactly_once.py`` that a test can hold."""

    def __init__(self, sandbox: Sandbox, interval_s: float, *options: str) -> None:
        self.sandbox, self.instants = sandbox, HeldInstants(sandbox)
        self.count = self.read = 2
        self.run: HeronRun = sandbox.start(f"{NAME}.py", *PATIENT, *options, args=("--interval", str(interval_s)))
        sandbox.wait_for_tasks(self.run, NAME)  # it takes checkpoints from then on

    def lines(self) -> int:
        """Return the number of committed lines."""
        return sum(map(len, committed(self.run.out).values()))

    def leader(self) -> int:
        """Return the process id of the leading topology manager."""
        return int(self.sandbox.status(NAME)["leader"]["pid"])

    def commits(self, what: str) -> None:
        """Wait until more lines are committed."""
        self.run.grows(self.lines, f"lines {what}", PARTITIONS)

    def strike(self, instant: str, victim: str, leader: int = 0) -> None:
        """Kill a process at an instant of a checkpoint, or of the restore after another death."""
        self.instants.hold(instant)
        if instant == "pre_restore":
            kill(victim_of(self.run, "count", 0))
        self.instants.reached(self.run, instant)
        kill(victim_of(self.run, victim, leader))
        self.instants.release(instant)
        self.commits(f"after {victim} died at {instant}")

    def next_parallelism(self, instant: str) -> str:
        """Return the next change; it has a new task if the instant needs one."""
        if instant != "initialize":
            self.count = 3 if self.count == 2 else 2
        elif self.count <= self.read:
            self.count, self.read = self.count + 1, max(2, self.read - 1)
        else:
            self.count, self.read = max(2, self.count - 1), self.read + 1
        return f"count:{self.count} read:{self.read}"

    def strike_update(self, instant: str, victim: str, leader: int = 0) -> None:
        """Kill a process, or the command, at an instant of an update. It is complete afterwards."""
        self.sandbox.output_of("checkpoints", NAME, "take")  # a restore after the death before is over
        before = self.lines()
        self.instants.hold(instant)
        words = ("update", NAME, "--component-parallelism", self.next_parallelism(instant))
        asked = self.sandbox.start_command(*words)
        self.instants.reached(self.run, instant)
        if victim == "command":
            asked.process.kill()
            assert asked.wait() < 0
        else:
            kill(victim_of(self.run, victim, leader))
        self.instants.release(instant)
        if victim == "command":
            self.run.until(lambda: phase_of(self.sandbox, NAME) == "complete", "the end of the update")
        else:
            assert asked.wait() == 0, f"{victim} at {instant}: {asked.all_output}"
        self.run.until(lambda: self.lines() > before, f"lines after {victim} died at {instant}")

    def finish(self) -> None:
        """End the run: every line is committed once, in order."""
        (self.run.out / "stop").touch()
        self.run.finished()
        assert check_committed(self.run.out, PARTITIONS) > 0


class Journal:
    """A run of ``journal.py``, whose lines must all arrive at least once, and the number of its `split` tasks."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.instants = sandbox, HeldInstants(sandbox)
        self.lines = Lines(sandbox, *PATIENT)
        self.lines.flow("the start")
        self.split = 2

    def strike(self, phase: str, victim: str) -> None:
        """Kill a process, or the command, in a phase of an update. It is complete afterwards.

        Only a new task can be held in PREPARE. In SWITCH each task is held before it is told of the new routes.
        """
        self.split += 1 if phase == "prepare" else -1
        instant, run = ("initialize" if phase == "prepare" else "process"), self.lines.run
        self.instants.hold(instant)
        if phase == "switch":
            self.instants.reached(run, instant)
        words = ("update", "journal", "--component-parallelism", f"split:{self.split}")
        asked = self.sandbox.start_command(*words)
        run.until(lambda: phase_of(self.sandbox, "journal") == phase, f"the phase {phase}")
        if victim == "command":
            asked.process.kill()
        else:
            kill(victim_of(run, victim, 0))
        self.instants.release(instant)
        if victim == "command":
            run.until(lambda: phase_of(self.sandbox, "journal") == "complete", "the end of the update")
        else:
            assert asked.wait() == 0, f"{victim} in {phase}: {asked.all_output}"
        self.lines.flow(f"{victim} died in {phase}")


def check_phases(sandbox: Sandbox, strikes: tuple[Strike, ...]) -> None:
    """Kill these processes in phases of updates of one run."""
    topology = Journal(sandbox)
    for phase, victim in strikes:
        topology.strike(phase, victim)
    topology.lines.finish()


def check_checkpoints(sandbox: Sandbox, strikes: tuple[Strike, ...], *options: str) -> None:
    """Kill these processes at instants of checkpoints of one run."""
    topology = ExactlyOnce(sandbox, 0.5, *options)
    topology.commits("at the start")
    for instant, victim in strikes:
        topology.strike(instant, victim, topology.leader() if victim == "tmanager" else 0)
    topology.finish()


def check_updates(sandbox: Sandbox, strikes: tuple[Strike, ...], *options: str) -> None:
    """Kill these processes at instants of updates of one run, which takes no other checkpoints."""
    topology = ExactlyOnce(sandbox, NEVER, *options)
    for instant, victim in strikes:
        leader = topology.leader() if victim == "tmanager" else 0
        topology.strike_update(instant, victim, leader)
    topology.finish()


@pytest.mark.guarantee
def test_a_death_at_an_instant_of_a_checkpoint(sandbox: Sandbox) -> None:
    """The telling pairs; the others take minutes.

    Guarantee: effectively once, nothing is lost or doubled when a process dies at an instant of a checkpoint.
    """
    check_checkpoints(sandbox, QUICK_CHECKPOINT)


def test_a_death_at_an_instant_of_an_update(sandbox: Sandbox) -> None:
    """The update completes after the death of any process."""
    check_updates(sandbox, QUICK_UPDATE)


@pytest.mark.guarantee
def test_a_death_in_a_phase_of_an_update_at_least_once(sandbox: Sandbox) -> None:
    """The death of any process loses no line.

    Guarantee: an update is completed when a process dies in one of its phases, the topology manager too.
    """
    check_phases(sandbox, QUICK_JOURNAL)


@pytest.mark.soak
def test_each_kind_of_process_dies_in_each_phase_of_an_update_at_least_once(sandbox: Sandbox) -> None:
    """All victims; also the command."""
    check_phases(sandbox, tuple((phase, victim) for victim in JOURNAL_VICTIMS for phase in ("prepare", "switch")))


@pytest.mark.soak
@pytest.mark.parametrize("instant", CHECKPOINT)
def test_each_kind_of_process_dies_at_each_instant_of_a_checkpoint(sandbox: Sandbox, instant: str) -> None:
    """All pairs without a standby."""
    check_checkpoints(sandbox, tuple((instant, victim) for victim in VICTIMS))


@pytest.mark.soak
@pytest.mark.parametrize("instant", UPDATE)
def test_each_kind_of_process_dies_at_each_instant_of_an_update(sandbox: Sandbox, instant: str) -> None:
    """All pairs without a standby; also the command."""
    check_updates(sandbox, tuple((instant, victim) for victim in (*VICTIMS, "command")))


@pytest.mark.soak
def test_a_standby_takes_over_at_each_instant(sandbox: Sandbox) -> None:
    """It goes on with what is written."""
    check_checkpoints(sandbox, tuple((instant, "tmanager") for instant in CHECKPOINT), *STANDBY)


@pytest.mark.soak
def test_a_standby_takes_over_at_each_instant_of_an_update(sandbox: Sandbox) -> None:
    """It goes on with what is written."""
    check_updates(sandbox, tuple((instant, "tmanager") for instant in UPDATE), *STANDBY)
