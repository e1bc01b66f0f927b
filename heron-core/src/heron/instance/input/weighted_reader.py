"""Received segments whose tuples may have weights: the reader and the pool of a topology in which a spout sheds."""

from __future__ import annotations

from itertools import islice
from typing import cast

from heron.api.tuple import Tuple, WeightedTuple, weighted
from heron.instance.input.batch_reader import BatchReader, ReceivedBatch
from heron.instance.input.tuple_pool import TuplePool
from heron.ipc.frames.frame import SegmentHead

__all__ = ["WeightedPool", "WeightedReader"]


class WeightedPool(TuplePool):
    """Tuples with a weight of their own, because a component may keep a tuple while the weight changes."""

    __slots__ = ("weight",)

    def __init__(self, tuple_class: type[Tuple]) -> None:
        super().__init__(weighted(tuple_class))
        self.weight = 1.0

    def take(self, count: int) -> list[Tuple]:
        """`TuplePool.take`; the first `count` have the weight."""
        weight, tuples = self.weight, super().take(count)
        for tup in islice(cast("list[WeightedTuple]", tuples), count):
            tup.weight = weight
        return tuples


class WeightedReader(BatchReader):
    """Decodes segments, and gives their tuples `weight`."""

    weight: float = 1.0

    def read(self, data: bytes, head: SegmentHead, *, keeps_plain: bool = False) -> ReceivedBatch:
        """`BatchReader.read`."""
        batch = super().read(data, head, keeps_plain=keeps_plain)
        source = batch.source
        if isinstance(source.pool, WeightedPool):
            source.pool.weight = self.weight
        elif self.weight != 1.0:
            source.pool = WeightedPool(Tuple.source(*source.key, source.task_id))
            source.pool.weight = self.weight
        return batch
