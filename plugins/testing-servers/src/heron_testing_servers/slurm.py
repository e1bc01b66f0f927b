"""A Slurm of one controller and three nodes on this machine, on the loopback address."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers.install import debian_programs, installed, with_libraries
from heron_testing_servers.server_process import ServerError, ServerProcess

__all__ = ["FIXTURES", "NODES", "SlurmCluster"]

FIXTURES = ("slurm",)

NODES = ("n1", "n2", "n3")

_PACKAGES = ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins")
_ASK_S = 10.0
_GONE_S = 30.0

# A job gets its cores only; several nodes are this machine, so memory and cores are claims.
_SETTINGS = """\
ClusterName=heron
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=5,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
ReturnToService=2
SlurmdParameters=config_overrides
InactiveLimit=0
KillWait=5
MinJobAge=60
MessageTimeout=10
SlurmdTimeout=15
SlurmctldTimeout=10
PartitionName=usual Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 GraceTime=30 State=UP
PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=short Nodes=ALL MaxTime=5 PriorityTier=1 State=UP
PartitionName=physics Nodes=ALL AllowAccounts=physics State=UP
PartitionName=private Nodes=ALL AllowGroups=nobody DisableRootJobs=YES State=UP
"""
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 RealMemory=16000 State=UNKNOWN\n"


class SlurmCluster:
    """Jobs run as the user of the tests, as children of a ``slurmstepd`` that a killed node leaves running.

    The partition ``usual`` is the default; jobs of ``urgent`` preempt its jobs. Jobs of ``short`` have at most 5 min.
    ``physics`` is for the account of that name, and ``private`` for other users.
    """

    def __init__(self, folder: Path) -> None:
        """Install Debian's Slurm into the cache. `folder` keeps the state over a kill.

        Raises:
            ServerNotInstalledError: when it is not available.
        """
        place = installed("slurm-debian", debian_programs(*_PACKAGES))
        (plugins,) = {each.parent for each in place.rglob("select_cons_tres.so")}
        library_path = f"{with_libraries(place)[1].partition('=')[2]}:{plugins}"
        self.programs = place / "usr" / "bin"
        """The folder of the commands: ``sbatch``, ``squeue``, ``scancel`` and others."""
        self.environment: Mapping[str, str] = {
            "LD_LIBRARY_PATH": library_path,
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        """What the commands need in their environment."""
        _configure(folder, plugins)
        start = ["env", *(f"{name}={value}" for name, value in self._variables().items())]
        servers = place / "usr" / "sbin"
        step = str(servers / "slurmstepd-wlm")
        self.controller = ServerProcess(
            [*start, str(servers / "slurmctld-wlm"), "-D"], folder / "slurmctld.log", self._answers
        )
        """Gives nodes to jobs; keeps its state over a kill."""
        self.nodes = {
            name: ServerProcess(
                [*start, str(servers / "slurmd-wlm"), "-D", "-N", name, "-d", step],
                folder / f"slurmd-{name}.log",
                lambda name=name: self._serves(name),  # type: ignore[misc] # it has a default for mypy
            )
            for name in NODES
        }
        """Run the steps of jobs."""

    def start(self) -> None:
        """Start the processes that do not run, and return when every node can take jobs.

        Raises:
            ServerError: when one of them does not start within a minute.
        """
        self.controller.start()
        for each in self.nodes.values():
            each.start()

    def kill(self) -> None:
        """End all jobs, and then the servers with SIGKILL. Idempotent."""
        with suppress(ServerError, AssertionError):
            self.clear()
        for each in self.nodes.values():
            each.kill()
        self.controller.kill()

    def clear(self) -> None:
        """End all jobs and return when none is left.

        Raises:
            ServerError: when the controller does not answer.
        """
        if self.jobs():
            self.ask("scancel", "--full", "--signal=KILL", "--user", _user())
            self.ask("scancel", "--user", _user())
            wait_until(lambda: not self.jobs(), _GONE_S, "no job is left in Slurm")

    def jobs(self) -> list[str]:
        """Return the names of the jobs that have not ended. Raises as `ask` does."""
        return self.ask("squeue", "-h", "-o", "%j").split()

    def ask(self, *words: str) -> str:
        """Run a command of Slurm, and return what it prints.

        Raises:
            ServerError: when it fails, or does not end within 10 s.
        """
        command = [str(self.programs / words[0]), *words[1:]]
        try:
            ran = subprocess.run(
                command, env=self._variables(), capture_output=True, text=True, timeout=_ASK_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            msg = f"`{' '.join(words)}` does not end within {_ASK_S:g} s"
            raise ServerError(msg) from error
        if ran.returncode != 0:
            msg = f"`{' '.join(words)}` ended with {ran.returncode}: {ran.stderr.strip()}"
            raise ServerError(msg)
        return ran.stdout

    def _variables(self) -> dict[str, str]:
        return {**self.environment, "PATH": f"{self.programs}:{os.environ.get('PATH', os.defpath)}"}

    def _answers(self) -> bool:
        try:
            return "is UP" in self.ask("scontrol", "ping")
        except ServerError:
            return False

    def _serves(self, name: str) -> bool:
        try:
            return self.ask("sinfo", "-h", "-N", "-n", name, "-o", "%T").split()[:1] in (["idle"], ["mixed"])
        except ServerError:
            return False


def _configure(folder: Path, plugins: Path) -> None:
    host = socket.gethostname().partition(".")[0]
    (folder / "state").mkdir(parents=True)
    for name in NODES:
        (folder / "spool" / name).mkdir(parents=True)
    head = _SETTINGS.format(host=host, port=free_port(), user=_user(), plugins=plugins, folder=folder)
    nodes = "".join(_NODE.format(name=name, host=host, port=free_port()) for name in NODES)
    head, mark, partitions = head.partition("PartitionName=usual")
    (folder / "slurm.conf").write_text(f"{head}{nodes}{mark}{partitions}", encoding="ascii")


def _user() -> str:
    return str(os.geteuid())
