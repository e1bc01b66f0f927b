"""The batches between the thread of the server and the thread of the task, and what they cost together.

The server's thread puts batches in and takes those out again that have waited too long. The task's thread takes batches
and gives their answers. Both sides are bounded by one number of bytes, which also counts what connections have received
of calls that are not complete.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from heron_connector_scribe.batch import Answer, Batch
from heron_connector_scribe.entries import Entries

__all__ = ["Intake"]


class Intake:
    """See the module.

    Args:
        most_bytes: the limit of `held_bytes`.
        wake: makes the server's thread look at the answers.
        clock: the seconds of `Batch.arrived_s`.
    """

    def __init__(self, most_bytes: int, wake: Callable[[], None], clock: Callable[[], float]) -> None:
        self._most_bytes = most_bytes
        self._wake, self._clock = wake, clock
        self._lock = threading.Lock()
        self._waiting: deque[Batch] = deque()
        self._answers: deque[tuple[Batch, Answer]] = deque()
        self._batches_bytes = 0
        self.partial_bytes = 0
        """What connections hold of calls that are not complete. Only the server's thread changes it."""

    @property
    def held_bytes(self) -> int:
        """What is in memory now, about."""
        return self._batches_bytes + self.partial_bytes

    @property
    def waiting_messages(self) -> int:
        """How many messages wait for the task."""
        with self._lock:
            return sum(len(each.entries) for each in self._waiting)

    @property
    def is_over(self) -> bool:
        """Whether more is held than the limit. One call alone never is: its size has its own limit."""
        return self.held_bytes > self._most_bytes

    def has_room(self, size_bytes: int) -> bool:
        """Whether another batch of this size may be held. The first one always may: it also counts its entries."""
        return not self._batches_bytes or self.held_bytes + size_bytes <= self._most_bytes

    def put(self, batch: Batch) -> None:
        """Server: a batch waits for the task."""
        with self._lock:
            self._batches_bytes += batch.size_bytes
            self._waiting.append(batch)

    def expired(self, before_s: float) -> list[Batch]:
        """Server: takes the batches that arrived before this time, and wait for the task and an answer."""
        found: list[Batch] = []
        with self._lock:
            while self._waiting and self._waiting[0].arrived_s < before_s and not self._waiting[0].answered:
                found.append(self._waiting.popleft())
                self._batches_bytes -= found[-1].size_bytes
        return found

    def take(self) -> Batch | None:
        """Task: the next batch."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def take_within(self, messages: int) -> list[Batch]:
        """Task: the next batches, of at most as many messages in all."""
        found: list[Batch] = []
        with self._lock:
            while self._waiting and (messages := messages - len(self._waiting[0].entries)) >= 0:
                found.append(self._waiting.popleft())
        return found

    def release(self, batch: Batch) -> None:
        """Task: the entries of a batch are not needed any more."""
        with self._lock:
            self._batches_bytes -= batch.size_bytes

    def answer(self, batch: Batch, answer: Answer = Answer.OK) -> None:
        """Task: a batch is safe, or not accepted."""
        batch.answered, batch.answered_s = True, self._clock()
        batch.entries = Entries.of()  # whoever remembers the batch needs only its digest
        self.release(batch)
        self._answers.append((batch, answer))
        if len(self._answers) == 1:
            self._wake()

    def answers(self) -> list[tuple[Batch, Answer]]:
        """Server: takes the answers."""
        found = []
        while self._answers:
            found.append(self._answers.popleft())
        return found
