"""Both ends of a measured pipeline: a source that replays a block of events, and a sink that counts and sums results.

The source makes the events of the block before it gives the first, so the making is not measured. The sources and
sinks note their times as files of a folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from heron_streamlet import Reader, Source, StageContext, TransactionalSink

__all__ = ["BLOCK", "PER_S", "Replay", "Tally"]

BLOCK = 200_000
"""Number of events in a block."""
PER_S = 10_000
"""Events per second of event time."""
ROUND_MS = BLOCK * 1000 // PER_S


class Replay(Source[Any]):
    """A block of events, several times, each time later; partition p of n has the events p, p + n, p + 2n and so on.

    Args:
        block: makes the elements of a partition, from the number of the partition and that of all.
        later: returns elements that are some milliseconds later.
        rounds: how often the block is given.
        partitions: their number; it divides the size of the block.
        most: how many elements are read at a time, at most.
        folder: for the notes; the first element is given when all partitions are open. Empty for neither.
    """

    def __init__(
        self,
        block: Callable[[int, int], Sequence[Any]],
        later: Callable[[Sequence[Any], int], Sequence[Any]],
        rounds: int,
        partitions: int,
        *,
        most: int = 4096,
        folder: str = "",
    ) -> None:
        self.block, self.later = block, later
        self.rounds, self.count, self.most = rounds, partitions, most
        self.folder = folder

    def partitions(self, tasks: int) -> Sequence[str]:  # as many as the author said
        """`Source.partitions`."""
        return [str(number) for number in range(self.count)]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Any]:
        """`Source.open`. The position is the number of elements that were read."""
        return _Reader(self, int(partition), position if isinstance(position, int) else 0)


class _Reader:
    def __init__(self, source: Replay, partition: int, position: int) -> None:
        self.position = position
        self._source = source
        self._partition = partition
        self._events = source.block(partition, source.count)
        self._waits = bool(source.folder)
        if self._waits:
            Path(source.folder, f"open-{partition}").touch()

    def read(self, limit: int) -> Sequence[Any] | None:
        """`Reader.read`."""
        if self._waits and not self._all_open():
            return ()
        source, events = self._source, self._events
        number, place = divmod(self.position, len(events))
        if number >= source.rounds:
            return None
        found = events[place : place + min(limit, source.most)]
        self.position += len(found)
        return source.later(found, number * ROUND_MS)

    def close(self) -> None:
        """`Reader.close`."""

    def _all_open(self) -> bool:
        folder = Path(self._source.folder)
        self._waits = len(list(folder.glob("open-*"))) < self._source.count
        if not self._waits:
            (folder / f"begin-{self._partition}").write_text(f"{time.monotonic()}", encoding="utf-8")
        return not self._waits


class Tally(TransactionalSink[Any]):
    """Counts and sums the results of a task, and notes its end; `amount` returns count and sum of an element."""

    def __init__(self, folder: str, amount: Callable[[Any], tuple[int, int]]) -> None:
        self.folder = folder
        self.amount = amount
        self.results = self.sum = 0
        self.name = ""

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`."""
        self.name = f"end-{context.name}-{context.partition}"

    def put(self, element: Any) -> None:  # noqa: ANN401  # any result
        """`Sink.put`."""
        results, amount = self.amount(element)
        self.results += results
        self.sum += amount

    def prepare(self, checkpoint: int) -> None:
        """`TransactionalSink.prepare`: the input has ended."""
        Path(self.folder, self.name).write_text(f"{time.monotonic()} {self.results} {self.sum}", encoding="utf-8")

    def commit(self, checkpoint: int) -> None:
        """`TransactionalSink.commit`."""

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`."""
