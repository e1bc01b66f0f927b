"""Which failed roots of a spout task are emitted again, when, and which are given up. Pure."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from heron.instance.replay.kept_roots import KeptRoot, Replay
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.ipc.frames.tracking import NO_CAUSE, Cause, RootOutcome

__all__ = ["GivenUp", "Replayer"]

_SHORTEST = 7 / 8  # of a wait, for a root that joins others


class GivenUp(msgspec.Struct, gc=False):
    """A root that has failed once more than it may."""

    root: KeptRoot
    replay: Replay
    outcome: RootOutcome
    cause: Cause


class Replayer:
    """The kept roots of a spout task. The roots in flight are with `PendingRoots`, those that wait are here.

    `kept_bytes` counts both. A caller that settles roots in flight without `acked` or `failed` subtracts their bytes.
    `replayed` counts the roots that were emitted again, each time.
    """

    def __init__(
        self, policy: ReplayPolicy, clock: Callable[[], float], give_up: Callable[[list[GivenUp]], None]
    ) -> None:
        self.policy = policy
        self._give_up = give_up
        self.kept_bytes = 0
        self.replayed = 0
        self.waiting = 0  # roots that wait for their next emission
        self.stored: set[str] = set()  # the ids of stored letters whose roots have not ended
        self.on_stored_acked: Callable[[list[str]], None] = _ignore
        self._clock = clock
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, deque[KeptRoot]]] = []  # a heap
        self._newest: dict[float, tuple[float, deque[KeptRoot]]] = {}  # by wait: what is due together
        self._wraps_ids = False  # whether any root in flight may have a `Replay` for its id

    @property
    def due_s(self) -> float:
        """When the next root is to be emitted again, on the clock; infinite if none waits."""
        return self._waiting[0][0] if self._waiting else math.inf

    def is_due(self) -> bool:
        """Whether a root is to be emitted again now."""
        return bool(self._waiting) and self._waiting[0][0] <= self._clock()

    def is_full(self) -> bool:
        """Whether the budget is used up, so that the spout must not emit new roots."""
        return self.kept_bytes >= self.policy.most_bytes

    def kept(self, roots: int, size_bytes: int) -> int:
        """Counts the roots of a flush; returns the share of each."""
        share = -(-size_bytes // roots)
        self.kept_bytes += share * roots
        return share

    def acked(self, roots: Sequence[KeptRoot]) -> list[object]:
        """The trees of these roots are complete; returns the author's ids of which it hears."""
        self.kept_bytes -= sum(each.size_bytes for each in roots)
        return self.heard([each.tup_id for each in roots])

    def note_acked(self, ids: Sequence[object]) -> None:
        """The trees of the roots with these ids are complete: ends those of stored letters."""
        acked = [each.letter for each in ids if type(each) is Replay and each.letter in self.stored]
        self.stored.difference_update(acked)
        if acked:
            self.on_stored_acked(acked)

    def heard(self, ids: list[object]) -> list[object]:
        """The author's ids of which it hears, from the ids of roots."""
        if not self._wraps_ids or Replay not in set(map(type, ids)):
            return ids
        heard = [each for each in ids if type(each) is not Replay or each.heard]
        return [each.tup_id if type(each) is Replay else each for each in heard]

    def failed(
        self, roots: Sequence[KeptRoot], outcome: RootOutcome, latency_s: float, causes: Sequence[Cause] = ()
    ) -> list[object]:
        """These roots have failed, each for its cause; returns the author's ids of those that are given up.

        A root that is lost with a process did nothing wrong: its failure does not count. Only a letter needs the cause,
        and no budget counts it, so it is not kept.
        """
        now_s, attempts, counts = self._clock(), self.policy.attempts, outcome is not RootOutcome.LOST
        given_up: list[GivenUp] = []
        waiting: dict[int, deque[KeptRoot]] = {}  # by failures
        for root, cause in zip(roots, causes or itertools.repeat(NO_CAUSE)):  # noqa: B905  # it has no end
            replay = root.tup_id
            if type(replay) is not Replay:
                replay = root.tup_id = Replay(replay, now_s - latency_s)
            failures = replay.failures = replay.failures + counts
            if failures > attempts and not replay.endless:
                self.kept_bytes -= root.size_bytes
                given_up.append(GivenUp(root, replay, outcome, cause))
                continue
            if failures not in waiting:
                waiting[failures] = self._together(now_s, self.policy.wait_s(failures))
            waiting[failures].append(root)
        self.waiting += len(roots) - len(given_up)
        if given_up:
            self._give_up(given_up)
        return [each.replay.tup_id for each in given_up if each.replay.heard]

    def _together(self, now_s: float, wait_s: float) -> deque[KeptRoot]:
        """The roots that wait at most an eighth less than `wait_s`: a flush for each few costs more than they do."""
        due_s, together = self._newest.get(wait_s, (0.0, None))
        if together is None or due_s < now_s + wait_s * _SHORTEST:
            due_s, together = now_s + wait_s, deque()
            self._newest[wait_s] = due_s, together
            heapq.heappush(self._waiting, (due_s, next(self._order), together))
        return together

    def take_due(self, most: float) -> list[KeptRoot]:
        """Takes up to `most` roots that are to be emitted now, those that wait longest first."""
        now_s, self._wraps_ids = self._clock(), True
        taken: list[KeptRoot] = []
        while (room := most - len(taken)) >= 1 and self._waiting and self._waiting[0][0] <= now_s:
            together = self._waiting[0][2]
            if len(together) <= room:
                heapq.heappop(self._waiting)
                taken += together
                together.clear()
            else:
                taken += [together.popleft() for _ in range(int(room))]
        self.waiting -= len(taken)
        self.kept_bytes -= sum([root.size_bytes for root in taken])  # their next flush counts them again
        self.replayed += len(taken)
        return taken

    def letter_id(self) -> Replay:
        """The id of a dead letter that is emitted: it is emitted again until a bolt has acked it."""
        self._wraps_ids = True
        return Replay(None, self._clock(), heard=False, endless=True)

    def stored_id(self, letter: str, tup_id: object) -> Replay:
        """The id of a stored dead letter that is emitted again: its spout has heard of it before."""
        self._wraps_ids = True
        self.stored.add(letter)
        return Replay(tup_id, self._clock(), heard=False, letter=letter)

    def forget(self) -> None:
        """Drops what waits: the component is constructed again, from a state that is older."""
        self.kept_bytes -= sum(root.size_bytes for each in self._waiting for root in each[2])
        self._waiting.clear()
        self._newest.clear()
        self.waiting = 0
        self.stored.clear()


def _ignore(_letters: list[str]) -> None:
    """Nothing is stored."""
