"""Checks of a run of ``exactly_once.py``: each number of each partition is committed once, in order, with its count."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from heron_testing.heron_run import HeronRun

__all__ = ["PARTITIONS", "check_committed", "commits", "committed"]

PARTITIONS = 40
"""The partitions of the source of these topologies."""


def committed(out: Path) -> dict[int, list[tuple[int, int]]]:
    """Return the committed ``(number, count)`` of each partition, in the order in which they were committed."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    paths = [path for path in out.glob("*-committed-*") if path.is_file()]
    for path in sorted(paths, key=lambda each: int(each.name.rpartition("-")[2])):
        for line in path.read_text(encoding="utf-8").splitlines():
            partition, number, count = map(int, line.split())
            found[partition].append((number, count))
    return found


def commits(run: HeronRun, what: str) -> None:
    """Wait until more lines are committed: at least one more in a partition."""
    run.grows(lambda: sum(map(len, committed(run.out).values())), f"lines {what}", PARTITIONS)


def check_committed(out: Path, partitions: int) -> int:
    """Check that nothing is lost, doubled or out of order, and return how many lines there are."""
    found = committed(out)
    assert sorted(found) == list(range(partitions))
    for partition, lines in found.items():
        assert lines == [(number, number + 1) for number in range(len(lines))], f"partition {partition}"
    return sum(map(len, found.values()))
