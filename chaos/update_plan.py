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


@dataclass(frozen=True, slots=True)
class Update:
    """An update at `at_s` seconds from the beginning, by the command or by the Python client."""

    at_s: float
    parallelism: tuple[tuple[str, int], ...]
    by_client: bool


def update_plan(seed: int, seconds: float, mode: Mode) -> tuple[Update, ...]:
    """Return the updates of a run. Some set all components to their least or most, which moves containers too."""
    return tuple(_updates(random.Random(seed), seconds, MOST_TASKS[mode]))


def _updates(chance: random.Random, seconds: float, most: Mapping[str, int]) -> Iterator[Update]:
    at_s = _FIRST_S
    while at_s < seconds:
        if chance.random() < _ALL:
            grows = chance.random() < 1 / 2
            parallelism = {name: tasks if grows else 1 for name, tasks in most.items()}
        else:
            chosen = chance.sample(sorted(most), chance.randint(1, len(most)))
            parallelism = {name: chance.randint(1, most[name]) for name in chosen}
        yield Update(at_s, tuple(sorted(parallelism.items())), chance.random() < _CLIENT)
        at_s += _EVERY_S
