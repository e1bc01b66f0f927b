"""What the kernel says about a thread of this process: its processor time, and the system call in which it waits.

A process may always read this about its own threads, without root and without ptrace.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ThreadUsage", "thread_usage", "wait_of"]

_TASKS = Path("/proc/self/task")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_STATE, _USER_TIME, _SYSTEM_TIME = 0, 11, 12  # fields of /proc/PID/stat after the name, which ends with a bracket

_SLEEP, _LOCK, _CHILD = "the end of a sleep", "a lock", "a child process"
_EVENTS = "an event of a socket, pipe or timer"
_DESCRIPTOR = "descriptor"
_SOCKET, _PIPE, _FILE = "a socket", "a pipe", "a file"

_KINDS: Mapping[str, tuple[tuple[str, tuple[int, ...]], ...]] = {
    "x86_64": (
        (_SLEEP, (35, 230)),
        (_LOCK, (202,)),
        (_EVENTS, (7, 23, 232, 270, 271, 281)),
        (_CHILD, (61, 247)),
        (_SOCKET, (42, 43, 44, 45, 46, 47, 288)),
        (_DESCRIPTOR, (0, 1, 17, 18, 19, 20)),
        (_FILE, (2, 72, 73, 74, 75, 257)),
    ),
    "aarch64": (
        (_SLEEP, (101, 115)),
        (_LOCK, (98,)),
        (_EVENTS, (22, 72, 73)),
        (_CHILD, (95, 260)),
        (_SOCKET, (202, 203, 206, 207, 211, 212, 242)),
        (_DESCRIPTOR, (63, 64, 65, 66, 67, 68)),
        (_FILE, (25, 32, 56, 82, 83)),
    ),
}
"""What a thread waits for in a system call, by processor: the numbers differ."""

_CALLS = {machine: {number: kind for kind, numbers in kinds for number in numbers} for machine, kinds in _KINDS.items()}
_MACHINE = platform.machine()


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """A thread at one moment: the letter of its state, its processor time, and its line in ``/proc/…/syscall``.

    `syscall` is "" where the kernel does not tell.
    """

    state: str
    cpu_s: float
    syscall: str = ""


def thread_usage(native_id: int) -> ThreadUsage | None:
    """The thread now; None when it has ended, or where there is no ``/proc``."""
    folder = _TASKS / str(native_id)
    try:
        fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        ticks_s = (int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) * _TICK_S
    except (OSError, IndexError, ValueError):
        return None
    return ThreadUsage(fields[_STATE], _exact_s(folder, ticks_s), _syscall(folder))


def wait_of(syscall: str, target_of: Callable[[int], str] | None = None, machine: str = _MACHINE) -> str:
    """What a thread waits for, by its line in ``/proc/…/syscall``; "" if that is unknown, or it does not wait.

    `target_of` returns what a file descriptor is, as ``/proc/self/fd`` names it. The numbers of calls depend on the
    processor, `machine`; of another than ``x86_64`` and ``aarch64`` nothing is known.
    """
    words = syscall.split()
    if len(words) < 2 or not words[0].isdigit():
        return ""
    kind = _CALLS.get(machine, {}).get(int(words[0]), "")
    if kind != _DESCRIPTOR:
        return kind
    target = (target_of or _target_of)(int(words[1], 16))
    if target.startswith("pipe:"):
        return _PIPE
    return _SOCKET if target.startswith("socket:") else _FILE


def _exact_s(folder: Path, ticks_s: float) -> float:
    """The processor time in nanoseconds, where the kernel counts it so; ticks are 10 ms."""
    try:
        return int((folder / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    except (OSError, IndexError, ValueError):
        return ticks_s


def _syscall(folder: Path) -> str:
    try:
        return (folder / "syscall").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _target_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
