"""The plan of updates. It depends only on the seed, the duration and the mode. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chaos.mode import Mode

__all__ = ["MOST_TASKS", "Update", "update_plan"]

MOST_TASKS: Mapping[Mode, Mapping[str, int]] = {
    Mode.AT_LEAST_ONCE: {"split": 4, "journal": 6},  # its spouts keep positions by task index
    Mode.EFFECTIVELY_ONCE: {"lines": 3, "count": 6, "commit": 3},
}
"""The components that are updated, with their largest parallelism."""

_FIRST_S = 4.0
_EVERY_S = 20.0
_ALL = 0.4
_CLIENT = 0.5
_REBALANCED = "count"  # its keys are not equally frequent
_OTHERS = {Mode.AT_LEAST_ONCE: 0.0, Mode.EFFECTIVELY_ONCE: 0.3}  # spouts without checkpoints cannot move
_CONTAINERS = (2, 4)  # with a standby topology manager, one is not enough


@dataclass(frozen=True, slots=True)
class Update:
    """An update at `at_s` seconds from the beginning, by the command or by the Python client.

    It changes the parallelism, or the number of containers, or moves key groups of components by their load.
    """

    at_s: float
    parallelism: tuple[tuple[str, int], ...]
    by_client: bool
    containers: int | None = None
    rebalance: tuple[str, ...] = ()

    def words(self) -> tuple[str, ...]:
        """The options of ``heron update``."""
        if self.rebalance:
            return tuple(word for each in self.rebalance for word in ("--rebalance", each))
        if self.containers is not None:
            return ("--container-number", str(self.containers))
        return tuple(
            word for name, tasks in self.parallelism for word in ("--component-parallelism", f"{name}:{tasks}")
        )


def update_plan(seed: int, seconds: float, mode: Mode) -> tuple[Update, ...]:
    """Return the updates of a run. Some set all components to their least or most, which moves containers too."""
    return tuple(_updates(random.Random(seed), seconds, mode))


def _updates(chance: random.Random, seconds: float, mode: Mode) -> Iterator[Update]:
    at_s, most = _FIRST_S, MOST_TASKS[mode]
    while at_s < seconds:
        by_client = chance.random() < _CLIENT
        if chance.random() < _OTHERS[mode]:
            rebalances = chance.random() < 1 / 2
            containers = None if rebalances else chance.randint(*_CONTAINERS)
            yield Update(at_s, (), by_client, containers, (_REBALANCED,) if rebalances else ())
        else:
            yield Update(at_s, tuple(sorted(_parallelism(chance, most).items())), by_client)
        at_s += _EVERY_S


def _parallelism(chance: random.Random, most: Mapping[str, int]) -> dict[str, int]:
    if chance.random() < _ALL:
        grows = chance.random() < 1 / 2
        return {name: tasks if grows else 1 for name, tasks in most.items()}
    chosen = chance.sample(sorted(most), chance.randint(1, len(most)))
    return {name: chance.randint(1, most[name]) for name in chosen}
