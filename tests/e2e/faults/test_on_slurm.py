"""Topologies on a Slurm with three nodes: the demo, faults of jobs and nodes, updates, warnings, and a clean end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from pydoc_data import topics
from typing import TYPE_CHECKING, Any

import pytest

from committed_lines import PARTITIONS, check_committed, committed
from heron_testing.waiting import wait_until, wait_until_grown
from heron_testing_servers.slurm import NODES, SlurmCluster
from line_journal import Lines

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_HERE = ("--profile", "slurm")
_SUBMITTED_S = 120.0
_BACK_S = 150.0
_OVER_S = 300.0
_AWAY_S = 30.0
_LOOPS = 5
# All that runs in Slurm belongs to the sandbox of the test, which looks for it.
_PROFILE = """\
extends: local
scheduler:
  driver: slurm
  root: {home}/.heron/jobs
  programs: {programs}
  environment: [HOME, TMPDIR, PATH, LD_LIBRARY_PATH, SLURM_CONF]
  stable_s: 0
  manager_cpu: 1
  on_warning: [{heron}, checkpoints, take, "{{topology}}", --profile, slurm]
engine: {{heron.executor.stable.s: 0}}
"""


@pytest.fixture
def cluster(sandbox: Sandbox, slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """The complete, empty cluster, and the profile ``slurm`` that names it."""
    slurm.start()
    slurm.clear()
    sandbox.environ.update(slurm.environment)
    heron = Path(re.__file__).parents[2] / "bin" / "heron"
    sandbox.write_profile("slurm", _PROFILE.format(home=sandbox.home, programs=slurm.programs, heron=heron))
    yield slurm
    slurm.start()
    slurm.clear()
    _resume(slurm)


class SlurmJournal:
    """A run that processes lines from the beginning until `let_go`."""

    def __init__(self, sandbox: Sandbox, cluster: SlurmCluster) -> None:
        self.sandbox, self.cluster = sandbox, cluster
        self.lines = Lines(sandbox, pause_s=0.05, command="submit slurm")
        assert self.lines.run.wait(_SUBMITTED_S) == 0, self.lines.run.all_output
        self.flows("the start")
        wait_until(lambda: len(self.attempts()) == 3, _BACK_S, "all containers run")

    def attempts(self) -> dict[int, int]:
        """Return the number of starts of each running container; empty while there is no status."""
        return {each["container_id"]: each["attempts"] for each in self.containers() if each["running"]}

    def containers(self) -> list[dict[str, Any]]:
        """Return the containers of the status."""
        try:
            found: list[dict[str, Any]] = self.sandbox.status_document("journal", *_HERE)["containers"]
        except (AssertionError, KeyError):
            return []
        return found

    def job(self, container_id: int) -> tuple[str, str]:
        """Return the number and the node of the running job of a container."""
        found = self.cluster.ask("squeue", "-h", "-t", "RUNNING", "-n", f"heron.journal.{container_id}", "-o", "%A %N")
        number, node = found.split()
        return number, node

    def flows(self, after: str) -> None:
        """Wait until more lines are acked."""
        wait_until_grown(self.lines.acked_bytes, _BACK_S, f"lines after {after}")

    def is_back(self, before: dict[int, int], container_id: int, after: str) -> None:
        """Wait until a container runs again."""

        def back() -> bool:
            now = self.attempts()
            return len(now) == len(before) and now[container_id] > before[container_id]

        wait_until(back, _BACK_S, f"container {container_id} runs again after {after}")

    def let_go(self) -> None:
        """End the run, and check that every word of every line has arrived."""
        self.lines.let_go()
        wait_until(self.is_over, _OVER_S, "the topology has ended and left nothing")
        self.lines.check()

    def is_over(self) -> bool:
        """Return whether it is listed as finished and nothing of it is left; any list cleans up ended topologies."""
        listed = self.sandbox.output_of("list", "slurm")
        return "finished" in listed and not self.sandbox.remaining() and not self.cluster.jobs()


def cancel_job(journal: SlurmJournal) -> int:
    """Cancel the job of a container, as a user does."""
    journal.cluster.ask("scancel", journal.job(1)[0])
    return 1


def cancel_batch_step(journal: SlurmJournal) -> int:
    """Kill the batch step, and nothing but that."""
    journal.cluster.ask("scancel", "--signal=KILL", f"{journal.job(2)[0]}.batch")
    return 2


def warn(journal: SlurmJournal) -> int:
    """Warn the job of the topology manager, as Slurm does before a time limit."""
    journal.cluster.ask("scancel", "--batch", "--signal=USR1", journal.job(0)[0])
    return 0


def lose_node(journal: SlurmJournal) -> int:
    """Take the node of a container away; Slurm kills what runs there."""
    node = journal.job(2)[1]
    journal.cluster.ask("scontrol", "update", f"nodename={node}", "state=DOWN", "reason=test")
    return 2


def preempt(journal: SlurmJournal) -> int:
    """Let a job of another partition take the node of a container."""
    node = journal.job(1)[1]
    journal.cluster.ask(
        *(
            "sbatch",
            "--partition=urgent",
            "--exclusive",
            f"--nodelist={node}",
            "--job-name=urgent",
            "--output=/dev/null",
        ),
        *("--wrap", "exit 0"),
    )
    return 1


def test_the_example_counts_exactly(sandbox: Sandbox, cluster: SlurmCluster, examples: Path) -> None:
    """The commands of the page: check, submit, status, squeue. The counts are those of the text."""
    assert "slurm-wlm" in sandbox.output_of("profiles", "check", "slurm")
    counts = sandbox.root / "counts.tsv"
    args = ("--loops", str(_LOOPS), "--out", str(counts))
    run = sandbox.run(examples / "word_count.py", args=args, command="submit slurm")
    assert run.wait() == 0, run.all_output
    labels = cluster.ask("squeue", "-h", "-o", "%j %k").splitlines()
    assert "heron.word_count.1" in {line.split()[0] for line in labels}
    assert all("heron topology=word_count container=" in line and " owner=" in line for line in labels)

    def over() -> bool:
        return "finished" in sandbox.output_of("list", "slurm") and not cluster.jobs()

    wait_until(over, _OVER_S, "the end")
    words = Counter(word for text in topics.topics.values() for word in text.lower().split())
    rows = (line.rsplit("\t", 1) for line in counts.read_text(encoding="utf-8").splitlines())
    assert {word: int(count) for word, count in rows} == {word: count * _LOOPS for word, count in words.items()}


@pytest.mark.parametrize(
    "harms",
    [
        pytest.param((cancel_job, cancel_batch_step, warn), id="jobs"),
        pytest.param((lose_node, preempt), id="nodes"),
    ],
)
def test_no_line_is_lost_whatever_slurm_does(
    sandbox: Sandbox, cluster: SlurmCluster, harms: tuple[Callable[[SlurmJournal], int], ...]
) -> None:
    """At least once: the next job of the container takes over, and all lines are counted."""
    journal = SlurmJournal(sandbox, cluster)
    for harm in harms:
        before = journal.attempts()
        journal.is_back(before, harm(journal), harm.__name__)
        journal.flows(harm.__name__)
        _resume(cluster)
    journal.let_go()


def test_updates_and_a_controller_that_is_away_lose_no_line(sandbox: Sandbox, cluster: SlurmCluster) -> None:
    """Two containers with data become four and then two. For 30 s there is no slurmctld, and data flows on."""
    journal = SlurmJournal(sandbox, cluster)
    for containers in (4, 2):  # spouts of `journal` cannot leave their containers without checkpoints
        sandbox.output_of("update", "journal", "--container-number", str(containers), *_HERE)
        wait_until(lambda n=containers: len(journal.attempts()) == n + 1, _BACK_S, f"{containers} containers run")  # type: ignore[misc]
        journal.flows(f"the update to {containers}")
    cluster.controller.kill()
    before = journal.lines.acked_bytes()
    with pytest.raises(AssertionError):
        wait_until(lambda: False, _AWAY_S, "the controller is away for a while")
    assert journal.lines.acked_bytes() > before
    assert "slurm" in sandbox.output_of("kill", "journal", *_HERE, code=2).lower()
    cluster.start()
    journal.flows("the controller is back")
    journal.let_go()


def test_a_kill_leaves_nothing_and_pending_jobs_say_why(sandbox: Sandbox, cluster: SlurmCluster) -> None:
    """A container without a node has Slurm's reason within 10 s."""
    for node in NODES:
        cluster.ask("scontrol", "update", f"nodename={node}", "state=DRAIN", "reason=test")
    journal = Lines(sandbox, command="submit slurm")
    assert journal.run.wait(_SUBMITTED_S) == 0, journal.run.all_output
    assert "is PENDING (" in sandbox.output_of("status", "journal", *_HERE, code=1)
    _resume(cluster)
    wait_until_grown(journal.acked_bytes, _BACK_S, "lines")
    sandbox.output_of("kill", "journal", *_HERE)
    assert cluster.jobs() == []
    assert not sandbox.remaining()


