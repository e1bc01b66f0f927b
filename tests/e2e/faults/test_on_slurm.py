"""Topologies on a Slurm with three nodes: the demo, faults of jobs and nodes, updates, warnings, and a clean end."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from committed_lines import PARTITIONS, check_committed, committed
from heron_testing.waiting import wait_until
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.slurm import NODES, SlurmCluster
from heron_testing_servers.zookeeper import ZooKeeperServer
from line_journal import Lines
from on_cluster import BACK_S, ClusterJournal, OnCluster, shipped_profile

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_HERE = ("--profile", "my-slurm")
_SUBMITTED_S = 120.0
_OVER_S = 300.0
_STATUS_S = 10.0  # how soon a person learns why a container does not run
_LIMIT = 3  # minutes; Slurm warns 60 s before it, or up to 60 s earlier
_LOOPS = 30
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
  on_warning: [{heron}, checkpoints, "{{topology}}", take, --profile, my-slurm]
engine: {{heron.executor.stable.s: 0}}
"""


@pytest.fixture
def cluster(sandbox: Sandbox, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """The complete, empty cluster, and the profile ``my-slurm`` that names it."""
    slurm.start()
    slurm.clear()
    sandbox.environ.update(slurm.environment)
    for name, value in slurm.environment.items():  # this process asks for the status too
        monkeypatch.setenv(name, value)
    heron = Path(sys.executable).with_name("heron")
    sandbox.write_profile("my-slurm", _PROFILE.format(home=sandbox.home, programs=slurm.programs, heron=heron))
    yield slurm
    slurm.start()
    slurm.clear()
    _resume(slurm)


class SlurmHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, cluster: SlurmCluster, journal: ClusterJournal) -> None:
        self.cluster, self.journal = cluster, journal

    def cancel_job(self) -> set[int]:
        """Cancel the job of a container, as a user does."""
        self.cluster.ask("scancel", self._job(1)[0])
        return {1}

    def kill_script(self) -> set[int]:
        """Kill the batch script, and nothing but that."""
        self.cluster.ask("scancel", "--batch", "--signal=KILL", self._job(2)[0])
        return {2}

    def warn(self) -> set[int]:
        """Warn the job of the topology manager, as Slurm does before a time limit."""
        self.cluster.ask("scancel", "--batch", "--signal=USR1", self._job(0)[0])
        return {0}

    def lose_node(self) -> set[int]:
        """Take the node of a container away; Slurm kills what runs there."""
        _, node = self._job(2)
        lost = {each for each in range(3) if self._job(each)[1] == node}
        self.cluster.ask("scontrol", "update", f"nodename={node}", "state=DOWN", "reason=test")
        wait_until(
            lambda: not self.cluster.ask("squeue", "-h", "-w", node, "-t", "RUNNING"), BACK_S, f"{node} is empty"
        )
        _resume(self.cluster)
        return lost

    def preempt(self) -> set[int]:
        """Let a job of another partition take the node of a container."""
        _, node = self._job(1)
        lost = {each for each in range(3) if self._job(each)[1] == node}
        urgent = ("--partition=urgent", "--exclusive", f"--nodelist={node}", "--job-name=urgent", "--output=/dev/null")
        self.cluster.ask("sbatch", *urgent, "--wrap", "exit 0")
        return lost

    def lose_controller(self) -> set[int]:
        """Kill slurmctld for half a minute: no container notices, and `heron kill` changes nothing."""
        self.cluster.controller.kill()
        assert "slurm" in self.journal.cluster.output_of("kill", "journal", code=2).lower()
        self.journal.flows_on("the end of the controller")
        self.cluster.start()
        return set()

    def _job(self, container_id: int) -> tuple[str, str]:
        """Return the number and the node of the running job of a container."""
        found = self.cluster.ask("squeue", "-h", "-t", "RUNNING", "-n", f"heron.journal.{container_id}", "-o", "%A %N")
        number, node = found.split()
        return number, node


