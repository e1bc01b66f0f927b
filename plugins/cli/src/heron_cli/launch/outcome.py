"""How a run ended."""

from __future__ import annotations

from dataclasses import dataclass

from heron.ipc.status import TopologyStatus

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end state, why, and when (monotonic seconds); `status` is the last that was to be had."""

    state: str
    reason: str = ""
    interrupted: bool = False
    status: TopologyStatus | None = None
    ended_s: float = 0.0
