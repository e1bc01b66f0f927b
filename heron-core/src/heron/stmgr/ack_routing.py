"""Where segments about roots go: into the local ledgers, or to the stream manager of the roots' task. Pure.

The ledgers need numpy. They are loaded when the first root arrives, so a topology without acks never loads it.
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
from heron.stmgr.counters import AckCounters
from heron.stmgr.local_tasks import LocalTasks

if TYPE_CHECKING:  # loaded by name when the first root arrives
    from heron.stmgr.ack_outcomes import AckOutcomes

__all__ = ["AckRouting"]

_log = logging.getLogger(__name__)


class AckRouting:
    """Collects, in each round, segments for other stream managers and outcomes for local tasks."""

    def __init__(self, local: LocalTasks, clock: Callable[[], float]) -> None:
        self._local = local
        self._clock = clock
        self._remote: dict[int, list[bytes]] = {}
        self._outcomes: AckOutcomes | None = None
        self._timeout_s = math.inf

    def set_plan(self, plan: PhysicalPlan) -> None:
        """Applies the topology's message timeout."""
        config = plan.topology.config
        timeouts = setting(config, TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS)
        timeout_s = setting(config, TOPOLOGY_MESSAGE_TIMEOUT_SECS)
        self._timeout_s = float(timeout_s) if timeouts and isinstance(timeout_s, int | float) else math.inf
        if self._outcomes is not None:
            self._outcomes.timeout_s = self._timeout_s

    def take(self, data: bytes, start: int, end: int, task_id: int) -> None:
        """`heron.stmgr.router.AckDestination`."""
        if task_id in self._local.ids:
            if self._outcomes is None:
                loaded = load_object("heron.stmgr.ack_outcomes:AckOutcomes", "the ack ledger")
                self._outcomes = cast("type[AckOutcomes]", loaded)()
                self._outcomes.timeout_s = self._timeout_s
            self._outcomes.take(data, start, task_id, self._clock())
        else:
            self._remote.setdefault(task_id, []).append(data[start:end])

    def counters(self) -> AckCounters:
        """The counters of the local ledgers."""
        return self._outcomes.counters if self._outcomes is not None else AckCounters()

    def in_flight(self) -> int:
        """The number of roots in flight, of all local tasks."""
        return self._outcomes.in_flight() if self._outcomes is not None else 0

    def expire(self) -> None:
        """Fails the roots that are older than the message timeout."""
        if self._outcomes is not None:
            self._outcomes.expire(self._clock())

    def fail_all(self, lost: str) -> None:
        """Fails every root in flight. `lost` names the task, stream manager or frame that is gone."""
        if self._outcomes is None:
            return
        in_flight = self._outcomes.in_flight()
        if in_flight:
            _log.warning("%d roots in flight have failed: %s is lost", in_flight, lost)
        self._outcomes.fail_all()

    def local_task_lost(self, task_id: int) -> None:
        """Forgets the roots of a lost local task and fails all others: the new incarnation has new roots."""
        if self._outcomes is not None:
            self._outcomes.forget(task_id)
        self.fail_all(f"task {task_id}")

    def take_settled(self) -> dict[int, list[bytes]]:
        """The outcomes of the roots of local tasks since the last call, by task."""
        return self._outcomes.take_settled() if self._outcomes is not None else {}

    def take_remote(self) -> dict[int, list[bytes]]:
        """The segments for other stream managers since the last call, by the task whose roots they are about."""
        remote, self._remote = self._remote, {}
        return remote
