"""What there is to see of a topology whose topology manager does not answer, and what follows from it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from heron.spi.scheduler import ContainerStatus, SchedulerState

__all__ = ["Traces"]


@dataclass(frozen=True, slots=True)
class Traces:
    """Whether it has had a physical plan, whether a command is at work on it, its job (None: nobody says), and the
    job's containers.
    """

    planned: bool
    locked: bool
    job: SchedulerState | None
    containers: tuple[ContainerStatus, ...] = ()

    def dead(self) -> bool:
        """Whether nothing of it runs, and nobody is about to start it: waiting for it is in vain."""
        return not self.locked and self.job is not None and self.job is not SchedulerState.RUNNING

    def spoken(self) -> str:
        """Why it does not answer."""
        why = "".join(
            f"; container {each.container_id} does not run, after {each.attempts} starts: {each.last_error}"
            for each in self.containers
            if not each.running and each.last_error
        )
        if not self.planned:
            return f"it is starting, its topology manager is not there yet{why}"
        return f"its topology manager is being restarted; data flows on{why}"
