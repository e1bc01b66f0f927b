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

    `limit` is the memory limit of its container as the record has it.
    """

    kind: DeathKind
    text: str
    last_line: str = ""
    limit: str = ""


def death_reason(recorded: str) -> DeathReason:
    """Takes a record apart; one with a prefix, as in a status, too."""
    found = _ENDS.search(recorded)
    if found is None:
        return DeathReason(DeathKind.UNKNOWN, recorded or "no reason is recorded")
    cause, last = found["cause"] or "", (found["last"] or "").strip()
    limit = match[0] if (match := _LIMIT.search(cause)) else ""
    if found["code"] is not None:
        return DeathReason(_kind_of_exit(int(found["code"])), found["end"], last)
    if cause.startswith(_BY_KERNEL):
        return DeathReason(DeathKind.MEMORY, f"killed by the kernel for memory ({limit})", last, limit)
    kind = DeathKind.SIGNALLED if found["signal"] in _FROM_OUTSIDE else DeathKind.CRASHED
    return DeathReason(kind, f"{found['end']}; {cause}" if cause else found["end"], last, limit)


def _kind_of_exit(code: int) -> DeathKind:
    kinds = {EXIT_USER_INIT: DeathKind.NOT_STARTED, EXIT_TEMPORARY: DeathKind.TEMPORARY}
    return kinds.get(code, DeathKind.EXITED)
