"""What is done to whom, and when: the same for the same seed and time, whatever the machine does. Pure."""

from __future__ import annotations

import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["COUNTS", "Action", "Fault", "Kind", "Victim", "fault_plan"]


class Kind(enum.Enum):
    """Kinds of processes; whoever kills an executor kills its container."""

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
"""How many there are of each kind in the topology of chaos."""


class Action(enum.Enum):
    """SIGKILL, or SIGSTOP and later SIGCONT."""

    KILL = "kill"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Victim:
    """The `index`-th process of its kind, in the order of their names."""

    kind: Kind
    index: int


@dataclass(frozen=True, slots=True)
class Fault:
    """At `at_s` seconds from the beginning; `stopped_s` is 0 for a kill."""

    at_s: float
    action: Action
    victims: tuple[Victim, ...]
    stopped_s: float = 0.0


_FIRST_S = 1.0
_STOPS = 0.25
_SEVERAL = (1, 1, 1, 1, 2, 2, 3)
_CLOSE = 0.2
_CLOSE_S = (0.02, 0.5)  # into the first second of what comes back
_APART_S = (2.0, 6.0)  # mostly recovered, so that the time of it is that of one fault
_STOPPED_S = (1.0, 8.0)


def fault_plan(seed: int, seconds: float) -> tuple[Fault, ...]:
    """The faults of a run. Each kind comes as often as any other, give or take one."""
    return tuple(_faults(random.Random(seed), seconds))


def _faults(chance: random.Random, seconds: float) -> Iterator[Fault]:
    kinds = _dealt(chance)
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


def _dealt(chance: random.Random) -> Iterator[Kind]:
    """All kinds in some order, again and again."""
    while True:
        yield from chance.sample(list(Kind), len(Kind))
