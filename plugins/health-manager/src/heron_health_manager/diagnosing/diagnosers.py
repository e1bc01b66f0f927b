"""All causes besides the size of a component, and the one that is left when none of them is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.spi.health import Diagnoser
from heron.spi.health_values import Diagnosis, Measurements, Subject, Symptom
from heron_health_manager.diagnosing.container_causes import (
    BlockedHost,
    MemoryNearLimit,
    SlowHost,
    SlowLink,
    SlowStreamManager,
    UnreachablePeer,
)
from heron_health_manager.diagnosing.detectors import symptoms_of
from heron_health_manager.diagnosing.task_causes import (
    DataSkew,
    DebuggedTask,
    Garbage,
    MemoryGrowth,
    RestartLoop,
    SlowExternalService,
    SlowTask,
    StalledSource,
    StuckTask,
)
from heron_health_manager.diagnosing.tuning import SMALL_BATCHES, SmallBatches, TooFewPending

__all__ = ["CAUSES", "EXPLAINED", "TOO_FEW"]

EXPLAINED = frozenset(
    {
        "blocked-host",
        "data-skew",
        "debugged-task",
        "garbage",
        "hot-key",
        "hot-key-group",
        SMALL_BATCHES,
        "slow-external-service",
        "slow-host",
        "slow-key",
        "slow-link",
        "slow-stream-manager",
        "slow-task",
        "stuck-task",
    }
)
"""Diagnoses that explain why a component is slow, so that more tasks are not the first remedy."""


_BUSY = ("busy", "full", "no-progress", "restarts")


class UnexplainedPressure(Diagnoser):
    """Back pressure, and no culprit is busy: people should know that the cause is not known.

    A task whose time is full of waits for a processor is busy for them too, with another cause.
    """

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        pressing = symptoms_of(symptoms, "back-pressure")
        known = {subject for name in _BUSY for subject in symptoms_of(symptoms, name)}
        if pressing and not known & pressing.keys():
            culprits = ", ".join(str(each) for each in sorted(pressing))
            text = f"back pressure comes from {culprits}, and none of them is busy"
            yield Diagnosis("unexplained-back-pressure", Subject(), 0.3, (text,))


TOO_FEW = TooFewPending()

CAUSES: tuple[Diagnoser, ...] = (
    UnreachablePeer(),
    RestartLoop(),
    DebuggedTask(),
    StuckTask(),
    StalledSource(),
    MemoryGrowth(),
    MemoryNearLimit(),
    BlockedHost(),
    SlowHost(),
    SlowStreamManager(),
    SlowLink(),
    Garbage(),
    DataSkew(),
    SlowTask(),
    SlowExternalService(),
    TOO_FEW,
    SmallBatches(),
    UnexplainedPressure(),
)
