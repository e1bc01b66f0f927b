"""Which way the segments about roots go: into the ledgers here, or to the stream manager of the roots' task. Pure."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from heron.api.api_constants import TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS, TOPOLOGY_MESSAGE_TIMEOUT_SECS
from heron.api.config import setting
from heron.planner.physical_plan import PhysicalPlan
from heron.stmgr.ack_desk import AckDesk

__all__ = ["AckRoutes"]

_log = logging.getLogger(__name__)


class AckRoutes:
    """Gathers in each round what is for the stream managers elsewhere, and for the tasks here."""

    def __init__(self, local_tasks: frozenset[int], clock: Callable[[], float]) -> None:
        self._local = local_tasks
        self._clock = clock
        self._elsewhere: dict[int, list[bytes]] = {}
        self.desk = AckDesk()

    def set_plan(self, plan: PhysicalPlan) -> None:
        """Takes the topology's message timeout."""
        config = plan.topology.config
        timeouts = setting(config, TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS)
        timeout_s = setting(config, TOPOLOGY_MESSAGE_TIMEOUT_SECS)
        self.desk.timeout_s = float(timeout_s) if timeouts and isinstance(timeout_s, int | float) else math.inf

    def take(self, data: bytes, start: int, end: int, task_id: int) -> None:
        """`heron.stmgr.router.AckSink`."""
        if task_id in self._local:
            self.desk.take(data, start, task_id, self._clock())
        else:
            self._elsewhere.setdefault(task_id, []).append(data[start:end])

    def expire(self) -> None:
        """Fails what is older than the message timeout."""
        self.desk.expire(self._clock())

    def lost(self, what: str) -> None:
        """Something that may have had a part of any tree is gone: a task, a stream manager, a frame."""
        in_flight = self.desk.in_flight()
        if in_flight:
            _log.warning("%d roots in flight are failed: %s is gone", in_flight, what)
        self.desk.lose_all()

    def local_task_lost(self, task_id: int) -> None:
        """A local task is gone: also its own roots, of which nobody waits to hear."""
        self.desk.forget(task_id)
        self.lost(f"task {task_id}")

    def take_settled(self) -> dict[int, list[bytes]]:
        """What became of the roots of local tasks, by task."""
        return self.desk.take_settled()

    def take_elsewhere(self) -> dict[int, list[bytes]]:
        """Segments for other stream managers, by the task whose roots they are about."""
        elsewhere, self._elsewhere = self._elsewhere, {}
        return elsewhere
