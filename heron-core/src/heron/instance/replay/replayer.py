"""Which failed roots of a spout task are emitted again, when, and which are given up. Pure."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from heron.instance.replay.kept_roots import KeptRoot, Replay
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.ipc.frames.tracking import RootOutcome

__all__ = ["GivenUp", "Replayer"]

_ID, _SIZE = itemgetter(0), itemgetter(4)


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A root that has failed once more than it may; `cause` is the last document of why, empty if nobody told."""

    root: KeptRoot
    replay: Replay
    outcome: RootOutcome
    cause: bytes


class Replayer:
    """The kept roots of a spout task. The roots in flight are with `PendingRoots`, those that wait are here.

    `kept_bytes` counts both. `replayed` counts the roots that were emitted again, each time.
    """

    def __init__(self, policy: ReplayPolicy, clock: Callable[[], float], give_up: Callable[[GivenUp], None]) -> None:
        self.policy = policy
        self._give_up = give_up
        self.kept_bytes = 0
        self.replayed = 0
        self._clock = clock
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, KeptRoot]] = []
        self._causes: dict[int, bytes] = {}
        self._wraps_ids = False  # whether any root in flight may have a `Replay` for its id

    @property
    def waiting(self) -> int:
        """The roots that wait for their next emission."""
        return len(self._waiting)

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

    def note(self, root: object, cause: bytes) -> None:
        """A task failed this root in flight, and told why; the outcome follows."""
        self._causes[id(root)] = cause

    def acked(self, roots: Sequence[object]) -> list[object]:
        """The trees of these roots are complete; returns the author's ids."""
        self.kept_bytes -= sum(map(_SIZE, roots))  # type: ignore[arg-type]  # the layout of KeptRoot
        if self._causes:  # a task failed a tuple behind its ack
            for each in roots:
                self._causes.pop(id(each), None)
        return self._ids_of(map(_ID, roots))  # type: ignore[arg-type]

    def failed(self, roots: Sequence[object], outcome: RootOutcome, latency_s: float) -> list[object]:
        """These roots have failed; returns the author's ids of those that are given up.

        A root that is lost with a process did nothing wrong: its failure does not count.
        """
        now_s = self._clock()
        given_up: list[object] = []
        for each in roots:
            root = KeptRoot._make(each)  # type: ignore[arg-type]  # the layout of KeptRoot
            cause = self._causes.pop(id(each), b"")
            replay = root.tup_id if isinstance(root.tup_id, Replay) else Replay(root.tup_id, now_s - latency_s)
            replay.failures += outcome is not RootOutcome.LOST
            if replay.failures > self.policy.attempts and not replay.endless:
                self.kept_bytes -= root.size_bytes
                if replay.heard:
                    given_up.append(replay.tup_id)
                self._give_up(GivenUp(root, replay, outcome, cause))
            else:
                due_s = now_s + self.policy.wait_s(replay.failures)
                heapq.heappush(self._waiting, (due_s, next(self._order), root._replace(tup_id=replay)))
        return given_up

    def take_due(self, most: float) -> Iterable[KeptRoot]:
        """Takes up to `most` roots that are to be emitted now, those that wait longest first."""
        now_s, self._wraps_ids = self._clock(), True
        while most >= 1 and self._waiting and self._waiting[0][0] <= now_s:
            root = heapq.heappop(self._waiting)[2]
            self.kept_bytes -= root.size_bytes  # its next flush counts it again
            self.replayed += 1
            most -= 1
            yield root

    def letter_id(self) -> Replay:
        """The id of a dead letter that is emitted: it is emitted again until a bolt has acked it."""
        self._wraps_ids = True
        return Replay(None, self._clock(), heard=False, endless=True)

    def stored_id(self, tup_id: object) -> Replay:
        """The id of a stored dead letter that is emitted again: its spout has heard of it before."""
        self._wraps_ids = True
        return Replay(tup_id, self._clock(), heard=False)

    def forget(self) -> None:
        """Drops what waits: the component is constructed again, from a state that is older."""
        self.kept_bytes -= sum(each[2].size_bytes for each in self._waiting)
        self._waiting.clear()
        self._causes.clear()

    def _ids_of(self, ids: Iterable[object]) -> list[object]:
        if not self._wraps_ids:
            return list(ids)
        heard = [each for each in ids if not isinstance(each, Replay) or each.heard]
        return [each.tup_id if isinstance(each, Replay) else each for each in heard]