def test_a_warned_topology_takes_a_checkpoint_and_continues_from_it(sandbox: Sandbox, cluster: SlurmCluster) -> None:
    """Effectively once, without periodic checkpoints: what the first job has done is committed, once and in order."""
    run = sandbox.start("exactly_once.py", command="submit slurm", args=("--interval", "3600"))
    assert run.wait(_SUBMITTED_S) == 0, run.all_output
    wait_until(lambda: _attempts(sandbox, "exactly_once", 1) == 1, _BACK_S, "container 1 runs")
    sandbox.output_of("checkpoints", "take", "exactly_once", *_HERE)
    before = sum(map(len, committed(run.out).values()))
    cluster.ask("scancel", "--batch", "--signal=USR1", "--state=RUNNING", "--name=heron.exactly_once.1")
    wait_until(lambda: _attempts(sandbox, "exactly_once", 1) == 2, _BACK_S, "container 1 has moved")
    assert sum(map(len, committed(run.out).values())) > before
    (run.out / "stop").touch()
    wait_until(lambda: "finished" in sandbox.output_of("list", "slurm"), _OVER_S, "the end")
    check_committed(run.out, PARTITIONS)


def _attempts(sandbox: Sandbox, topology: str, container_id: int) -> int:
    try:
        containers = sandbox.status_document(topology, *_HERE)["containers"]
    except AssertionError:
        return 0
    return next((each["attempts"] for each in containers if each["container_id"] == container_id), 0)


def _resume(cluster: SlurmCluster) -> None:
    """Let all nodes take jobs again."""
    states = dict(line.split() for line in cluster.ask("sinfo", "-h", "-N", "-o", "%N %t").splitlines())
    for node, state in states.items():
        if state.startswith(("dra", "drng", "drain", "down")):
            cluster.ask("scontrol", "update", f"nodename={node}", "state=RESUME")
