"""Tells a process from another one that was later given the same number, and finds what belongs to its session."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.polling import wait_for

__all__ = ["ProcessIdentity", "kill_group", "wait_unreaped"]

# Fields 3, 6 and 22 of proc(5)'s stat, counted behind the command's closing parenthesis.
_STATE, _SESSION, _START_TIME = 0, 3, 19
_ENDED = frozenset({"Z", "X"})
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process id and when that process started: clock ticks since which boot; empty where the system does not tell.

    There no process is taken for alive: one that cannot be recognised is not one to be killed.
    """

    pid: int
    start: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        return cls(pid, _start(_stat(pid)))

    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        stat = _stat(self.pid)
        return bool(stat) and self.start == _start(stat) and stat[_STATE] not in _ENDED

    def signal(self, number: int) -> None:
        """Signals the process, if it is alive."""
        if self.alive():
            _kill(self.pid, number)

    def signal_group(self, number: int) -> None:
        """Signals the process group that the process leads, if it is alive."""
        if self.alive():
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return  # it ended in between

    def is_from_here(self) -> bool:
        """Whether it is of this machine, and of this boot: of others nothing can be told."""
        return self.start.endswith(f"@{_boot()}")

    def session(self) -> tuple[ProcessIdentity, ...]:
        """What is alive of the session that this process led, which may itself be gone.

        The system gives the number to nobody else while one of the session is left. Where somebody else has it, or
        the machine has booted since, nothing is left.
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
    """Ends at once what is left in the process group of a child that is not reaped yet: its number is nobody else's."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # nobody is left in it (PermissionError: only the zombie, on macOS)


def wait_unreaped(child: int, limit_s: float) -> bool:
    """Waits for the end of a child, without reaping it: `kill_group` may follow. False when it still runs then."""
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
    """Which boot of which machine, and which of its name spaces of process ids: containers have their own."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return "unknown"


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it ended in between
