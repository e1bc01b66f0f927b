"""The parent's side of child processes: starts, identifies, kills and waits for them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from heron.clock import wait_for
from heron.driver_kit.parent_process import DEATH_SIGNAL, PARENT_PID

__all__ = ["ProcessIdentity", "kill_group", "spawn", "wait_unreaped"]

# Fields 3, 6 and 22 of proc(5)'s stat, counted behind the command's closing parenthesis.
_STATE, _SESSION, _START_TIME = 0, 3, 19
_ENDED = frozenset({"Z", "X"})
_LOOK_S = 0.02


def spawn(
    argv: Sequence[str],
    *,
    stdout: IO[bytes] | int | None = None,
    death_signal: signal.Signals | None = signal.SIGKILL,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    detached: bool = False,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in its own process group, with stdin closed and stderr joined to stdout.

    Call it from the main thread. A program that calls `bind_to_parent` receives `death_signal` when this process ends;
    with None it survives. `env` is added to this process's environment. `detached` starts a new session. The child
    inherits only the descriptors `pass_fds`.

    Raises:
        OSError: when the program cannot be started.
    """
    environment = {**os.environ, **(env or {})}
    if death_signal is not None:
        environment[PARENT_PID] = str(os.getpid())
        environment[DEATH_SIGNAL] = death_signal.name
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=None if stdout is None else subprocess.STDOUT,
        env=environment,
        cwd=cwd,
        start_new_session=detached,
        process_group=None if detached else 0,
        pass_fds=pass_fds,
    )


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process id and the start time of the process: clock ticks since a boot, or "" if unknown.

    The kernel uses process ids again, so only both values together identify a process. If the start time is unknown,
    the process counts as ended, so that another process is never killed.
    """

    pid: int
    start: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        return cls(pid, _start(_stat(pid)))

    def alive(self) -> bool:
        """Whether it still runs. A zombie does not run."""
        stat = _stat(self.pid)
        return bool(stat) and self.start == _start(stat) and stat[_STATE] not in _ENDED

    def signal(self, number: int) -> None:
        """Send a signal to the process if it is alive."""
        if self.alive():
            _kill(self.pid, number)

    def signal_group(self, number: int) -> None:
        """Send a signal to the process group that the process leads, if the process is alive."""
        if self.alive():
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return  # it ended meanwhile

    def is_from_here(self) -> bool:
        """Whether it started on this machine and since its last boot; nothing is known about other processes."""
        return self.start.endswith(f"@{_boot()}")

    def session(self) -> tuple[ProcessIdentity, ...]:
        """Return the processes that are alive in the session that this process led; the leader may have ended.

        The system does not reuse the id while the session has a process. If another process has the id, or the machine
        has booted since, the session is over.
        """
        leader = _stat(self.pid)
        if not self.is_from_here() or (leader and self.start != _start(leader)):
            return ()
        found = []
        for entry in Path("/proc").iterdir():
            stat = _stat(int(entry.name)) if entry.name.isdigit() else ()
            if stat and stat[_SESSION] == str(self.pid) and stat[_STATE] not in _ENDED:
                found.append(ProcessIdentity(int(entry.name), _start(stat)))
        return tuple(found)


def kill_group(leader: int) -> None:
    """Kill the process group of a child that is not reaped yet, so its id cannot belong to another process."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # the group is empty (PermissionError: only the zombie is left, on macOS)


def wait_unreaped(child: int, limit_s: float) -> bool:
    """Wait up to `limit_s` seconds for a child to end, without reaping it; return whether it ended."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return wait_for(lambda: os.waitid(os.P_PID, child, options) is not None, limit_s, _LOOK_S)


def _start(stat: tuple[str, ...]) -> str:
    return f"{stat[_START_TIME]}@{_boot()}" if stat else ""


def _stat(pid: int) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return tuple(file.read().rpartition(b")")[2].decode().split())
    except OSError:
        return ()


def _boot() -> str:
    """The boot id of this machine and the namespace of process ids; containers have their own namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return "unknown"


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it ended meanwhile
