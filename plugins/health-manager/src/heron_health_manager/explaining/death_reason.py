"""The reason of a process's end, as its executor records it, taken apart again."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from heron.driver_kit.parent_process import EXIT_TEMPORARY, EXIT_USER_INIT

__all__ = ["DeathKind", "DeathReason", "death_reason"]

_ENDS = re.compile(
    r"(?P<end>exit code (?P<code>\d+)|killed by (?P<signal>SIG\w+|signal \d+))"
    r"(?: \((?P<cause>[^)]*)\))?(?:: (?P<last>.*))?\Z",
    re.DOTALL,
)
_LIMIT = re.compile(r"limit \d[\d.]* [MG]iB|no memory limit is set")
_BY_KERNEL = "by the kernel for memory"
_NOT_EXECUTOR = "its executor (it sent no signal)"
_EXCLUDED = {
    "not by its executor": _NOT_EXECUTOR,
    "not by the kernel for memory": "the kernel's killer for memory (it has counted no kill)",
}
_NOT_HERON = "not given by Heron"  # the author's code has ended the process with a code that Heron uses too
_HINTS = (
    "the kernel has just killed a process of this host for memory",
    "whether by the kernel for memory is not known",
)
_FROM_OUTSIDE = frozenset({"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"})


class DeathKind(enum.Enum):
    """How a process ended."""

    EXITED = "exited"
    """By itself, with an exit code: its code raised or left."""
    NOT_STARTED = "not started"
    """Its component could not be constructed or initialised."""
    TEMPORARY = "temporary"
    """It cannot work now: no space, no state manager."""
    MEMORY = "memory"
    """The kernel killed it for memory."""
    SIGNALLED = "signalled"
    """A signal from outside, whose sender is not known."""
    CRASHED = "crashed"
    """A signal that the process caused itself, such as SIGSEGV."""
    UNKNOWN = "unknown"
    """The record says something else."""


@dataclass(frozen=True, slots=True)
class DeathReason:
    """How a process ended, for people: `text` without its last output, `last_line` of its output ("" without one).

    `ruled_out` are the senders of a signal that the record excludes.
    """

    kind: DeathKind
    text: str
    last_line: str = ""
    ruled_out: tuple[str, ...] = ()


def death_reason(recorded: str) -> DeathReason:
    """Takes a record apart; one with a prefix, as in a status, too."""
    found = _ENDS.search(recorded)
    if found is None:
        return DeathReason(DeathKind.UNKNOWN, recorded or "no reason is recorded")
    cause, last = found["cause"] or "", (found["last"] or "").strip()
    limit = match[0] if (match := _LIMIT.search(cause)) else ""
    if found["code"] is not None:
        kind = DeathKind.EXITED if cause == _NOT_HERON else _kind_of_exit(int(found["code"]))
        return DeathReason(kind, found["end"], last)
    if cause.startswith(_BY_KERNEL):
        text = f"killed by the kernel for memory ({limit})"
        return DeathReason(DeathKind.MEMORY, text, last, (_NOT_EXECUTOR,))
    if found["signal"] not in _FROM_OUTSIDE:
        return DeathReason(DeathKind.CRASHED, found["end"], last)
    known = [each for each in _HINTS if each in cause]
    text = "; ".join([found["end"], *(known or ["who sent it is not known"]), *([limit] if limit else [])])
    return DeathReason(
        DeathKind.SIGNALLED, text, last, tuple(each for mark, each in _EXCLUDED.items() if mark in cause)
    )


def _kind_of_exit(code: int) -> DeathKind:
    kinds = {EXIT_USER_INIT: DeathKind.NOT_STARTED, EXIT_TEMPORARY: DeathKind.TEMPORARY}
    return kinds.get(code, DeathKind.EXITED)
