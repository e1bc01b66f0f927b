"""Topologies on a Nomad with a server and two clients, whose parts are lost in turn; no line is lost."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.nomad import NomadAgents
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.zookeeper import ZooKeeperServer
from on_cluster import BACK_S, ClusterJournal, OnCluster, shipped_profile
from wheel_archive import bare_interpreter, write_wheel_archive

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

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
_LOOPS = 30


@pytest.fixture
def cluster(sandbox: Sandbox, nomad_agents: NomadAgents) -> Iterator[NomadAgents]:
    """All agents, without a job or an allocation, and the profile ``cluster`` that names them.

    Nomad 1.6.0 may put two containers on one client against ``distinct_property``, if the same plan stops an allocation
    of an earlier job of that name there.
    """
    nomad_agents.start()

    def is_empty() -> bool:
        nomad_agents.request("PUT", "system/gc")
        return not json.loads(nomad_agents.request("GET", "allocations"))

    wait_until(is_empty, BACK_S, "no allocation of an earlier test is left")
    _write_profile(sandbox, nomad_agents, f"python: {sys.executable}")
    yield nomad_agents
    nomad_agents.start()
    for each in json.loads(nomad_agents.request("GET", "jobs")):  # of a failed test
        nomad_agents.request("DELETE", f"job/{each['ID']}?purge=true")
    for each in json.loads(nomad_agents.request("GET", "vars")):
        nomad_agents.request("DELETE", f"var/{each['Path']}")


def _write_profile(sandbox: Sandbox, agents: NomadAgents, *options: str) -> None:
    home, tmp = sandbox.home, sandbox.tmp
    text = _PROFILE.format(url=agents.url, token=agents.token, home=home, tmp=tmp, options="\n  ".join(options))
    sandbox.write_profile("cluster", text)


class NomadHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, cluster: NomadAgents, journal: ClusterJournal) -> None:
        self.cluster, self.journal = cluster, journal

    def stop_allocation(self) -> set[int]:
        """``nomad alloc stop``: Nomad starts the container elsewhere."""
        (mine,) = (each for each in self._allocations() if each["TaskGroup"] == "container-1")
        self.cluster.request("PUT", f"allocation/{mine['ID']}/stop", {})
        return {1}

    def drain_client(self) -> set[int]:
        """``nomad node drain``: the containers of the client move in order."""
        self.cluster.start()  # the client that was lost before
        name = self._allocations()[0]["NodeName"]
        moved = self._containers_of(name)
        node = self.cluster.ready_nodes()[name]
        self.cluster.request("PUT", f"node/{node}/drain", {"DrainSpec": {"Deadline": 60_000_000_000}})

        def drained() -> bool:
            return not self._containers_of(name)

        wait_until(drained, BACK_S, f"{name} is drained")
        self.cluster.request("PUT", f"node/{node}/drain", {"DrainSpec": None, "MarkEligible": True})
        return moved

    def lose_client(self) -> set[int]:
        """Kill an agent: for Nomad its machine is lost, while the old copies of its containers still run."""
        self.cluster.start()  # the client that was lost before
        name = self._allocations()[0]["NodeName"]
        moved = self._containers_of(name)
        self.cluster.nodes[name].kill()
        wait_until(lambda: not self._containers_of(name), BACK_S, f"{name} is lost")
        return moved

    def lose_server(self) -> set[int]:
        """Kill the server for half a minute: no container notices."""
        self.cluster.server.kill()
        self.journal.flows_on("the end of the server")
        self.cluster.start()
        return set()

    def lose_host(self, name: str) -> None:
        """Kill an agent and all containers of its client."""
        lost = self._containers_of(name)
        self.cluster.nodes[name].kill()
        for each in lost:
            executor = self.journal.lines.run.the("executor", f"/c{each}.json")
            launcher = executor.parent()
            assert launcher is not None
            launcher.kill()
            executor.kill()

    def clients(self) -> dict[int, str]:
        """Return the clients of the containers."""
        return {int(each["TaskGroup"].rpartition("-")[2]): each["NodeName"] for each in self._allocations()}

    def _allocations(self) -> list[dict[str, Any]]:
        """Return the allocations that should run."""
        found = json.loads(self.cluster.request("GET", "job/heron-journal/allocations"))
        return [each for each in found if each["DesiredStatus"] == "run" and each["ClientStatus"] == "running"]

    def _containers_of(self, client: str) -> set[int]:
        """Return the containers on a client."""
        return {container for container, name in self.clients().items() if name == client}


@pytest.mark.parametrize("names", [("stop_allocation", "drain_client"), ("lose_server", "lose_client")], ids="-".join)
def test_no_line_is_lost_whatever_nomad_does(sandbox: Sandbox, cluster: NomadAgents, names: tuple[str, ...]) -> None:
    """At least once: only the containers that are moved restart, the status shows it, and all lines are counted."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = NomadHarm(cluster, journal)
    for name in names:
        journal.survives(getattr(harm, name))
    journal.let_go()


