"""Which task of a component owns each key group. Pure.

The tasks of a new topology own one range of groups each. An update moves the fewest groups that give all tasks an equal
share. The ranges are broken then, so from the first update on the owners are a table in the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

__all__ = ["KeyOwners", "even_owners", "moved_groups", "owners_after"]


@dataclass(frozen=True, slots=True)
class KeyOwners:
    """The owners of all groups of a component, as a plan stores them: ``(task id, number of groups)`` in order."""

    runs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, owners: Sequence[int]) -> KeyOwners:
        """The runs of a table."""
        return cls(tuple((task_id, sum(1 for _ in run)) for task_id, run in groupby(owners)))

    def table(self) -> tuple[int, ...]:
        """The task id of each group, by group."""
        return tuple(task_id for task_id, length in self.runs for _ in range(length))


def even_owners(groups: int, tasks: Sequence[int]) -> tuple[int, ...]:
    """One range for each task, in the order of `tasks`; the lengths differ by at most one."""
    return tuple(tasks[group * len(tasks) // groups] for group in range(groups))


def owners_after(owners: Sequence[int], tasks: Sequence[int]) -> tuple[int, ...]:
    """The owners after the component has got these tasks; shares differ by at most one, and the fewest groups move.

    A task that keeps its groups keeps all of them. Of the tasks that must give groups away, each gives its last ones.
    """
    shares = _shares(Counter(owners), tasks, len(owners))
    kept = [_NOBODY] * len(owners)
    for group, task_id in enumerate(owners):
        if shares.get(task_id, 0):
            shares[task_id] -= 1
            kept[group] = task_id
    takers = iter([task_id for task_id in tasks for _ in range(shares[task_id])])
    return tuple(next(takers) if task_id == _NOBODY else task_id for task_id in kept)


def moved_groups(before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    """The groups whose owner differs, ascending."""
    return tuple(group for group, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1])


_NOBODY = 0  # task ids start at 1


def _shares(held: Counter[int], tasks: Sequence[int], groups: int) -> dict[int, int]:
    """How many groups each task gets. The tasks that hold the most get the larger share, so that they keep more."""
    small, larger = divmod(groups, len(tasks))
    by_held = sorted(tasks, key=lambda task_id: -held[task_id])
    return {task_id: small + (place < larger) for place, task_id in enumerate(by_held)}
