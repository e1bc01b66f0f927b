"""Where acks arrive: the ledgers of the local tasks, and what to tell these tasks. Pure.

A task that is lost, anywhere, fails every root in flight at that moment: its replay starts at once, not one timeout
later (design D5).
"""

from __future__ import annotations

import math

from heron.ipc.frame import SegmentKind, parse_segment
from heron.ipc.tracking import Outcome
from heron.ipc.tracking_arrays import parse_ack, parse_fail, parse_new_roots, settled
from heron.stmgr.ack_counts import AckCounts
from heron.stmgr.ledger import Counters, Ledger

__all__ = ["AckDesk"]


class AckDesk:
    """The ledgers of a stream manager."""

    def __init__(self) -> None:
        self.timeout_s = math.inf
        self._ledgers: dict[int, Ledger] = {}
        self._unknown = Ledger(0)  # of tasks that are gone, or have had no root: without any, so that all is late
        self._settled: list[tuple[int, Outcome, Counters]] = []
        self.counts = AckCounts()

    def take(self, data: bytes, start: int, task_id: int, now_s: float) -> None:
        """Takes a ROOTS, ACK or FAIL segment for a local task.

        Raises:
            RemoteProtocolError: when it is none of these, or garbled.
        """
        head = parse_segment(data, start)
        if head.kind == SegmentKind.ROOTS:
            roots = parse_new_roots(data, head)
            ledger = self._ledgers.get(task_id)
            if ledger is None:
                ledger = self._ledgers[task_id] = Ledger(roots.base)
            self._note(task_id, Outcome.COMPLETE, ledger.insert(roots.base, roots.xors, now_s + self.timeout_s))
            return
        ledger = self._ledgers.get(task_id, self._unknown)
        if head.kind == SegmentKind.ACK:
            ack = parse_ack(data, head)
            done = ledger.update_range(ack.base, ack.xors) if ack.roots is None else ledger.update(ack.roots, ack.xors)
            self._note(task_id, Outcome.COMPLETE, done)
            self.counts.late_acks += ledger.take_missed()
        else:
            self._note(task_id, Outcome.FAILED, ledger.fail(parse_fail(data, head)))
            self.counts.late_fails += ledger.take_missed()

    def expire(self, now_s: float) -> None:
        """Fails what is older than the timeout."""
        for task_id, ledger in self._ledgers.items():
            self._note(task_id, Outcome.EXPIRED, ledger.expire(now_s))

    def lose_all(self) -> None:
        """Something that may have had a part of any tree is gone."""
        for task_id, ledger in self._ledgers.items():
            self._note(task_id, Outcome.LOST, ledger.fail_all())

    def forget(self, task_id: int) -> None:
        """A local task is gone: nobody waits for its roots any more."""
        self._ledgers.pop(task_id, None)
        self._settled = [entry for entry in self._settled if entry[0] != task_id]

    def in_flight(self) -> int:
        """Roots in flight, of all local tasks."""
        return sum(ledger.in_flight for ledger in self._ledgers.values())

    def take_settled(self) -> dict[int, list[bytes]]:
        """The SETTLED segments since the last call, by task, in the order of completion."""
        segments: dict[int, list[bytes]] = {}
        for task_id, outcome, roots in self._settled:
            segments.setdefault(task_id, []).append(settled(task_id, outcome, roots))
        self._settled.clear()
        return segments

    def _note(self, task_id: int, outcome: Outcome, roots: Counters) -> None:
        if len(roots):
            self.counts.settled[outcome] += len(roots)
            self._settled.append((task_id, outcome, roots))