def test_a_standby_on_another_client_takes_over(sandbox: Sandbox, cluster: NomadAgents) -> None:
    """With `containers_per_client: 1`. The lost container waits for its client, because there is no third one."""
    _write_profile(sandbox, cluster, f"python: {sys.executable}", "containers_per_client: 1")
    options = {"topology.tmanager.standbys": 1, "topology.stmgrs": 1}
    settings = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    journal = ClusterJournal(OnCluster(sandbox, "cluster"), *settings)
    harm = NomadHarm(cluster, journal)
    journal.loses_leader(harm.clients, harm.lose_host)
    cluster.start()
    journal.flows("the loss of the leader")
    journal.let_go()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [37])
def test_no_line_is_lost_in_minutes_of_faults(sandbox: Sandbox, cluster: NomadAgents, seed: int) -> None:
    """Containers, clients and the server are killed in any order."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = NomadHarm(cluster, journal)
    of_containers = (journal.kill_executor, journal.kill_launcher, harm.stop_allocation)
    journal.survives_minutes(seed, (*of_containers, harm.drain_client, harm.lose_client, harm.lose_server))
    journal.let_go()


def test_the_example_counts_exactly(sandbox: Sandbox, examples: Path, cluster: NomadAgents) -> None:
    """The commands of the README: submit, status, logs. The counts are those of the text."""
    assert cluster.nodes
    status = OnCluster(sandbox, "cluster").count_example(examples, _LOOPS)
    assert "nomad job status -namespace default heron-word_count" in status
    assert "client-" in status


def test_the_shipped_profile_counts_exactly(
    sandbox: Sandbox, cluster: NomadAgents, zookeeper: ZooKeeperServer, s3: S3Server, examples: Path
) -> None:
    """State in ZooKeeper, packages in S3: `heron profiles check nomad` asks all three servers."""
    sandbox.environ.update(HERON_IMAGE="", NOMAD_ADDR=cluster.url, NOMAD_TOKEN=cluster.token)
    env = {"HOME": str(sandbox.home), "TMPDIR": str(sandbox.tmp)}
    options = {"task_driver": "raw_exec", "python": sys.executable, "env": env}
    says = f"Nomad at {cluster.url}"
    shipped_profile(sandbox, "nomad", options, says, (zookeeper, s3)).count_example(examples, _LOOPS)


def test_a_bare_interpreter_runs_a_topology_from_wheels(sandbox: Sandbox, cluster: NomadAgents) -> None:
    """`scheduler.install: wheels`: the clients have Python alone, and killed containers start from the wheels again."""
    bare = bare_interpreter()
    wheels = write_wheel_archive(["heron-bundle-local", "heron-scheduler-nomad"], sandbox.root / "wheels.zip")
    _write_profile(sandbox, cluster, f"python: {bare}", "install: wheels", f"wheels: {wheels}")
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    for each in (journal.kill_launcher, NomadHarm(cluster, journal).stop_allocation):
        journal.survives(each)
    assert {Path(each.exe()).resolve() for each in journal.lines.run.processes("executor")} == {bare.resolve()}
    journal.let_go()


def test_containers_come_and_go_without_loss(sandbox: Sandbox, cluster: NomadAgents) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once."""

    def groups() -> int:
        return len(json.loads(cluster.request("GET", "job/heron-updating"))["TaskGroups"])

    steps = {"--container-number 2": 3, "--container-number 4": 5, "--container-number 1": 2}
    OnCluster(sandbox, "cluster").update(steps, groups)
    assert json.loads(cluster.request("GET", "jobs")) == []
    assert json.loads(cluster.request("GET", "vars?prefix=nomad/jobs/heron-")) == []
