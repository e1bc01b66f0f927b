"""Which received tuples are settled, and the acks and fails that say so. Belongs to the task thread.

An ack reports the XOR of the tuple's key and of all keys emitted under it, and those are known only when what was
emitted is flushed: so acks wait here for the next flush, and leave right behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from heron.api.tuple import Tuple
from heron.instance.arrays import arrays
from heron.instance.in_batch import InBatch
from heron.ipc.tracking import ack_range

__all__ = ["AckOut", "BoltTracker"]


class AckOut(Protocol):
    """Where acks go."""

    def put_acks(self, segments: Sequence[bytes]) -> None:
        """Takes ack and fail segments; never blocks."""
        ...


class BoltTracker:
    """The settled tuples since the last flush."""

    def __init__(self, out: AckOut) -> None:
        self._out = out
        self._acked: list[tuple[InBatch, list[int] | None]] = []
        self._failed: list[tuple[InBatch, list[int]]] = []
        self.in_work: list[InBatch | None] = [None]  # a list: the output streams look at it
        self.corrections: list[bytes] = []
        self.waiting = 0
        self.ignored = 0

    def settle(self, acked: list[Tuple], failed: list[Tuple], pool: list[Tuple]) -> None:
        """Takes what the component acked and failed since the last call, and empties both lists.

        What comes first counts, and a fail before an ack where both come in one call: their order is not known, and
        only an ack can lose the tuple. The rest is counted in `ignored`, as are acks of ticks.
        """
        batch = self.in_work[0]
        if failed:
            self.waiting += len(failed)
            self._failed += self._by_batch(failed, pool)
            failed.clear()
        if acked:
            self.waiting += len(acked)
            if batch is not None and len(acked) == batch.rows and batch.untouched() and acked == pool[: batch.rows]:
                batch.settle_all()
                self._acked.append((batch, None))
            else:
                self._acked += self._by_batch(acked, pool)
            acked.clear()

    def ack_whole(self, batch: InBatch) -> None:
        """The batch is not wanted any more."""
        self.waiting += batch.rows
        batch.settle_all()
        self._acked.append((batch, None))

    def fail_whole(self, batch: InBatch) -> None:
        """The batch cannot be read."""
        self.waiting += batch.rows
        self._failed.append((batch, list(range(batch.rows))))

    def flush(self) -> None:
        """Sends what is settled; right after what was emitted."""
        self.waiting = 0
        segments, self.corrections = self.corrections, []
        others: list[tuple[InBatch, list[int] | None]] = []
        for batch, places in self._acked:
            if places is None and batch.root_base is not None and batch.is_range():
                segments.append(ack_range(batch.root_base, batch.batch_key, batch.task_id, batch.rows))
            else:
                others.append((batch, places))
            batch.note_acks_left(places)
        if others:
            segments += arrays().ack_segments(others)
        if self._failed:
            segments += arrays().fail_segments(self._failed)
        self._acked.clear()
        self._failed.clear()
        if segments:
            self._out.put_acks(segments)

    def _by_batch(self, tuples: list[Tuple], pool: list[Tuple]) -> list[tuple[InBatch, list[int]]]:
        places: dict[int, tuple[InBatch, list[int]]] = {}
        current = self.in_work[0]
        for tup in tuples:
            batch, place = tup.id, tup._index
            if batch is None and current is not None and 0 <= place < current.rows and pool[place] is tup:
                batch = current
            if isinstance(batch, InBatch):
                places.setdefault(id(batch), (batch, []))[1].append(place)
            else:
                self.ignored += 1
        settled = []
        for batch, of_batch in places.values():
            fresh = batch.settle(of_batch)
            self.ignored += len(of_batch) - len(fresh)
            if fresh:
                settled.append((batch, fresh))
        return settled
