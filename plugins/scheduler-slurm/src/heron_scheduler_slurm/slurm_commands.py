"""Runs the commands of Slurm, and gives their errors in Slurm's words."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from contextlib import suppress

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron_scheduler_slurm.options import SlurmOptions
from heron_scheduler_slurm.slurm_jobs import QUEUE_FORMAT, SlurmJob, read_queue

__all__ = ["SlurmCommands"]

_TIME_S = 5.0  # of the contract `Cluster`
_NODE_NAME = re.compile(r"^NodeName=(\S+)", re.MULTILINE)
_PERIOD_S = 0.3  # a controller that serves a site should not be asked more often in a wait


_REMEDIES = {
    "invalid partition": "set scheduler.partition to one that `sinfo` lists",
    "qos": "set scheduler.qos to one that `sacctmgr show assoc user=$USER format=qos` lists, or request less",
    "account": "set scheduler.account to one that the partition permits; `sacctmgr show assoc user=$USER` lists yours",
    "denied|not permitted|user id": "ask the site for the right, or set scheduler.partition to another of `sinfo`",
    "time limit": "set scheduler.time_limit to at most the limit that `sinfo -o '%P %l'` shows",
    "configuration|memory spec": "request less, or set scheduler.partition to another; `sinfo -N -l` lists the nodes",
    "contact": "`scontrol ping` shows the controllers",
}
"""What helps, by the words of an error; the first words that fit count."""


class SlurmCommands:
    """``sbatch``, ``squeue`` and ``scancel`` with the environment that jobs get: jobs must not inherit secrets."""

    def __init__(self, options: SlurmOptions) -> None:
        names = options.environment
        self._environment = {name: os.environ[name] for name in names if name in os.environ}
        path = self._environment.get("PATH", os.defpath)
        self._environment["PATH"] = f"{options.programs}:{path}" if options.programs else path
        self._asked_at_s = float("-inf")

    def run(self, *words: str, timeout_s: float = _TIME_S) -> str:
        """Run a command, and return what it prints on stdout and stderr.

        Raises:
            SchedulerError: when it fails, or does not end within `timeout_s`; then its effect is unknown.
        """
        try:
            ran = subprocess.run(
                words,
                env=self._environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except OSError as error:
            remedy = "install Slurm's commands on this host, or set scheduler.programs to their folder"
            msg = f"`{words[0]}` cannot be run: {error}; {remedy}"
            raise SchedulerError(msg) from error
        except subprocess.TimeoutExpired as error:
            said = _said(words[0], (error.stderr or b"").decode(errors="replace"))
            remedy = f"it says: {said}" if said else "`scontrol ping` shows the controllers"
            msg = f"Slurm: `{words[0]}` has no answer after {timeout_s:g} s; {remedy}"
            raise SchedulerError(msg) from error
        if ran.returncode != 0:
            said = _said(words[0], ran.stderr)
            remedy = next(
                (each for words_of, each in _REMEDIES.items() if re.search(words_of, said, re.IGNORECASE)), ""
            )
            why = "; ".join(filter(None, (said or "it says no reason", remedy)))
            msg = f"Slurm: `{words[0]}` ended with {ran.returncode}: {why}"
            raise SchedulerError(msg)
        return ran.stdout + ran.stderr

    def jobs(self, topology: str) -> tuple[SlurmJob, ...]:
        """Return the jobs of a topology that Slurm still knows, oldest first. Raises SchedulerError as `run` does."""
        wait_s = self._asked_at_s + _PERIOD_S - monotonic_s()
        if wait_s > 0:
            threading.Event().wait(wait_s)
        found = self.run("squeue", "-h", "-t", "all", "-u", str(os.geteuid()), "-o", QUEUE_FORMAT)
        self._asked_at_s = monotonic_s()
        return read_queue(found, topology)

    def nodes(self) -> frozenset[str]:
        """Return the names of all nodes. Raises SchedulerError as `run` does."""
        return frozenset(_NODE_NAME.findall(self.run("scontrol", "show", "node", "-o")))

    def cancel(self, jobs: tuple[SlurmJob, ...], *, kill: bool) -> None:
        """End jobs: waiting jobs at once, running jobs in order, or by force with `kill`. Raises as `run` does."""
        waiting = [each.number for each in jobs if each.waits]
        running = [each.number for each in jobs if each.runs]
        if waiting:  # first: the end of a job starts its successor
            self.run("scancel", *waiting)
        if running and kill:
            self.run("scancel", "--full", "--signal=KILL", *running)
            self.run("scancel", *running)
        elif running:
            with suppress(SchedulerError):  # a job that ends at this moment; the caller looks again
                self.run("scancel", "--batch", "--signal=TERM", *running)


def _said(command: str, stderr: str) -> str:
    """What a command wrote, in one line."""
    return "; ".join(dict.fromkeys(line.removeprefix(f"{command}: ") for line in stderr.strip().splitlines()))
