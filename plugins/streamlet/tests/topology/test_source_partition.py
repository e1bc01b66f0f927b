"""A partition of a source after a restore: it goes on with the element behind the last one that was processed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from heron_streamlet.topology.source_spout import OpenPartition
from heron_testing.fake_clock import FakeClock

INPUT = list(range(8))


class Late:
    """Reads `INPUT`. As a client of a queue does, it has nothing at first; its begin has no position."""

    def __init__(self, position: object) -> None:
        self.position = position
        self._answers = 0

    def read(self, limit: int) -> Sequence[int] | None:
        self._answers += 1
        if self._answers % 2:
            return []
        start = self.position if isinstance(self.position, int) else 0
        self.position = min(start + min(limit, 3), len(INPUT))
        return INPUT[start : self.position] or None

    def close(self) -> None:
        """Nothing is open."""


def opened(position: object) -> OpenPartition:
    return OpenPartition("key", "0", Late(position), {}, float("inf"), FakeClock())


def read(partition: OpenPartition, feed: Callable[[Iterator[int]], None]) -> None:
    while not partition.ended:
        partition.feed(feed)


@pytest.mark.parametrize("failing", INPUT)
def test_a_restore_after_a_failure_neither_loses_nor_repeats_elements(failing: int) -> None:
    """A failure leaves some elements of a read for later, and a checkpoint may be taken in between."""
    seen: list[int] = []

    def feed(elements: Iterator[int]) -> None:
        for each in elements:
            seen.append(each)
            if each == failing:
                raise ArithmeticError

    partition = opened(None)
    with pytest.raises(ArithmeticError):
        read(partition, feed)
    for _ in range(2):  # the second time before anything was read
        position, done, _ = partition.saved()
        partition = opened(position)
        partition.skip(done)
    read(partition, feed)
    assert seen == INPUT


def test_the_place_of_an_element_has_a_short_position() -> None:
    """Positions are of the author: Python does not write every integer, and a `__repr__` may raise."""
    assert opened(10**5_000).place() == "partition '0', element 0 behind position <int of 16,610 bits>"


class Measured(Late):
    """Knows what is behind its position."""

    def backlog(self) -> float:
        return float(len(INPUT)) - (self.position if isinstance(self.position, int) else 0)


def test_the_backlog_counts_what_the_task_has_read_and_not_processed() -> None:
    """A failed element leaves others of its read; without a reader that knows, nothing is claimed."""

    def feed(elements: Iterator[int]) -> None:
        for each in elements:
            if each == 1:
                raise ArithmeticError

    assert opened(None).backlog() is None
    partition = OpenPartition("key", "0", Measured(None), {}, float("inf"), FakeClock())
    partition.feed(feed)  # has nothing yet
    assert partition.backlog() == len(INPUT)
    with pytest.raises(ArithmeticError):
        partition.feed(feed)
    assert partition.backlog() == len(INPUT) - 2
