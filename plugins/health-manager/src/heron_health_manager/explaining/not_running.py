"""Containers that do not run: why, in the words of their scheduler, and what helps. Pure; the same for all schedulers.

Clusters report reasons as words for people. The words that name a cause are few and stable, because people search for
them; a reason without one is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heron.spi.scheduler import ContainerStatus
from heron_cli.view.text import counted
from heron_health_manager.explaining.explanation import Problem
from heron_health_manager.explaining.facts import Facts

__all__ = ["OTHER", "container_problems"]

OTHER = "container-not-running"
"""The kind of a problem whose reason shows no known cause."""

_GRAVITY = 95.0  # above that of a process that is given up: without a container, all its tasks are missing


@dataclass(frozen=True, slots=True)
class _Cause:
    """A cause that clusters report: its name, the words of reasons that show it, what it is, and what helps."""

    kind: str
    words: re.Pattern[str]
    text: str
    action: str


def _cause(kind: str, words: str, text: str, action: str) -> _Cause:
    return _Cause(kind, re.compile(words), text, action)


# In this order, because a refused image also lacks a right, and a quota is a reason why something is forbidden.
_CAUSES = (
    _cause(
        "no-image",
        r"(?i)\bimage|manifest unknown|repository does not exist",
        "its image cannot be used",
        "correct scheduler.image, or let the machines of the cluster read it",
    ),
    _cause(
        "quota",
        r"(?i:quota)|reached the limit|\bQOS|\bAssoc|MaxSubmitJob|LimitRange",
        "a limit for this user, account or namespace is reached",
        "use fewer or smaller containers, end other jobs, or ask for a higher limit",
    ),
    _cause(
        "time-limit",
        r"PartitionTimeLimit|\bTIMEOUT\b|\bDEADLINE\b|DeadlineExceeded|(?i:time limit)",
        "a time limit forbids or ended it",
        "set a time limit that the cluster permits and that leaves time for an orderly end",
    ),
    _cause(
        "no-right",
        r"(?i)forbidden|denied|not (permitted|allowed|authorized)|unauthorized|account not known|Invalid(Account|QOS)"
        r"|NotAllowed",
        "a right is missing",
        "use an account that may do this, or ask the administrator of the cluster for the right",
    ),
    _cause(
        "memory-limit",
        r"OOMKilled|OUT_OF_MEMORY|OutOfMemory"
        r"|(?i:out of memory|beyond (?:physical|virtual) memory|memory limit exceeded)",
        "it needed more memory than it may have",
        "give its components more memory, or keep less in them",
    ),
    _cause(
        "no-room",
        r"Insufficient|Unschedulable|nodes are available|exhausted|PENDING(?! \(JobHeld)|No nodes|excluded by filter"
        r"|does not have (?:sufficient|enough)|waiting for resources|resource is empty|AM resource limit exceeded"
        r"|no agent (?:fits|has offered)|unable to place a task|Capacity is unavailable|RESOURCE:",
        "no machine of the cluster takes it now",
        "wait, request less for its components, or correct what the profile asks of machines",
    ),
    _cause(
        "machine-lost",
        r"NODE_FAIL|NodeLost|NodeShutdown|Evicted|PREEMPTED|(?i:preempted by)|BOOT_FAIL|\b(?:is|was|were) lost"
        r"|\bLOST on|is unreachable",
        "its machine was lost, or was needed for others",
        "wait until the cluster starts it elsewhere",
    ),
)
_OTHER = _cause(OTHER, "", "its scheduler says", "remove the cause that its scheduler names")
_AUTHORS = re.compile(r"(?<=exit code )(\d+): .*")
"""The last output of a process is not in the words of a cluster."""


def container_problems(facts: Facts) -> Iterator[Problem]:
    """A problem for each cause, with its containers."""
    by_cause: dict[_Cause, list[ContainerStatus]] = {}
    for each in facts.containers:
        if not each.running and each.last_error:
            by_cause.setdefault(_cause_of(each.last_error), []).append(each)
    for cause, containers in by_cause.items():
        yield _problem(facts, cause, containers)


def _cause_of(reason: str) -> _Cause:
    """The cause of the last part of a reason that shows one: earlier parts say how earlier starts ended."""
    for part in reversed(reason.split("; ")):
        said = _AUTHORS.sub(r"\1", part)
        for each in _CAUSES:
            if each.words.search(said):
                return each
    return _OTHER


def _problem(facts: Facts, cause: _Cause, containers: Sequence[ContainerStatus]) -> Problem:
    reasons: dict[str, int] = {}
    for each in containers:
        reasons.setdefault(each.last_error, each.container_id)
    first, *others = reasons
    again = ", then `heron restart` its container" if any("given up after" in each for each in reasons) else ""
    return Problem(
        kind=cause.kind,
        subject=f"container {containers[0].container_id}",
        what=_what(containers, len(facts.containers)),
        why=(f"{cause.text}: {first}", *(f"container {reasons[each]}: {each}" for each in others)),
        action=f"{cause.action}{again}",
        command=f"heron status {facts.topology}",
        gravity=_GRAVITY,
    )


def _what(containers: Sequence[ContainerStatus], total: int) -> str:
    if len(containers) > 1:
        ids = ", ".join(str(each.container_id) for each in containers)
        return f"{len(containers)} of {total} containers do not run: {ids}"
    (only,) = containers
    after = f", after {counted(only.attempts, 'start')}" if only.attempts else ", and has never started"
    return f"container {only.container_id} does not run{after}"
