"""Tells a process from another one that was later given the same number."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["ProcessIdentity"]

_STATE, _START_TIME = 0, 19  # fields 3 and 22 of proc(5)'s stat, counted behind the command's closing parenthesis


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process id and when that process started, in clock ticks since boot; empty where the system does not tell.

    There no process is taken for alive: a process that cannot be recognised is not one to be killed.
    """

    pid: int
    start: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        return cls(pid, _stat(pid)[1])

    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        state, start = _stat(self.pid)
        return bool(self.start) and start == self.start and state not in {"Z", "X"}

    def signal_group(self, number: int) -> None:
        """Signals the process and its group, if it is alive."""
        if self.alive():
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return  # it ended in between


def _stat(pid: int) -> tuple[str, str]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return "", ""
    return fields[_STATE].decode(), fields[_START_TIME].decode()
