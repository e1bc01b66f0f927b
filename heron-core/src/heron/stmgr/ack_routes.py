"""Which way the segments about roots go: into the ledgers here, or to the stream manager of the roots' task. Pure.

The ledgers need numpy, so they are loaded with the first root that comes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from heron.api.api_constants import TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS, TOPOLOGY_MESSAGE_TIMEOUT_SECS
from heron.api.config import setting
from heron.driver_kit.loading import load_object
from heron.planner.physical_plan import PhysicalPlan
from heron.stmgr.ack_counts import AckCounts

if TYPE_CHECKING:  # loaded by name when it is needed
    from heron.stmgr.ack_desk import AckDesk

__all__ = ["AckRoutes"]

_log = logging.getLogger(__name__)


class AckRoutes:
    """Gathers in each round what is for the stream managers elsewhere, and for the tasks here."""

    def __init__(self, local_tasks: frozenset[int], clock: Callable[[], float]) -> None:
        self._local = local_tasks
        self._clock = clock
        self._elsewhere: dict[int, list[bytes]] = {}
        self._desk: AckDesk | None = None
        self._timeout_s = math.inf

    def set_plan(self, plan: PhysicalPlan) -> None:
        """Takes the topology's message timeout."""
        config = plan.topology.config
        timeouts = setting(config, TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS)
        timeout_s = setting(config, TOPOLOGY_MESSAGE_TIMEOUT_SECS)
        self._timeout_s = float(timeout_s) if timeouts and isinstance(timeout_s, int | float) else math.inf
        if self._desk is not None:
            self._desk.timeout_s = self._timeout_s

    def take(self, data: bytes, start: int, end: int, task_id: int) -> None:
        """`heron.stmgr.router.AckSink`."""
        if task_id in self._local:
            if self._desk is None:
                self._desk = cast("type[AckDesk]", load_object("heron.stmgr.ack_desk:AckDesk", "the ack ledger"))()
                self._desk.timeout_s = self._timeout_s
            self._desk.take(data, start, task_id, self._clock())
        else:
            self._elsewhere.setdefault(task_id, []).append(data[start:end])

    def counts(self) -> AckCounts:
        """What the ledgers here have counted."""
        return self._desk.counts if self._desk is not None else AckCounts()

    def in_flight(self) -> int:
        """Roots in flight, of all local tasks."""
        return self._desk.in_flight() if self._desk is not None else 0

    def expire(self) -> None:
        """Fails what is older than the message timeout."""
        if self._desk is not None:
            self._desk.expire(self._clock())

    def lost(self, what: str) -> None:
        """Something that may have had a part of any tree is gone: a task, a stream manager, a frame."""
        if self._desk is None:
            return
        in_flight = self._desk.in_flight()
        if in_flight:
            _log.warning("%d roots in flight are failed: %s is gone", in_flight, what)
        self._desk.lose_all()

    def local_task_lost(self, task_id: int) -> None:
        """A local task is gone: also its own roots, of which nobody waits to hear."""
        if self._desk is not None:
            self._desk.forget(task_id)
        self.lost(f"task {task_id}")

    def take_settled(self) -> dict[int, list[bytes]]:
        """What became of the roots of local tasks, by task."""
        return self._desk.take_settled() if self._desk is not None else {}

    def take_elsewhere(self) -> dict[int, list[bytes]]:
        """Segments for other stream managers, by the task whose roots they are about."""
        elsewhere, self._elsewhere = self._elsewhere, {}
        return elsewhere
