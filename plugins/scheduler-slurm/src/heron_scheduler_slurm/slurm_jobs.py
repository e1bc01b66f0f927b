"""What Slurm says of the jobs of a topology, and what that means for its containers. Pure.

A container has one job at a time, and a successor: a waiting job that Slurm starts if the first one does not end with
exit code 0. Only the reasons of Slurm are used, word for word, because people find them in Slurm's manual.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from heron_scheduler_kit.managed.cluster import Observation

__all__ = ["QUEUE_FORMAT", "SlurmJob", "job_name", "observe_places", "read_queue"]

QUEUE_FORMAT = "%A|%T|%r|%N|%j|%k"

_NAME = re.compile(r"heron\.([A-Za-z0-9_-]+)\.([0-9]+)")
_RUN = re.compile(r" run=(\S+) ")
_OVER = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED"}
    | {"TIMEOUT"}
)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One job as ``squeue`` shows it; `place` is its container, `run` the id of its run ("": unknown)."""

    number: str
    state: str
    reason: str
    nodes: str
    place: str
    run: str = ""

    @property
    def over(self) -> bool:
        return self.state in _OVER

    @property
    def waits(self) -> bool:
        return self.state == "PENDING"

    @property
    def runs(self) -> bool:
        return not self.over and not self.waits

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason not in {"", "None"} else ""
        return f"job {self.number} is {self.state}{why}"


def job_name(topology: str, place: str) -> str:
    """Return the name of the job of a container."""
    return f"heron.{topology}.{place}"


def read_queue(text: str, topology: str) -> tuple[SlurmJob, ...]:
    """Return the jobs of a topology in an answer of ``squeue`` in `QUEUE_FORMAT`, oldest first."""
    found = []
    for line in text.splitlines():
        number, state, reason, nodes, name, comment = (*line.split("|", 5), "", "", "", "", "")[:6]
        named, run = _NAME.fullmatch(name), _RUN.search(comment)
        if named is not None and named[1] == topology:
            found.append(SlurmJob(number, state, reason, nodes, named[2], run[1] if run else ""))
    return tuple(sorted(found, key=lambda each: int(each.number)))


def observe_places(jobs: Sequence[SlurmJob], run: str) -> dict[str, Observation]:
    """Return what the jobs of a topology say of its places; the ends of jobs of other runs do not count."""
    mine = [each for each in jobs if not each.over or each.run in {"", run}]
    return {place: _observe([each for each in mine if each.place == place]) for place in {each.place for each in mine}}


def _observe(jobs: Sequence[SlurmJob]) -> Observation:
    ended = [str(each) for each in jobs if each.over][-1:]
    for each in jobs:
        if each.runs:
            up = each.state == "RUNNING"
            reasons = [*ended] if up else [*ended, str(each)]
            return Observation(up, f"{each.nodes}, job {each.number}", "; ".join(reasons), each.nodes)
    waiting = [str(each) for each in jobs if each.waits][:1]
    if not waiting:
        ended.append("it has no other job; `heron restart TOPOLOGY CONTAINER` submits one")
    return Observation(False, "", "; ".join([*ended, *waiting]))
