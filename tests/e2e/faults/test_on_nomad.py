"""Topologies on a Nomad with a server and two clients, whose parts are lost in turn; no line is lost."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from pydoc_data import topics
from typing import TYPE_CHECKING, Any

import pytest

from heron.clock import monotonic_s
from heron_testing.waiting import wait_until, wait_until_grown
from heron_testing_servers.nomad import NomadAgents
from line_journal import Lines
from tallies import check_tallies
from wheel_archive import write_wheel_archive

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_HERE = ("--profile", "cluster")
_PROFILE = """\
extends: local
scheduler:
  driver: nomad
  address: {url}
  token: {token}
  task_driver: raw_exec
  {options}
  stable_s: 0
  stop_grace_s: 3
  start_s: 60
  env: {{HOME: "{home}", TMPDIR: "{tmp}"}}  # all that runs in the cluster belongs to the sandbox, which looks for it
engine: {{heron.executor.stable.s: 0}}
"""
_BACK_S = 120.0
_AWAY_S = 30.0
_CHAOS_S = 300.0
_LOOPS = 30


@pytest.fixture
def cluster(sandbox: Sandbox, nomad_agents: NomadAgents) -> Iterator[NomadAgents]:
    """All agents, without a job, and the profile ``cluster`` that names them."""
    nomad_agents.start()
    _write_profile(sandbox, nomad_agents, f"python: {sys.executable}")
    yield nomad_agents
    for each in json.loads(nomad_agents.request("GET", "jobs")):  # of a failed test
        nomad_agents.request("DELETE", f"job/{each['ID']}?purge=true")


def _write_profile(sandbox: Sandbox, agents: NomadAgents, *options: str) -> None:
    home, tmp = sandbox.home, sandbox.tmp
    text = _PROFILE.format(url=agents.url, token=agents.token, home=home, tmp=tmp, options="\n  ".join(options))
    sandbox.write_profile("cluster", text)


Harm = Callable[["NomadJournal"], set[int]]


class NomadJournal:
    """A run that processes lines from the beginning until `let_go`."""

    def __init__(self, sandbox: Sandbox, cluster: NomadAgents) -> None:
        self.sandbox, self.cluster = sandbox, cluster
        self.lines = Lines(sandbox, pause_s=0.05, command="submit cluster")
        assert self.lines.run.wait() == 0, self.lines.run.all_output
        self.flows("the start")

    def flows(self, after: str) -> None:
        """Wait until more lines are acked."""
        wait_until_grown(self.lines.acked_bytes, _BACK_S, f"lines after {after}")

    def attempts(self) -> dict[int, int]:
        """Return the number of starts of each running container."""
        found = _status(self.sandbox, "journal").get("containers", [])
        return {each["container_id"]: each["attempts"] for each in found if each["running"]}

    def allocations(self) -> list[dict[str, Any]]:
        """Return the allocations that should run."""
        found = json.loads(self.cluster.request("GET", "job/heron-journal/allocations"))
        return [each for each in found if each["DesiredStatus"] == "run" and each["ClientStatus"] == "running"]

    def containers_of(self, node: str) -> set[int]:
        """Return the containers on a client."""
        return {int(each["TaskGroup"].rpartition("-")[2]) for each in self.allocations() if each["NodeName"] == node}

    def is_back(self, before: dict[int, int], ended: set[int], after: str) -> None:
        """Wait until the containers `ended` run again, and check that no other one was restarted."""
        now: dict[int, int] = {}

        def are_back() -> bool:
            now.clear()
            now.update(self.attempts())
            return len(now) == len(before) and all(now[each] > before[each] for each in ended)

        wait_until(are_back, _BACK_S, f"{ended} of {before} run again after {after}")
        assert {each for each in now if now[each] > before[each]} == ended, f"{after}: {before} became {now}"

    def survives(self, harm: Harm) -> None:
        """Do harm, and wait until the containers that it moves run again, alone, and lines flow."""
        wait_until(lambda: len(self.attempts()) == 3, _BACK_S, "all containers run")
        before = self.attempts()
        self.is_back(before, harm(self), harm.__name__)
        self.flows(harm.__name__)
        self.has_no_copies(harm.__name__)

    def has_no_copies(self, after: str) -> None:
        """Wait until each container has one executor: a copy on a lost client ends by itself."""

        def executors() -> list[int]:
            return [len(self.lines.run.processes("executor", f"/c{each}.json")) for each in range(3)]

        wait_until(lambda: executors() == [1, 1, 1], _BACK_S, f"one executor for each container after {after}")

    def let_go(self) -> None:
        """End the run, and check that every word of every line has arrived."""
        self.lines.let_go()
        _ends(self.sandbox, "journal")
        self.lines.check()


def kill_executor(journal: NomadJournal) -> set[int]:
    """Kill an executor, with SIGKILL: its launcher starts it again."""
    journal.lines.run.the("executor", "/c1.json").kill()
    return {1}


def kill_launcher(journal: NomadJournal) -> set[int]:
    """Kill the process of a task, with SIGKILL: its executor ends with it, and Nomad starts the task again."""
    launcher = journal.lines.run.the("executor", "/c2.json").parent()
    assert launcher is not None
    launcher.kill()
    return {2}


def stop_allocation(journal: NomadJournal) -> set[int]:
    """``nomad alloc stop``: Nomad starts the container elsewhere."""
    (mine,) = (each for each in journal.allocations() if each["TaskGroup"] == "container-1")
    journal.cluster.request("PUT", f"allocation/{mine['ID']}/stop", {})
    return {1}


def drain_client(journal: NomadJournal) -> set[int]:
    """``nomad node drain``: the containers of the client move in order."""
    name = journal.allocations()[0]["NodeName"]
    moved = journal.containers_of(name)
    node = journal.cluster.ready_nodes()[name]
    journal.cluster.request("PUT", f"node/{node}/drain", {"DrainSpec": {"Deadline": 60_000_000_000}})

    def drained() -> bool:
        return not journal.containers_of(name)

    wait_until(drained, _BACK_S, f"{name} is drained")
    journal.cluster.request("PUT", f"node/{node}/drain", {"DrainSpec": None, "MarkEligible": True})
    return moved


def lose_client(journal: NomadJournal) -> set[int]:
    """Kill an agent: for Nomad its machine is lost, while the old copies of its containers still run."""
    name = journal.allocations()[0]["NodeName"]
    moved = journal.containers_of(name)
    journal.cluster.nodes[name].kill()
    wait_until(lambda: not journal.containers_of(name), _BACK_S, f"{name} is lost")
    return moved


def lose_server(journal: NomadJournal) -> set[int]:
    """Kill the server for half a minute: no container notices."""
    journal.cluster.server.kill()
    end_s = monotonic_s() + _AWAY_S
    while monotonic_s() < end_s:
        journal.flows("the end of the server")
    journal.cluster.start()
    return set()


@pytest.mark.parametrize("harms", [(stop_allocation, drain_client), (lose_server, lose_client)])
def test_no_line_is_lost_whatever_nomad_does(sandbox: Sandbox, cluster: NomadAgents, harms: tuple[Harm, ...]) -> None:
    """At least once: only the containers that are moved restart, the status shows it, and all lines are counted."""
    journal = NomadJournal(sandbox, cluster)
    for harm in harms:
        journal.survives(harm)
    journal.let_go()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [37])
def test_no_line_is_lost_in_minutes_of_faults(sandbox: Sandbox, cluster: NomadAgents, seed: int) -> None:
    """Containers, clients and the server are killed in any order; each fault begins when the last one is over."""
    chance = random.Random(seed)
    journal = NomadJournal(sandbox, cluster)
    end_s = monotonic_s() + _CHAOS_S
    done: list[str] = []
    while monotonic_s() < end_s:
        harm = chance.choice((kill_executor, kill_launcher, stop_allocation, drain_client, lose_client, lose_server))
        done.append(harm.__name__)
        journal.survives(harm)
        cluster.start()
    print(f"seed {seed}: {done}")  # noqa: T201 - the report of a run by hand
    journal.let_go()


def test_the_example_counts_exactly(sandbox: Sandbox, examples: Path, cluster: NomadAgents) -> None:
    """The commands of the README: submit, status, logs. The counts are those of the text."""
    assert cluster.nodes
    counts = sandbox.root / "counts.tsv"
    args = ("--loops", str(_LOOPS), "--out", str(counts))
    run = sandbox.run(examples / "word_count.py", args=args, command="submit cluster")
    assert run.wait() == 0, run.all_output
    output = sandbox.output_of("status", "word_count", *_HERE)
    assert "nomad job status -namespace default heron-word_count" in output
    assert "client-" in output
    _ends(sandbox, "word_count")
    words = Counter(word for text in topics.topics.values() for word in text.lower().split())
    rows = (line.rsplit("\t", 1) for line in counts.read_text(encoding="utf-8").splitlines())
    assert {word: int(count) for word, count in rows} == {word: count * _LOOPS for word, count in words.items()}


def test_a_bare_interpreter_runs_a_topology_from_wheels(sandbox: Sandbox, cluster: NomadAgents) -> None:
    """`scheduler.install: wheels`: the clients have Python alone, and killed containers start from the wheels again."""
    bare = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
    without = subprocess.run([bare, "-P", "-c", "import heron"], capture_output=True, text=True, check=False)
    assert "No module named 'heron'" in without.stderr
    wheels = write_wheel_archive(["heron-bundle-local", "heron-scheduler-nomad"], sandbox.root / "wheels.zip")
    _write_profile(sandbox, cluster, f"python: {bare}", "install: wheels", f"wheels: {wheels}")
    journal = NomadJournal(sandbox, cluster)
    for harm in (kill_launcher, stop_allocation):
        journal.survives(harm)
    assert {Path(each.exe()).resolve() for each in journal.lines.run.processes("executor")} == {bare.resolve()}
    journal.let_go()


def test_containers_come_and_go_without_loss(sandbox: Sandbox, cluster: NomadAgents) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once."""
    beside = sandbox.start("steady.py", command="submit cluster")
    assert beside.wait() == 0, beside.all_output
    run = sandbox.start("updating.py", command="submit cluster")
    assert run.wait() == 0, run.all_output

    def tallied() -> int:
        components = _status(sandbox, "updating").get("status", {}).get("components", [])
        return sum(each["executed"] for each in components if each["name"] == "tally")

    def groups_after(containers: int) -> int:
        before = tallied()
        sandbox.output_of("update", "updating", "--container-number", str(containers), *_HERE)
        wait_until(lambda: tallied() > before + 1000, _BACK_S, f"tuples in {containers} containers")
        return len(json.loads(cluster.request("GET", "job/heron-updating"))["TaskGroups"])

    assert [groups_after(each) for each in (2, 4, 1)] == [3, 5, 2], "and container 0"
    (run.out / "stop").touch()
    _ends(sandbox, "updating", alone=False)
    assert check_tallies(run) > 0
    killed = json.loads(sandbox.output_of("kill", "steady", *_HERE, "--json"))
    assert killed["left"] == []
    assert not sandbox.remaining()
    assert json.loads(cluster.request("GET", "jobs")) == []
    assert json.loads(cluster.request("GET", "vars?prefix=nomad/jobs/heron-")) == []


def _status(sandbox: Sandbox, topology: str) -> dict[str, Any]:
    """Return the output of `heron status`; empty while the topology manager is being restarted."""
    try:
        return sandbox.status_document(topology, *_HERE)
    except AssertionError:
        return {}


def _ends(sandbox: Sandbox, topology: str, *, alone: bool = True) -> None:
    """Wait until a topology is listed as finished and, if it is alone, nothing is left."""

    def over() -> bool:
        listed = json.loads(sandbox.output_of("list", "cluster", "--json"))
        finished = any(each["name"] == topology and each["state"] == "finished" for each in listed)
        return finished and not (alone and sandbox.remaining())

    wait_until(over, _BACK_S, f"{topology} has ended and left nothing")
