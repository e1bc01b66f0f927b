"""Topologies on a Mesos that is written from its published contract: a master and two agents, lost in turn."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.http_service import Fault
from heron_testing_servers.mesos import MesosCluster, attribute, resources
from on_cluster import BACK_S, ClusterJournal, OnCluster
from wheel_archive import bare_interpreter, write_wheel_archive

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_PROFILE = """\
extends: local
scheduler:
  driver: mesos
  root: {home}/.heron/jobs
  masters: ["{url}"]
  key_file: {key}
  python: {python}
  {options}
  stable_s: 0
  stop_grace_s: 3
  silence_s: 10
  env: {{HOME: "{home}", TMPDIR: "{tmp}"}}  # all that runs in the cluster belongs to the sandbox, which looks for it
engine: {{heron.executor.stable.s: 0}}
"""
pytestmark = pytest.mark.servers

_LOOPS = 30


@pytest.fixture
def cluster(sandbox: Sandbox, tmp_path: Path) -> Iterator[MesosCluster]:
    """A master with two agents, and the profile ``cluster`` that names it."""
    agents = [(resources(32, 65536, disk=10**6), [attribute("rack", rack)]) for rack in "ab"]
    cluster = MesosCluster(tmp_path / "mesos", agents)
    cluster.start()
    _write_profile(sandbox, cluster)
    yield cluster
    cluster.kill()


def _write_profile(sandbox: Sandbox, cluster: MesosCluster, *options: str, python: str = sys.executable) -> None:
    key = sandbox.home / "mesos.key"
    if not key.exists():
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
    places = {"home": sandbox.home, "tmp": sandbox.tmp, "key": key, "python": python}
    text = _PROFILE.format(url=cluster.url, options="\n  ".join(options), **places)
    sandbox.write_profile("cluster", text)


class MesosHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, cluster: MesosCluster, journal: ClusterJournal) -> None:
        self.cluster, self.journal = cluster, journal

    def lose_agent(self) -> set[int]:
        """The machine of an agent is lost, with its tasks."""
        return self._lose("down")

    def cut_off_agent(self) -> set[int]:
        """An agent is cut off: its tasks run on, and end themselves when others have begun."""
        return self._lose("partitioned")

    def lose_master(self) -> set[int]:
        """Kill the master for half a minute: no container notices."""
        self.cluster.process.kill()
        self.journal.flows_on("the end of the master")
        self.cluster.start()
        return set()

    def lose_answers(self) -> set[int]:
        """The next answers to the supervisor are lost, while a container is started again."""
        for each in ("ACKNOWLEDGE", "ACCEPT", "RECONCILE"):
            self.cluster.fault(Fault(each, "drop"))
        self.journal.kill_executor()
        return {1}

    def kill_supervisor(self) -> set[int]:
        """Kill the supervisor: its containers run on, and the next command starts it again."""
        folder = self.journal.cluster.sandbox.home / ".heron" / "jobs" / "journal"
        supervisor = json.loads((folder / "processes.json").read_bytes())["supervisor"]["pid"]
        os.kill(supervisor, signal.SIGKILL)
        self.journal.flows("the end of the supervisor")
        self.journal.cluster.output_of("restart", "journal", "2")
        return {2}

    def agents(self) -> dict[int, str]:
        """Return the names of the agents of the containers."""
        names = {each["id"]: name for name, each in self.cluster.agents().items()}
        return {_container(each): names[each["slave_id"]] for each in _tasks(self.cluster, "heron-journal")}

    def _lose(self, mode: str) -> set[int]:
        for each in self.cluster.agents():
            self.cluster.change_agent(each, "up")
        agents = self.agents()
        name = agents[1]
        lost = {container for container, agent in agents.items() if agent == name}
        self.cluster.change_agent(name, mode)
        return lost


def _tasks(cluster: MesosCluster, framework: str) -> list[dict[str, Any]]:
    found = [each for each in cluster.state()["frameworks"] if each["name"] == framework]
    return [task for each in found for task in each["tasks"] if task["state"] == "TASK_RUNNING"]


def _container(task: dict[str, Any]) -> int:
    return int(task["id"].partition(".")[0].removeprefix("container-"))


@pytest.mark.parametrize(
    "names",
    [("lose_answers", "kill_supervisor"), ("lose_master", "lose_agent", "cut_off_agent")],
    ids="-".join,
)
def test_no_line_is_lost_whatever_mesos_does(sandbox: Sandbox, cluster: MesosCluster, names: tuple[str, ...]) -> None:
    """At least once: only the containers that are lost restart, the status shows it, and all lines are counted."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = MesosHarm(cluster, journal)
    for name in names:
        journal.survives(getattr(harm, name))
    journal.let_go()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [89])
def test_no_line_is_lost_in_minutes_of_faults(sandbox: Sandbox, cluster: MesosCluster, seed: int) -> None:
    """Containers, agents, the master and the supervisor are lost in any order."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = MesosHarm(cluster, journal)
    of_containers = (journal.kill_executor, harm.lose_answers, harm.kill_supervisor)
    journal.survives_minutes(seed, (*of_containers, harm.lose_agent, harm.cut_off_agent, harm.lose_master))
    journal.let_go()


def test_a_standby_on_another_agent_takes_over(sandbox: Sandbox, cluster: MesosCluster) -> None:
    """Topology managers are put on different agents without a constraint."""
    options = {"topology.tmanager.standbys": 1, "topology.stmgrs": 1}
    settings = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    journal = ClusterJournal(OnCluster(sandbox, "cluster"), *settings)
    harm = MesosHarm(cluster, journal)
    journal.loses_leader(harm.agents, lambda name: cluster.change_agent(name, "down"))
    journal.flows("the loss of the leader")
    journal.let_go()


def test_the_example_counts_exactly(sandbox: Sandbox, examples: Path, cluster: MesosCluster) -> None:
    """The commands of the page: submit, status, logs. The counts are those of the text."""
    status = OnCluster(sandbox, "cluster").count_example(examples, _LOOPS)
    assert f"{cluster.url}/#/frameworks/" in status
    assert "agent 127.0.0." in status


def test_a_bare_interpreter_runs_a_topology_from_wheels(sandbox: Sandbox, cluster: MesosCluster) -> None:
    """`scheduler.install: wheels`: the agents have Python alone; a killed container starts from the wheels again."""
    bare, names = bare_interpreter(), ["heron-bundle-local", "heron-scheduler-mesos", "cryptography"]
    wheels = write_wheel_archive(names, sandbox.root / "wheels.zip")
    _write_profile(sandbox, cluster, "install: wheels", f"wheels: {wheels}", python=str(bare))
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    journal.survives(journal.kill_executor)
    assert {Path(each.exe()).resolve() for each in journal.lines.run.processes("executor")} == {bare.resolve()}
    journal.lines.let_go()
    journal.cluster.ends("journal", alone=False)
    journal.lines.check()
    shutil.rmtree(sandbox.tmp / f"heron-wheels-{os.getuid()}")  # it stays on an agent, for the next start there
    journal.cluster.ends("journal")


def test_containers_come_and_go_without_loss(sandbox: Sandbox, cluster: MesosCluster) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once."""

    def tasks() -> int:
        return len(_tasks(cluster, "heron-updating"))

    steps = {"--container-number 2": 3, "--container-number 4": 5, "--container-number 1": 2}
    OnCluster(sandbox, "cluster").update(steps, tasks)
    wait_until(lambda: cluster.state()["frameworks"] == [], BACK_S, "no framework is left")
    assert cluster.containers() == {}