def test_the_example_counts_exactly(sandbox: Sandbox, cluster: SlurmCluster, examples: Path) -> None:
    """The commands of the page: check, submit, status, squeue. The counts are those of the text."""
    assert "slurm-wlm" in sandbox.output_of("profiles", "check", "my-slurm")
    _count_words(sandbox, cluster, examples, "my-slurm")


def test_the_shipped_profile_counts_exactly(
    sandbox: Sandbox, cluster: SlurmCluster, zookeeper: ZooKeeperServer, s3: S3Server, examples: Path
) -> None:
    """State in ZooKeeper, packages in S3: `heron profiles check slurm` asks all three servers."""
    environment = ["HOME", "TMPDIR", "PATH", "LD_LIBRARY_PATH", "SLURM_CONF"]
    options = {"root": f"{sandbox.home}/.heron/jobs", "programs": str(cluster.programs), "environment": environment}
    shipped_profile(sandbox, "slurm", {**options, "manager_cpu": 1}, "slurm-wlm", (zookeeper, s3))
    _count_words(sandbox, cluster, examples, "slurm")


@pytest.mark.parametrize("harms", ["cancel_job kill_script warn", "lose_node preempt", "lose_controller"])
def test_no_line_is_lost_whatever_slurm_does(sandbox: Sandbox, cluster: SlurmCluster, harms: str) -> None:
    """At least once: only the containers of these jobs restart, in new jobs, and all lines are counted."""
    journal = ClusterJournal(OnCluster(sandbox, "my-slurm"))
    harm = SlurmHarm(cluster, journal)
    for each in harms.split():
        journal.survives(getattr(harm, each))
    journal.let_go()
    assert cluster.jobs() == []


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [78])
def test_no_line_is_lost_in_minutes_of_faults(sandbox: Sandbox, cluster: SlurmCluster, seed: int) -> None:
    """Processes, jobs, nodes and the controller are killed in any order."""
    journal = ClusterJournal(OnCluster(sandbox, "my-slurm"))
    harm = SlurmHarm(cluster, journal)
    of_jobs = (journal.kill_executor, journal.kill_launcher, harm.cancel_job, harm.kill_script, harm.warn)
    journal.survives_minutes(seed, (*of_jobs, harm.lose_node, harm.preempt, harm.lose_controller))
    journal.let_go()
    assert cluster.jobs() == []


def test_containers_come_and_go_without_loss(sandbox: Sandbox, cluster: SlurmCluster) -> None:
    """From two containers to four and to one, while another topology runs beside; `heron kill` leaves nothing."""

    def jobs() -> int:
        running = cluster.ask("squeue", "-h", "-t", "RUNNING", "-o", "%j").split()
        return sum(each.startswith("heron.updating.") for each in running)

    steps = {"--container-number 2": 3, "--container-number 4": 5, "--container-number 1": 2}
    OnCluster(sandbox, "my-slurm").update(steps, jobs)
    assert cluster.jobs() == []


@pytest.mark.parametrize(
    ("options", "cause", "reason"),
    [
        pytest.param({}, "no machine of the cluster takes it now", r"job \d+ is PENDING \(", id="room"),
        pytest.param(
            {"partition": "short", "time_limit": "10-00"},
            "a time limit forbids or ended it",
            r"job \d+ is PENDING \(PartitionTimeLimit\)",
            id="time-limit",
        ),
    ],
)
def test_a_container_that_waits_says_why(
    sandbox: Sandbox, cluster: SlurmCluster, options: dict[str, str], cause: str, reason: str
) -> None:
    """`heron status` has Slurm's words, and `heron explain` the cause; `heron kill` leaves nothing."""
    if not options:
        for node in NODES:
            cluster.ask("scontrol", "update", f"nodename={node}", "state=DRAIN", "reason=test")
    settings = [word for name, value in options.items() for word in ("--set", f"scheduler.{name}={value}")]
    journal = Lines(sandbox, *settings, command="submit my-slurm")
    assert journal.run.wait(_SUBMITTED_S) == 0, journal.run.all_output

    def shown() -> bool:
        output = sandbox.output_of("status", "journal", *_HERE, "--timeout", "1", code=1)
        return re.search(f"container 0 does not run, after 0 starts: {reason}", output) is not None

    wait_until(shown, _STATUS_S, f"the status has {reason}")
    explained = sandbox.output_of("explain", "journal", *_HERE, "--timeout", "1")
    assert re.search(f"3 of 3 containers do not run: 0, 1, 2\n +why +{cause}: {reason}", explained), explained
    sandbox.output_of("kill", "journal", *_HERE)
    assert cluster.jobs() == []
    assert not sandbox.remaining()


