"""The faults of a host and of a container: other work on its processor, and limits of processors and memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ground_truth.errors import TruthError
from ground_truth.sites import cgroup, write
from ground_truth.topology_run import TopologyRun

__all__ = ["busy_host", "full_memory", "low_priority", "throttled_container"]

_CONTAINER = 2
_NEIGHBOURS = 40  # each process has a share, so four busy tasks beside them have 9 % of the processor together
_QUOTA_US, _PERIOD_US = 8_000, 100_000
_FEW_SHARES = 200  # of 1024 that other work has
_FULL = 0.95
_BUSY = "while True: pass"


@contextlib.contextmanager
def busy_host(run: TopologyRun) -> Iterator[frozenset[str]]:
    """A container has one processor, and processes beside it use the same one."""
    with _pinned(run), _neighbours(_NEIGHBOURS):
        yield frozenset({f"slow-host container {_CONTAINER}"})


@contextlib.contextmanager
def low_priority(run: TopologyRun) -> Iterator[frozenset[str]]:
    """A container has few shares of a processor, and one process beside it uses the rest."""
    with _pinned(run), cgroup("cpu") as folder, _neighbours(1):
        write(folder / "cpu.shares", _FEW_SHARES)
        for pid in run.pids_of(_CONTAINER):
            write(folder / "cgroup.procs", pid)
        yield frozenset({f"slow-host container {_CONTAINER}"})


@contextlib.contextmanager
def throttled_container(run: TopologyRun) -> Iterator[frozenset[str]]:
    """A container may use 8 % of a processor."""
    with cgroup("cpu") as folder:
        write(folder / "cpu.cfs_period_us", _PERIOD_US)
        write(folder / "cpu.cfs_quota_us", _QUOTA_US)
        for pid in run.pids_of(_CONTAINER):
            write(folder / "cgroup.procs", pid)
        yield frozenset({f"slow-host container {_CONTAINER}"})


@contextlib.contextmanager
def full_memory(run: TopologyRun) -> Iterator[frozenset[str]]:
    """The memory limit of a container is little more than what it uses."""
    group = run.site.memory
    if group is None:
        msg = "the topology runs without a cgroup that counts its memory"
        raise TruthError(msg)
    used_bytes = int((group / "memory.usage_in_bytes").read_text(encoding="ascii"))
    write(group / "memory.limit_in_bytes", int(used_bytes / _FULL))
    yield frozenset({f"memory-near-limit container {_CONTAINER}"})


@contextlib.contextmanager
def _pinned(run: TopologyRun) -> Iterator[None]:
    processor = max(os.sched_getaffinity(0))
    for thread in _threads(run):
        os.sched_setaffinity(thread, [processor])
    yield


def _threads(run: TopologyRun) -> Iterator[int]:
    """The threads of the container's processes: Linux counts processors and priorities for each of them."""
    for pid in run.pids_of(_CONTAINER):
        for path in Path(f"/proc/{pid}/task").iterdir():
            yield int(path.name)


@contextlib.contextmanager
def _neighbours(count: int) -> Iterator[None]:
    """Busy processes on the last processor, each in a session of its own, so that each gets a share of its own."""
    processor = max(os.sched_getaffinity(0))
    words = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{processor}])\n{_BUSY}"]
    started = [subprocess.Popen(words, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()
