"""The outcomes of roots: applies acks and fails to the ledgers of the local spout tasks. Pure; needs numpy.

When a task is lost anywhere, every root in flight fails at once, so that its replay does not wait for the timeout.
"""

from __future__ import annotations

import math

from heron.ipc.frames.frame import SegmentKind, parse_segment
from heron.ipc.frames.tracking import MAX_DERIVED_ROWS, RootOutcome, cause_lines, settled_range
from heron.ipc.frames.tracking_arrays import (
    RootCounters,
    parse_ack,
    parse_fail,
    parse_new_roots,
    settled,
    settled_listed,
)
from heron.stmgr.counters import AckCounters
from heron.stmgr.ledger import Ledger

__all__ = ["AckOutcomes"]


class AckOutcomes:
    """The ledgers of one stream manager, one for each local spout task."""

    def __init__(self) -> None:
        self.timeout_s = math.inf
        self.counters = AckCounters()
        self._ledgers: dict[int, Ledger] = {}
        self._no_roots = Ledger(0)  # for tasks without a ledger: always empty, so every ack of them counts as late
        self._settled: list[tuple[int, list[bytes]]] = []

    def take(self, data: bytes, start: int, task_id: int, now_s: float) -> None:
        """Applies a ROOTS, ACK or FAIL segment for a local task; a CAUSE segment goes to that task, in order.

        Raises:
            RemoteProtocolError: when the segment is garbled; nothing has changed.
        """
        head = parse_segment(data, start)
        if head.kind == SegmentKind.ROOTS:
            roots = parse_new_roots(data, head)
            ledger = self._ledgers.get(task_id)
            if ledger is None:
                ledger = self._ledgers[task_id] = Ledger(roots.base)
            self._note(task_id, RootOutcome.COMPLETE, ledger.insert(roots.base, roots.xors, now_s + self.timeout_s))
            return
        if head.kind == SegmentKind.CAUSE:
            cause_lines(data, head)  # here its sender's session ends, there the session of the spout would
            self._settled.append((task_id, [data[start : head.end]]))
            return
        ledger = self._ledgers.get(task_id, self._no_roots)
        if head.kind == SegmentKind.ACK:
            ack = parse_ack(data, head)
            if ack.roots is None:
                done = ledger.update_range(ack.base, ack.xors, ack.acked)
            else:
                done = ledger.update(ack.roots, ack.xors)
            self._note_complete(task_id, ledger, done)
            self.counters.late_acks += ledger.take_missed()
        elif head.kind == SegmentKind.FAIL:
            if failed := ledger.fail(parse_fail(data, head)):
                self.counters.settled[RootOutcome.FAILED] += len(failed)
                self._settled.append((task_id, list(settled_listed(task_id, RootOutcome.FAILED, failed))))
            self.counters.late_fails += ledger.take_missed()

    def expire(self, now_s: float) -> None:
        """Fails the roots that are older than the timeout."""
        for task_id, ledger in self._ledgers.items():
            self._note(task_id, RootOutcome.EXPIRED, ledger.expire(now_s))

    def fail_all(self) -> None:
        """Fails every root in flight: something was lost that any tree may have needed."""
        for task_id, ledger in self._ledgers.items():
            self._note(task_id, RootOutcome.LOST, ledger.fail_all())

    def forget(self, task_id: int) -> None:
        """Drops the roots of a local task that is gone, and their outcomes."""
        self._ledgers.pop(task_id, None)
        self._settled = [entry for entry in self._settled if entry[0] != task_id]

    def in_flight(self) -> int:
        """The number of roots in flight, of all local tasks."""
        return sum(ledger.in_flight for ledger in self._ledgers.values())

    def take_settled(self) -> dict[int, list[bytes]]:
        """The SETTLED and CAUSE segments since the last call, by task, in the order of completion."""
        segments: dict[int, list[bytes]] = {}
        for task_id, found in self._settled:
            segments.setdefault(task_id, []).extend(found)
        self._settled.clear()
        return segments

    def _note_complete(self, task_id: int, ledger: Ledger, roots: RootCounters) -> None:
        """As a range if all others in it have ended: failed roots are few, and lie between complete ones."""
        if len(roots) > 1 and bool((roots[1:] > roots[:-1]).all()):
            first, count = int(roots[0]), int(roots[-1] - roots[0]) + 1
            if len(roots) < count <= min(2 * len(roots), MAX_DERIVED_ROWS) and not ledger.has_any(first, count):
                self.counters.settled[RootOutcome.COMPLETE] += len(roots)
                self._settled.append((task_id, [settled_range(task_id, RootOutcome.COMPLETE, first, count)]))
                return
        self._note(task_id, RootOutcome.COMPLETE, roots)

    def _note(self, task_id: int, outcome: RootOutcome, roots: RootCounters) -> None:
        if len(roots):
            self.counters.settled[outcome] += len(roots)
            self._settled.append((task_id, settled(task_id, outcome, roots)))
