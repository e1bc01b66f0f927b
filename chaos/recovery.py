"""Recovery from a fault: the processes that must have handled lines that were made after it.

| fault in | has recovered when |
|---|---|
| a task | its next life has handled such a line of each spout; a spout has handled its line when the tree is acked |
| a stream manager, an executor | every task of the container has |
| the topology manager | a new one answers and reports that every task runs |
| a metrics manager | there are new metrics of its container |
| the executor of container 0 | as for the last two |

With checkpoints or updates, all faults but those of the topology manager count as recovered when such lines have passed
the whole topology: they are committed, or their trees are acked.
"""

from __future__ import annotations

from chaos.chaos_run import ChaosRun, kind_of
from chaos.fault_plan import Kind
from chaos.leader import LeaderWatch
from heron.clock import monotonic_s

__all__ = ["Recovery"]


class Recovery:
    """The recovery of one process. Create it when the process is dead or has been continued."""

    def __init__(self, chaos_run: ChaosRun, name: str, dead_tmanager: int | None = None) -> None:
        """`dead_tmanager` is the process id of a topology manager that must be replaced."""
        self.name = name
        self.kind = kind_of(name)
        self.since_s = monotonic_s()
        self.alone = True
        self.back_s: float | None = None
        """Seconds until a new life of a killed task had initialised it; None for other processes."""
        self._world = chaos_run
        self._lines = chaos_run.flow.made()
        self._tasks = chaos_run.tasks(name)
        self._own = self._tasks[0] if self.kind in (Kind.SPOUT, Kind.BOLT) else ""
        self._life = chaos_run.flow.life(self._own) if self._own else 0
        container = name.partition("/")[0]
        watched = self.kind is Kind.METRICS_MANAGER or (self.kind is Kind.EXECUTOR and not self._tasks)
        watched = watched and not chaos_run.updates  # the container may leave
        self._metrics_of = container if watched else ""
        self._metrics_bytes = chaos_run.metrics_bytes(container) if watched else 0
        self._leader = LeaderWatch(chaos_run.state, dead_tmanager) if dead_tmanager else None

    def took_s(self) -> float | None:
        """Return the seconds that the recovery took, or None if it is not over."""
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
        """Stop waiting; idempotent."""
        if self._leader is not None:
            self._leader.close()
