"""The collectors of a simulation with at-least-once delivery: each emit leaves at once, under its roots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heron.api.definition import DEFAULT_STREAM
from heron.api.tuple import Tuple
from heron.instance.emitter import BoltEmitter, SpoutEmitter
from heron.instance.out_stream import StreamOrigin
from heron_simulator.ack_ledger import AckLedger, Edge, Root
from heron_simulator.outbox import Outbox

__all__ = ["TrackedBoltEmitter", "TrackedSpoutEmitter"]


class TrackedSpoutEmitter(SpoutEmitter):
    """Opens a root for each emit that has an id."""

    def __init__(self, origin: StreamOrigin, out: Outbox, ledger: AckLedger) -> None:
        super().__init__(origin, out)
        self._outbox = out
        self._ledger = ledger

    def emit(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: str = DEFAULT_STREAM,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits."""
        roots = () if tup_id is None else (self._ledger.open(self.origin.task_id, tup_id),)
        try:
            with self._outbox.under(roots):
                tasks = super().emit(values, tup_id, stream, direct_task, need_task_ids)
                self.flush()
        except Exception:
            for root in roots:
                self._ledger.discard(root)
            raise
        self._ledger.release(roots)
        return tasks


class TrackedBoltEmitter(BoltEmitter):
    """Passes the roots of the anchors on, and acks and fails to the ledger."""

    def __init__(self, origin: StreamOrigin, out: Outbox, ledger: AckLedger) -> None:
        super().__init__(origin, out)
        self._outbox = out
        self._ledger = ledger

    def emit(
        self,
        values: Sequence[object],
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits."""
        with self._outbox.under(_roots(anchors or ())):
            tasks = super().emit(values, stream, anchors, direct_task, need_task_ids)
            self.flush()
        return tasks

    def ack(self, tup: Tuple) -> None:
        """This tuple is done with."""
        super().ack(tup)
        if isinstance(tup.id, Edge):
            self._ledger.ack(tup.id)

    def fail(self, tup: Tuple) -> None:
        """This tuple failed."""
        super().fail(tup)
        if isinstance(tup.id, Edge):
            self._ledger.fail(tup.id)


def _roots(anchors: Iterable[Tuple]) -> tuple[Root, ...]:
    edges = [anchor.id for anchor in anchors if isinstance(anchor.id, Edge)]
    return tuple(dict.fromkeys(root for edge in edges for root in edge.roots if root.live))
