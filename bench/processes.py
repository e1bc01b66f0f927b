"""Processor time and resident memory of the processes of a run, by role, as the operating system reports them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["ProcessUse", "ThreadUse", "cpu_s", "processes_of", "processes_of_home", "threads_of", "waits_for_core"]

_STREAM_MANAGER = "stream manager"
_ROLES = {
    "heron.tmanager.main": "topology manager",
    "heron.stmgr.main": _STREAM_MANAGER,
    "heron.metricsmgr.main": "metrics manager",
    "heron.executor.main": "executor",
    "heron.instance.main": "instance",
    "bench-child": "child",
    "heron.jvm.Main": "child",
    "heron_scheduler_spark.spark_driver": "Spark's driver",
    "org.apache.spark.deploy.SparkSubmit": "Spark's driver",
    "org.apache.spark.executor.CoarseGrainedExecutorBackend": "Spark's executors",
    "pyspark.daemon": "Spark's Python workers",
    "pyspark.worker": "Spark's Python workers",
}


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process has used so far; `role` of an instance is its component."""

    pid: int
    role: str
    instance: bool
    cpu_s: float
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class ThreadUse:
    """What a thread has used so far, and how long it was ready without a core; `name` is the operating system's."""

    pid: int
    role: str
    name: str
    main: bool
    on_tuple_path: bool
    cpu_s: float
    waited_s: float


def processes_of(command_pid: int) -> list[ProcessUse]:
    """Return the command of a run and all its living descendants."""
    root = psutil.Process(command_pid)
    found = [ProcessUse(command_pid, "command", False, *_use(root))]
    for process in root.children(recursive=True):
        try:
            role, instance = _role(process.cmdline())
            found.append(ProcessUse(process.pid, role, instance, *_use(process)))
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def processes_of_home(home: Path) -> list[ProcessUse]:
    """Return every living process with this HOME, whatever its parent."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                role, instance = _role(process.cmdline())
                found.append(ProcessUse(process.pid, role, instance, *_use(process)))
    return found


def threads_of(processes: Iterable[ProcessUse]) -> dict[int, ThreadUse]:
    """Return the living threads of the processes, by thread id. Linux only."""
    found: dict[int, ThreadUse] = {}
    for each in processes:
        on_path = each.instance or each.role == _STREAM_MANAGER
        with suppress(psutil.NoSuchProcess):
            for thread in psutil.Process(each.pid).threads():
                name = _thread_name(each.pid, thread.id)
                used_s = thread.user_time + thread.system_time
                waited_s = _waited_s(each.pid, thread.id)
                found[thread.id] = ThreadUse(
                    each.pid, each.role, name, thread.id == each.pid, on_path, used_s, waited_s
                )
    return found


def waits_for_core(processes: Iterable[ProcessUse]) -> float:
    """Return the seconds that all living threads on the tuple path have waited for a core. Linux only."""
    return sum(each.waited_s for each in threads_of(processes).values() if each.on_tuple_path)


def cpu_s(process: psutil.Process) -> float:
    """Return the processor seconds that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _thread_name(pid: int, thread_id: int) -> str:
    try:
        return Path(f"/proc/{pid}/task/{thread_id}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""  # the thread has just ended


def _waited_s(pid: int, thread_id: int) -> float:
    """The time in the queue of a core: the second number of ``/proc/PID/task/TID/schedstat``, in nanoseconds."""
    try:
        return int(Path(f"/proc/{pid}/task/{thread_id}/schedstat").read_text(encoding="utf-8").split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0  # the thread has just ended, or the kernel does not count it


def _use(process: psutil.Process) -> tuple[float, int]:
    return cpu_s(process), process.memory_info().rss


def _role(arguments: list[str]) -> tuple[str, bool]:
    for module, role in _ROLES.items():
        if module in arguments:
            if role != "instance":
                return role, False
            return Path(arguments[-1]).stem.rpartition("-")[0], True
    return "scheduler", False
