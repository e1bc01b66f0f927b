"""Topologies on a Slurm with three nodes: the demo, faults of jobs and nodes, updates, warnings, and a clean end."""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from pydoc_data import topics
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from committed_lines import PARTITIONS, check_committed, committed
from heron.clock import monotonic_s
from heron_testing.waiting import wait_until, wait_until_grown
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.slurm import NODES, SlurmCluster
from heron_testing_servers.zookeeper import ZooKeeperServer
from line_journal import Lines
from tallies import check_tallies

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_HERE = ("--profile", "my-slurm")
_SUBMITTED_S = 120.0
_BACK_S = 150.0
_OVER_S = 300.0
_AWAY_S = 30.0
_LIMIT = 3  # minutes; Slurm warns 60 s before it, or up to 60 s earlier
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
  on_warning: [{heron}, checkpoints, "{{topology}}", take, --profile, my-slurm]
engine: {{heron.executor.stable.s: 0}}
"""
_SHIPPED = """\
extends: slurm
scheduler:
  root: {home}/.heron/jobs
  programs: {programs}
  environment: [HOME, TMPDIR, PATH, LD_LIBRARY_PATH, SLURM_CONF]
  manager_cpu: 1
statemgr: {{root: /{mark}}}
uploader:
  driver: s3
  bucket: {mark}
  endpoint_url: {url}
  region: {region}
  access_key_id: {key}
  secret_access_key: ${{env:E2E_STORE_PASSWORD}}
