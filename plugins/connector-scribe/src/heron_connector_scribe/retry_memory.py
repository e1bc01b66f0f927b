"""Which calls a task must recognise when a client sends them again. Pure. Effectively once only.

A client sends a batch again when it has not read an answer. The topology may have the batch by then: its checkpoint is
complete, or will be. So each checkpoint contains the digests of the batches whose answers may not have arrived, and how
many entries of each the topology has. A batch with such a digest continues behind these entries.

Equal batches of the same host are the same batch to this class if the former one's client has gone. That is wrong for a
client that sends equal batches on purpose, and loses one of them then. A number or a time in the messages rules it out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from heron_connector_scribe.batch import Batch, Fate

__all__ = ["Doubt", "RetryMemory"]

Doubt = tuple[bytes, int]
"""The digest of a batch whose answer its client may not have, and how many entries of it the topology has."""

_log = logging.getLogger(__name__)

_MOST = 65_536  # batches, and doubts of a checkpoint: about 3 MB of it


class RetryMemory:
    """The batches of this process, and the doubts of the checkpoint that it continues from.

    Args:
        keep_s: how long a doubt lasts, from the answer.
        most: how many batches are remembered, and as many doubts of the checkpoint. Above it, those are forgotten whose
            answers are the oldest.

    Attributes:
        forgotten: how many batches and doubts were forgotten before their time.
    """

    def __init__(
        self, keep_s: float, clock: Callable[[], float], doubts: Iterable[Doubt] = (), most: int = _MOST
    ) -> None:
        self._keep_s, self._clock, self._most = keep_s, clock, most
        self.forgotten = 0
        self._restored: dict[bytes, list[int]] = {}
        self._restored_s = clock()
        for digest, taken in doubts:
            self._restored.setdefault(digest, []).append(taken)
        self._batches: dict[bytes, list[Batch]] = {}
        self._count = 0  # of all batches

    def former(self, batch: Batch) -> Batch | None:
        """The batch of this process that this one repeats, if its client has gone; else remembers this one.

        What the topology has of this batch from before a restore counts as taken.
        """
        for each in self._batches.get(batch.digest, ()):
            if each.caller.fate is Fate.GONE and not self._is_old(each):
                return each
        if self._count >= self._most:
            self._keep(self._most - self._most // 8 - 1)  # not one at a time: each pass looks at all
        self._batches.setdefault(batch.digest, []).append(batch)
        self._count += 1
        if batch.digest in self._restored and self._clock() - self._restored_s < self._keep_s:
            known = self._restored[batch.digest]
            batch.taken = min(known.pop(), len(batch.entries))
            if not known:
                del self._restored[batch.digest]
        return None

    def doubts(self) -> tuple[Doubt, ...]:
        """What a checkpoint must contain now."""
        kept = self._keep(self._most)
        if self._clock() - self._restored_s >= self._keep_s:
            self._restored.clear()
        old = [(digest, taken) for digest, known in self._restored.items() for taken in known]
        found = [
            *((each.digest, each.taken) for each in kept if each.taken and each.answered),
            *old,  # their clients come again soon, if they do
            *((each.digest, each.taken) for each in kept if each.taken and not each.answered),
        ]
        if len(found) > self._most:
            self._forget(len(found) - self._most)
        return tuple(found[-self._most :])

    def _keep(self, most: int) -> list[Batch]:
        """Keep the batches in doubt, at most so many; those without an answer come last, and stay the longest."""
        kept = [each for equal in self._batches.values() for each in equal if self._is_in_doubt(each)]
        kept.sort(key=lambda each: (not each.answered, each.answered_s))
        if len(kept) > most:
            self._forget(len(kept) - most)
            kept = kept[-most:]
        self._batches, self._count = {}, len(kept)
        for each in kept:
            self._batches.setdefault(each.digest, []).append(each)
        return kept

    def _forget(self, count: int) -> None:
        if not self.forgotten:
            _log.warning(
                "more than %d calls may come again, the limit: the oldest are forgotten, and would count twice. A "
                "shorter `retry_s`, larger calls, or more tasks avoid it",
                self._most,
            )
        self.forgotten += count

    def _is_in_doubt(self, batch: Batch) -> bool:
        return batch.caller.fate is not Fate.CONFIRMED and not self._is_old(batch)

    def _is_old(self, batch: Batch) -> bool:
        return batch.answered and self._clock() - batch.answered_s >= self._keep_s
