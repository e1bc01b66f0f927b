"""When a topology has recovered from a fault.

- of a task, its process: a new life of it has handled a line of each spout that was made after the kill; a spout's own
  line is handled when its whole tree is acked
- of a stream manager, and of an executor with its container: every task of the container has
- of the topology manager: another one answers, and knows that every task runs
- of a metrics manager: there are new metrics of its container
- of container 0: the last two
"""

from __future__ import annotations

from chaos.fault_plan import Kind
from chaos.leader import LeaderWatch
from chaos.world import World, kind_of
from heron.clock import monotonic_s

__all__ = ["Recovery"]


class Recovery:
    """Of one process; to be made when it is dead, or goes on."""

    def __init__(self, world: World, name: str, dead_tmanager: int | None = None) -> None:
        """`dead_tmanager` is the process id of a topology manager that is to be replaced."""
        self.name = name
        self.kind = kind_of(name)
        self.since_s = monotonic_s()
        self.alone = True
        self.back_s: float | None = None
        """When a new life of a task that was killed has initialised it: seconds, of a task only."""
        self._world = world
        self._lines = world.flow.made()
        self._tasks = world.tasks(name)
        self._own = self._tasks[0] if self.kind in (Kind.SPOUT, Kind.BOLT) else ""
        self._life = world.flow.life(self._own) if self._own else 0
        container = name.partition("/")[0]
        watched = self.kind is Kind.METRICS_MANAGER or (self.kind is Kind.EXECUTOR and not self._tasks)
        self._metrics_of = container if watched else ""
        self._metrics_bytes = world.metrics_bytes(container) if watched else 0
        self._leader = LeaderWatch(world.state, dead_tmanager) if dead_tmanager else None

    def took_s(self) -> float | None:
        """Seconds it took, once it is over."""
        if self._own and self.back_s is None and self._world.flow.life(self._own) != self._life:
            self.back_s = monotonic_s() - self.since_s
        if not self._world.flows(self._tasks, self._lines):
            return None
        if self._metrics_of and self._world.metrics_bytes(self._metrics_of) <= self._metrics_bytes:
            return None
        if self._leader is not None and self._leader.back_at_s is None:
            return None
        self.close()
        return monotonic_s() - self.since_s

    def close(self) -> None:
        """Waits for nothing any more; idempotent."""
        if self._leader is not None:
            self._leader.close()
