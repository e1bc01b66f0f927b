"""The processes of a run as the system sees them: processor time and resident memory by role."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["ProcessUse", "processes_of"]

_ROLES = {
    "heron.tmanager.main": "topology manager",
    "heron.stmgr.main": "stream manager",
    "heron.metricsmgr.main": "metrics manager",
    "heron.executor.main": "executor",
    "heron.instance.main": "instance",
}


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process has used so far; `role` of an instance is its component."""

    pid: int
    role: str
    instance: bool
    cpu_s: float
    resident_bytes: int


def processes_of(command_pid: int) -> list[ProcessUse]:
    """The command of a run and all that it started, directly or not, and that is alive."""
    root = psutil.Process(command_pid)
    found = [ProcessUse(command_pid, "command", False, *_use(root))]
    for process in root.children(recursive=True):
        try:
            role, instance = _role(process.cmdline())
            found.append(ProcessUse(process.pid, role, instance, *_use(process)))
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def _use(process: psutil.Process) -> tuple[float, int]:
    times = process.cpu_times()
    return times.user + times.system, process.memory_info().rss


def _role(arguments: list[str]) -> tuple[str, bool]:
    for module, role in _ROLES.items():
        if module in arguments:
            if role != "instance":
                return role, False
            return Path(arguments[-1]).stem.rpartition("-")[0], True
    return "scheduler", False
