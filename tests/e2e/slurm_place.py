"""A Slurm with three nodes, profiles for it, and what happens to containers there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from heron_testing.heron_run import processes_of
from heron_testing.waiting import wait_until
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.server_process import ServerError
from heron_testing_servers.slurm import SlurmCluster
from heron_testing_servers.zookeeper import ZooKeeperServer
from on_cluster import BACK_S, ClusterJournal, OnCluster, shipped_profile

if TYPE_CHECKING:
    import pytest

    from heron_testing.sandbox import Sandbox

__all__ = ["SlurmHarm", "SlurmPlace", "fresh_slurm", "resume"]

_NODE = "SLURMD_NODENAME"  # a variable of all processes of a job


class SlurmPlace:
    """The cluster, and the profile ``my-slurm`` that names it."""

    def __init__(self, sandbox: Sandbox, slurm: SlurmCluster) -> None:
        self.sandbox, self.slurm = sandbox, slurm
        self.commands = OnCluster(sandbox, "my-slurm")
        self.write_profile()

    def write_profile(self, **options: str) -> None:
        """Write the profile, with further options of the scheduler."""
        heron = str(Path(sys.executable).with_name("heron"))
        save = {"on_warning": [heron, "checkpoints", "{topology}", "take", "--profile", self.commands.profile]}
        scheduler = {"driver": "slurm", **self._options, **save, **options}
        profile = {"extends": "local", "scheduler": scheduler, "engine": {"heron.executor.stable.s": 0}}
        self.sandbox.write_profile(self.commands.profile, json.dumps(profile))  # JSON is YAML

    @property
    def _options(self) -> dict[str, object]:
        return {
            "root": f"{self.sandbox.home}/.heron/jobs",
            "programs": str(self.slurm.programs),
            # All that runs in Slurm belongs to the sandbox of the test, which looks for it.
            "environment": ["HOME", "TMPDIR", "PATH", "LD_LIBRARY_PATH", "SLURM_CONF"],
            "stable_s": 0,
            "manager_cpu": 1,
        }

    def use_servers(self, zookeeper: ZooKeeperServer, s3: S3Server) -> OnCluster:
        """Extend the shipped profile: state in ZooKeeper, packages in S3."""
        return shipped_profile(self.sandbox, "slurm", self._options, "slurm-wlm", (zookeeper, s3))

    def attempts(self, topology: str) -> list[int]:
        """Return the number of starts of each container that runs, and 0 for the others; empty without a status."""
        report = self.commands.status(topology)
        return [each.attempts if each.running else 0 for each in report.containers] if report else []

    def job(self, topology: str, container_id: int) -> tuple[str, str]:
        """Return the number and the node of the running job of a container."""
        name = f"heron.{topology}.{container_id}"
        number, node = self.slurm.ask("squeue", "-h", "-t", "RUNNING", "-n", name, "-o", "%A %N").split()
        return number, node

    def containers_on(self, node: str, topology: str) -> set[int]:
        """Return the containers of a topology whose jobs run on a node."""
        names = self.slurm.ask("squeue", "-h", "-t", "RUNNING", "-w", node, "-o", "%j").split()
        return {int(each.rpartition(".")[2]) for each in names if each.startswith(f"heron.{topology}.")}

    def preempt(self, node: str) -> None:
        """Let a job of another partition take a node, and end."""
        urgent = ("--partition=urgent", "--exclusive", f"--nodelist={node}", "--job-name=urgent", "--output=/dev/null")
        self.slurm.ask("sbatch", *urgent, "--wrap", "exit 0")

    def lose(self, node: str, *, machine: bool = False) -> None:
        """Kill the slurmd of a node, and wait until Slurm has lost it.

        The processes of its jobs go on, unless the `machine` is lost.
        """
        self.slurm.nodes[node].kill()
        if machine:
            mine = [each for each in processes_of(self.sandbox.home) if _environment(each).get(_NODE) == node]
            steps = {each for each in map(_parent, mine) if each and each.name().startswith("slurmstepd")}
            for process in (*steps, *mine):  # a step that goes on would report the end of its job
                with suppress(psutil.Error):
                    process.kill()
        self.is_empty(node)

    def is_empty(self, node: str) -> None:
        """Wait until Slurm knows no running job of a node."""
        wait_until(lambda: not self.slurm.ask("squeue", "-h", "-w", node, "-t", "RUNNING"), BACK_S, f"{node} is empty")

    def leaves_nothing(self) -> None:
        """Wait until Slurm has no job: waiting ones go at once, and others when their processes have ended."""
        wait_until(lambda: not self.slurm.jobs(), BACK_S, "no job is left")


@contextmanager
def fresh_slurm(sandbox: Sandbox, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmPlace]:
    """Start what does not run, without jobs; at the end, remove what a failed test has left."""
    slurm.start()
    slurm.clear()
    sandbox.environ.update(slurm.environment)
    for name, value in slurm.environment.items():  # this process asks for the status too
        monkeypatch.setenv(name, value)
    yield SlurmPlace(sandbox, slurm)
    slurm.start()
    slurm.clear()
    resume(slurm)


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def _parent(process: psutil.Process) -> psutil.Process | None:
    try:
        return process.parent()
    except psutil.Error:
        return None


def resume(slurm: SlurmCluster) -> None:
    """Let all nodes take jobs again."""
    for node in slurm.nodes:
        wait_until(lambda node=node: _is_resumed(slurm, node), BACK_S, f"{node} takes jobs")  # type: ignore[misc]


def _is_resumed(slurm: SlurmCluster, node: str) -> bool:
    """Return whether a node takes jobs, after another attempt. Slurm resumes a node that was down at any moment."""
    state = slurm.ask("sinfo", "-h", "-N", "-n", node, "-o", "%t")
    if not state.startswith(("dra", "drng", "down")):
        return True
    with suppress(ServerError):
        slurm.ask("scontrol", "update", f"nodename={node}", "state=RESUME")
    return False


class SlurmHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, place: SlurmPlace, journal: ClusterJournal) -> None:
        self.place, self.slurm, self.journal = place, place.slurm, journal

    def cancel_job(self) -> set[int]:
        """Cancel the job of a container, as a user does."""
        self.slurm.ask("scancel", self._job(1)[0])
        return {1}

    def kill_script(self) -> set[int]:
        """Kill the batch script, and nothing but that."""
        self.slurm.ask("scancel", "--batch", "--signal=KILL", self._job(2)[0])
        return {2}

    def warn(self) -> set[int]:
        """Warn the job of the topology manager, as Slurm does before a time limit."""
        self.slurm.ask("scancel", "--batch", "--signal=USR1", self._job(0)[0])
        return {0}

    def lose_node(self) -> set[int]:
        """Take the node of a container away; Slurm kills what runs there."""
        node, lost = self._node(2)
        self.slurm.ask("scontrol", "update", f"nodename={node}", "state=DOWN", "reason=test")
        self.place.is_empty(node)
        resume(self.slurm)
        return lost

    def kill_slurmd(self) -> set[int]:
        """Kill the slurmd of a node: its machine is lost for Slurm, while the old copies of its containers run on."""
        self.slurm.start()  # the one that was killed before
        node, lost = self._node(2)
        self.place.lose(node)
        return lost

    def preempt(self) -> set[int]:
        """Let a job of another partition take the node of a container."""
        node, lost = self._node(1)
        self.place.preempt(node)
        return lost

    def lose_controller(self) -> set[int]:
        """Kill slurmctld for half a minute: no container notices, and `heron kill` changes nothing."""
        self.slurm.controller.kill()
        assert "slurm" in self.journal.cluster.output_of("kill", "journal", code=2).lower()
        self.journal.flows_on("the end of the controller")
        self.slurm.start()
        return set()

    def _job(self, container_id: int) -> tuple[str, str]:
        return self.place.job("journal", container_id)

    def _node(self, container_id: int) -> tuple[str, set[int]]:
        """Return the node of a container, and all containers on it."""
        _, node = self._job(container_id)
        return node, self.place.containers_on(node, "journal")