"""


@pytest.fixture
def cluster(sandbox: Sandbox, slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """The complete, empty cluster, and the profile ``my-slurm`` that names it."""
    slurm.start()
    slurm.clear()
    sandbox.environ.update(slurm.environment)
    heron = Path(sys.executable).with_name("heron")
    sandbox.write_profile("my-slurm", _PROFILE.format(home=sandbox.home, programs=slurm.programs, heron=heron))
    yield slurm
    slurm.start()
    slurm.clear()
    _resume(slurm)


class SlurmJournal:
    """A run that processes lines from the beginning until `let_go`."""

    def __init__(self, sandbox: Sandbox, cluster: SlurmCluster) -> None:
        self.sandbox, self.cluster = sandbox, cluster
        self.lines = Lines(sandbox, pause_s=0.05, command="submit my-slurm")
        assert self.lines.run.wait(_SUBMITTED_S) == 0, self.lines.run.all_output
        self.flows("the start")
        wait_until(lambda: len(self.attempts()) == 3, _BACK_S, "all containers run")

    def attempts(self) -> dict[int, int]:
        """Return the number of starts of each running container; empty while there is no status."""
        return {each["container_id"]: each["attempts"] for each in self.containers() if each["running"]}

    def containers(self) -> list[dict[str, Any]]:
        """Return the containers of the status."""
        found: list[dict[str, Any]] = _document(self.sandbox, "journal").get("containers", [])
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
        listed = self.sandbox.output_of("list", "my-slurm")
        return "finished" in listed and not self.sandbox.remaining() and not self.cluster.jobs()


def cancel_job(journal: SlurmJournal) -> int:
    """Cancel the job of a container, as a user does."""
    journal.cluster.ask("scancel", journal.job(1)[0])
    return 1


def kill_script(journal: SlurmJournal) -> int:
    """Kill the batch script, and nothing but that."""
    journal.cluster.ask("scancel", "--batch", "--signal=KILL", journal.job(2)[0])
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


def lose_controller(journal: SlurmJournal) -> None:
    """Kill slurmctld for half a minute: no container notices, and `heron kill` changes nothing."""
    before = journal.attempts()
    journal.cluster.controller.kill()
    end_s = monotonic_s() + _AWAY_S
    assert "slurm" in journal.sandbox.output_of("kill", "journal", *_HERE, code=2).lower()
    while monotonic_s() < end_s:
        journal.flows("the end of the controller")
    journal.cluster.start()
    wait_until(lambda: journal.attempts() == before, _BACK_S, "the same containers run")


Harm = Callable[[SlurmJournal], int | None]


def test_the_example_counts_exactly(sandbox: Sandbox, cluster: SlurmCluster, examples: Path) -> None:
    """The commands of the page: check, submit, status, squeue. The counts are those of the text."""
    assert "slurm-wlm" in sandbox.output_of("profiles", "check", "my-slurm")
    _count_words(sandbox, cluster, examples, "my-slurm")


def test_the_shipped_profile_counts_exactly(
    sandbox: Sandbox, cluster: SlurmCluster, zookeeper: ZooKeeperServer, s3: S3Server, examples: Path
) -> None:
    """State in ZooKeeper, packages in S3: `heron profiles check slurm` asks all three servers."""
    mark = f"e2e{secrets.token_hex(4)}"
    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key, "region_name": s3.region}
    boto3.client("s3", endpoint_url=s3.url, **keys).create_bucket(Bucket=mark)
    sandbox.environ.update(
        HERON_ZOOKEEPER_HOSTS="{}:{}".format(*zookeeper.address),
        HERON_ZOOKEEPER_USER="heron",
        HERON_ZOOKEEPER_PASSWORD="open sesame",  # for a server on the loopback address
        E2E_STORE_PASSWORD=s3.secret_key,
    )
    text = _SHIPPED.format(
        home=sandbox.home, programs=cluster.programs, mark=mark, url=s3.url, region=s3.region, key=s3.access_key
    )
    sandbox.write_profile("slurm", text)
    checked = sandbox.output_of("profiles", "check", "slurm")
    assert all(each in checked for each in ("slurm-wlm", "zookeeper", "s3")), checked
    _count_words(sandbox, cluster, examples, "slurm")


@pytest.mark.parametrize(
    "harms",
    [
        pytest.param((cancel_job, kill_script, warn), id="jobs"),
        pytest.param((lose_node, preempt), id="nodes"),
        pytest.param((lose_controller,), id="controller"),
    ],
)
def test_no_line_is_lost_whatever_slurm_does(sandbox: Sandbox, cluster: SlurmCluster, harms: tuple[Harm, ...]) -> None:
    """At least once: the next job of the container takes over, and all lines are counted."""
    journal = SlurmJournal(sandbox, cluster)
    for harm in harms:
        before = journal.attempts()
        moved = harm(journal)
        if moved is not None:
            journal.is_back(before, moved, harm.__name__)
        journal.flows(harm.__name__)
        _resume(cluster)
    journal.let_go()


def test_containers_come_and_go_without_loss(sandbox: Sandbox, cluster: SlurmCluster) -> None:
    """From two containers to four and to one, while another topology runs beside; `heron kill` leaves nothing."""
    beside = sandbox.start("steady.py", command="submit my-slurm")
    assert beside.wait(_SUBMITTED_S) == 0, beside.all_output
    run = sandbox.start("updating.py", command="submit my-slurm")
    assert run.wait(_SUBMITTED_S) == 0, run.all_output

    def tallied() -> int:
        components = _document(sandbox, "updating").get("status", {}).get("components", [])
        return sum(each["executed"] for each in components if each["name"] == "tally")

    def jobs_after(containers: int) -> int:
        before = tallied()
        sandbox.output_of("update", "updating", "--container-number", str(containers), *_HERE)
        wait_until(lambda: tallied() > before + 1000, _BACK_S, f"tuples in {containers} containers")
        running = cluster.ask("squeue", "-h", "-t", "RUNNING", "-o", "%j").split()
        return sum(each.startswith("heron.updating.") for each in running)

    assert [jobs_after(each) for each in (2, 4, 1)] == [3, 5, 2], "and container 0"
    (run.out / "stop").touch()
    wait_until(lambda: "updating" in _finished(sandbox), _OVER_S, "the end")
    assert check_tallies(run) > 0
    killed = json.loads(sandbox.output_of("kill", "steady", *_HERE, "--json"))
    assert killed["left"] == []
    assert cluster.jobs() == []
    assert not sandbox.remaining()


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

    wait_until(shown, _BACK_S, f"the status has {reason}")  # Slurm finds the time limit some seconds later
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
    wait_until(lambda: _attempts(sandbox, "exactly_once") == [1, 1, 1], _BACK_S, "all containers run")
    wait_until(lambda: all(each > 1 for each in _attempts(sandbox, "exactly_once")), _OVER_S, "all have moved")
    assert cluster.ask("squeue", "-h", "-t", "TIMEOUT", "-o", "%j") == "", "they have ended in order"
    wait_until(lambda: committed(run.out), _BACK_S, "lines of a checkpoint, which only the warning takes")
    before = sum(map(len, committed(run.out).values()))
    (run.out / "stop").touch()
    wait_until(lambda: "exactly_once" in _finished(sandbox), _OVER_S, "the end")
    assert check_committed(run.out, PARTITIONS) > before


def _count_words(sandbox: Sandbox, cluster: SlurmCluster, examples: Path, profile: str) -> None:
    """Run the example to its end, and compare its counts with those of the text."""
    counts = sandbox.root / "counts.tsv"
    args = ("--loops", str(_LOOPS), "--out", str(counts))
    run = sandbox.run(examples / "word_count.py", args=args, command=f"submit {profile}")
    assert run.wait() == 0, run.all_output
    labels = cluster.ask("squeue", "-h", "-o", "%j %k").splitlines()
    assert "heron.word_count.1" in {line.split()[0] for line in labels}
    assert all("heron topology=word_count container=" in line and " owner=" in line for line in labels)

    def over() -> bool:
        return "finished" in sandbox.output_of("list", profile) and not cluster.jobs()

    wait_until(over, _OVER_S, "the end")
    words = Counter(word for text in topics.topics.values() for word in text.lower().split())
    rows = (line.rsplit("\t", 1) for line in counts.read_text(encoding="utf-8").splitlines())
    assert {word: int(count) for word, count in rows} == {word: count * _LOOPS for word, count in words.items()}


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
