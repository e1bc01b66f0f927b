"""Tuple trees of a simulation with at-least-once delivery: one count per root, because no message can be lost.

A tree is complete when its count is zero. The root's emit counts one until it returns. Each copy of a tuple counts one
while it waits in an inbox or is kept by a bolt.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from heron.clock import Clock
from heron.ipc.frames.tracking import NO_CAUSE, Cause, RootOutcome

__all__ = ["AckLedger", "Edge", "Root", "TreeOutcome"]


class Root:
    """A tuple that a spout emitted with an id."""

    __slots__ = ("cause", "live", "pending", "since_s", "task_id", "tup_id")

    def __init__(self, task_id: int, tup_id: object, since_s: float) -> None:
        self.task_id = task_id
        self.tup_id = tup_id
        self.since_s = since_s
        self.pending = 1
        self.live = True
        self.cause = NO_CAUSE  # why a task failed it, if its spout replays; see `heron.instance.replay.failure_cause`


class Edge:
    """One copy of a tuple or batch on its way to one task; it is the id of the tuples that the task gets for it."""

    __slots__ = ("open", "roots", "unacked")

    def __init__(self, roots: tuple[Root, ...]) -> None:
        self.roots = roots
        self.open = True
        self.unacked = {0}  # places of its tuples in the batch; a batch of columns has one


@dataclass(frozen=True, slots=True)
class TreeOutcome:
    """The outcome of a root for its spout, with the time that the root was in flight."""

    tup_id: object
    outcome: RootOutcome
    latency_s: float
    cause: Cause = NO_CAUSE

    @property
    def complete(self) -> bool:
        """Whether its whole tree was acked."""
        return self.outcome is RootOutcome.COMPLETE


class AckLedger:
    """The roots in flight, in the order of their emits."""

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._roots: dict[Root, None] = {}
        self._in_flight: Counter[int] = Counter()
        self._outcomes: defaultdict[int, list[TreeOutcome]] = defaultdict(list)

    def open(self, task_id: int, tup_id: object) -> Root:
        """A new root, held open until `release`."""
        root = Root(task_id, tup_id, self._clock.monotonic_s())
        self._roots[root] = None
        self._in_flight[task_id] += 1
        return root

    def discard(self, root: Root) -> None:
        """Forgets a root whose emit was rejected; it has no outcome."""
        if root.live:
            self._close(root)

    def edge(self, roots: tuple[Root, ...]) -> Edge:
        """A copy under these roots."""
        for root in roots:
            root.pending += 1
        return Edge(roots)

    def ack(self, edge: Edge, place: int = 0) -> None:
        """A task acked its copy, or the tuple of it at this place; a further ack has no effect."""
        edge.unacked.discard(place)
        if edge.open and not edge.unacked:
            edge.open = False
            self.release(edge.roots)

    def fail(self, edge: Edge, cause: Cause = NO_CAUSE) -> None:
        """A task failed its copy, which fails every tree that the copy belongs to."""
        if edge.open:
            edge.open = False
            for root in edge.roots:
                root.cause = cause if root.cause == NO_CAUSE else root.cause
            self.fail_roots(edge.roots)

    def release(self, roots: Iterable[Root]) -> None:
        """Decrements the counts of these roots."""
        for root in roots:
            root.pending -= 1
            if not root.pending:
                self._end(root, RootOutcome.COMPLETE)

    def fail_roots(self, roots: Iterable[Root], outcome: RootOutcome = RootOutcome.FAILED) -> None:
        """Fails these trees."""
        for root in roots:
            self._end(root, outcome)

    def expire(self) -> bool:
        """Fails the roots that are older than the timeout; returns whether there was any."""
        now_s = self._clock.monotonic_s()
        late = list(takewhile(lambda root: self._expires_in_s(root, now_s) <= 0, self._roots))
        self.fail_roots(late, RootOutcome.EXPIRED)
        return bool(late)

    def next_expiry_in_s(self) -> float:
        """Seconds until the oldest root expires."""
        oldest = next(iter(self._roots), None)
        return math.inf if oldest is None else self._expires_in_s(oldest, self._clock.monotonic_s())

    def in_flight(self, task_id: int) -> int:
        """The open roots of a spout task."""
        return self._in_flight[task_id]

    def has_outcomes(self, task_id: int) -> bool:
        """Whether outcomes wait for a spout task."""
        return task_id in self._outcomes

    def take_outcomes(self, task_id: int) -> list[TreeOutcome]:
        """The outcomes that wait for a spout task."""
        return self._outcomes.pop(task_id, [])

    def _expires_in_s(self, root: Root, now_s: float) -> float:
        return root.since_s + self._timeout_s - now_s

    def _end(self, root: Root, outcome: RootOutcome) -> None:
        if root.live:
            self._close(root)
            latency_s = self._clock.monotonic_s() - root.since_s
            self._outcomes[root.task_id].append(TreeOutcome(root.tup_id, outcome, latency_s, root.cause))

    def _close(self, root: Root) -> None:
        root.live = False
        del self._roots[root]
        self._in_flight[root.task_id] -= 1
