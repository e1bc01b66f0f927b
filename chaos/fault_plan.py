"""The plan of faults. It depends only on the seed and the duration. Pure."""

from __future__ import annotations

import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["COUNTS", "Action", "Fault", "Kind", "Victim", "fault_plan"]


class Kind(enum.Enum):
    """Kinds of processes. Killing an executor kills its container."""

    SPOUT = "spout"
    BOLT = "bolt"
    STREAM_MANAGER = "stmgr"
    TOPOLOGY_MANAGER = "tmanager"
    METRICS_MANAGER = "metricsmgr"
    EXECUTOR = "executor"


COUNTS = {
    Kind.SPOUT: 2,
    Kind.BOLT: 6,
    Kind.STREAM_MANAGER: 2,
    Kind.TOPOLOGY_MANAGER: 1,
    Kind.METRICS_MANAGER: 3,
    Kind.EXECUTOR: 3,
}
"""Number of processes of each kind in the chaos topology."""


class Action(enum.Enum):
    """SIGKILL, or SIGSTOP followed by SIGCONT."""

    KILL = "kill"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Victim:
    """The process with this index among those of its kind, ordered by name."""

    kind: Kind
    index: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at `at_s` seconds from the beginning; `stopped_s` is 0 for a kill."""

    at_s: float
    action: Action
    victims: tuple[Victim, ...]
    stopped_s: float = 0.0


_FIRST_S = 1.0
_STOPS = 0.25
_SEVERAL = (1, 1, 1, 1, 2, 2, 3)
_CLOSE = 0.2
_CLOSE_S = (0.02, 0.5)  # hits a restarted process in its first second
_APART_S = (2.0, 6.0)  # usually long enough to recover, so that the time belongs to one fault
_STOPPED_S = (1.0, 8.0)


def fault_plan(seed: int, seconds: float) -> tuple[Fault, ...]:
    """Return the faults of a run. All kinds are equally frequent, with a difference of at most one."""
    return tuple(_faults(random.Random(seed), seconds))


def _faults(chance: random.Random, seconds: float) -> Iterator[Fault]:
    kinds = _shuffled_kinds(chance)
    at_s = _FIRST_S
    while at_s < seconds:
        victims: list[Victim] = []
        for kind in (next(kinds) for _ in range(chance.choice(_SEVERAL))):
            victim = Victim(kind, chance.randrange(COUNTS[kind]))
            if victim not in victims:
                victims.append(victim)
        if chance.random() < _STOPS:
            yield Fault(at_s, Action.STOP, tuple(victims), chance.uniform(*_STOPPED_S))
        else:
            yield Fault(at_s, Action.KILL, tuple(victims))
        at_s += chance.uniform(*(_CLOSE_S if chance.random() < _CLOSE else _APART_S))


def _shuffled_kinds(chance: random.Random) -> Iterator[Kind]:
    """Yield all kinds in random order, repeatedly."""
    while True:
        yield from chance.sample(list(Kind), len(Kind))