def test_at_its_time_limit_a_topology_saves_and_continues(sandbox: Sandbox, cluster: SlurmCluster) -> None:
    """Effectively once, without periodic checkpoints: what the first jobs have done is committed, once and in order."""
    limit = ("--set", f"scheduler.time_limit={_LIMIT}")
    run = sandbox.start("exactly_once.py", *limit, command="submit my-slurm", args=("--interval", "3600"))
    assert run.wait(_SUBMITTED_S) == 0, run.all_output
    wait_until(lambda: _attempts(sandbox, "exactly_once") == [1, 1, 1], BACK_S, "all containers run")
    wait_until(lambda: all(each > 1 for each in _attempts(sandbox, "exactly_once")), _OVER_S, "all have moved")
    assert cluster.ask("squeue", "-h", "-t", "TIMEOUT", "-o", "%j") == "", "they have ended in order"
    wait_until(lambda: committed(run.out), BACK_S, "lines of a checkpoint, which only the warning takes")
    before = sum(map(len, committed(run.out).values()))
    (run.out / "stop").touch()
    wait_until(lambda: "exactly_once" in _finished(sandbox), _OVER_S, "the end")
    assert check_committed(run.out, PARTITIONS) > before


def _count_words(sandbox: Sandbox, cluster: SlurmCluster, examples: Path, profile: str) -> None:
    """Run the example to its end; users of Slurm find the jobs by their names and comments."""

    def shown(_submission: HeronRun) -> None:
        wait_until(lambda: _runs(sandbox, profile), BACK_S, "the topology runs")
        labels = cluster.ask("squeue", "-h", "-o", "%j %k").splitlines()
        assert "heron.word_count.1" in {line.split()[0] for line in labels}
        assert all("heron topology=word_count container=" in line and " owner=" in line for line in labels)

    OnCluster(sandbox, profile).count_example(examples, _LOOPS, shown)
    wait_until(lambda: not cluster.jobs(), BACK_S, "no job is left")


def _runs(sandbox: Sandbox, profile: str) -> bool:
    return sandbox.start_command("status", "word_count", "--profile", profile).wait() == 0


def _attempts(sandbox: Sandbox, topology: str) -> list[int]:
    """Return the number of starts of each container that runs; 0 for the others."""
    found = _document(sandbox, topology).get("containers", [])
    return [each["attempts"] if each["running"] else 0 for each in found]


def _document(sandbox: Sandbox, topology: str) -> dict[str, Any]:
    """Return the output of `heron status`; empty while the topology manager is being restarted."""
    try:
        return sandbox.status_document(topology, *_HERE)
    except AssertionError:
        return {}


def _finished(sandbox: Sandbox) -> set[str]:
    """Return the topologies that are listed as finished; any list cleans up after them."""
    listed = json.loads(sandbox.output_of("list", "my-slurm", "--json"))
    return {each["name"] for each in listed if each["state"] == "finished"}


def _resume(cluster: SlurmCluster) -> None:
    """Let all nodes take jobs again."""
    states = dict(line.split() for line in cluster.ask("sinfo", "-h", "-N", "-o", "%N %t").splitlines())
    for node, state in states.items():
        if state.startswith(("dra", "drng", "drain", "down")):
            cluster.ask("scontrol", "update", f"nodename={node}", "state=RESUME")
