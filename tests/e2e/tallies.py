"""Checks of a run of ``updating.py``: the numbers of each spout task have been counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun

__all__ = ["check_tallies"]


def check_tallies(run: HeronRun) -> int:
    """Compare the tallies with the numbers that were emitted, and return how many these are; the run has ended."""
    emitted = {task: int(str(rows[0][0])) for task, rows in run.results("numbers").items()}
    tallies: dict[int, list[int]] = {task: [0, 0, 0] for task in emitted}
    for rows in run.results("tally").values():
        for task, *tally in rows:
            sums = tallies[int(str(task))]
            tallies[int(str(task))] = [one + int(str(other)) for one, other in zip(sums, tally, strict=True)]
    for task, count in emitted.items():
        squares = (count - 1) * count * (2 * count - 1) // 6
        assert tallies[task] == [count, count * (count - 1) // 2, squares], f"spout task {task}"
    return sum(emitted.values())
