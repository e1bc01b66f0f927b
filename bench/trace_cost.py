"""Measure how much tracing one in 10,000 roots takes from the throughput of a topology.

That is less than by what one window differs from the next. One in 1,000 stops at ten times as many rows, of which as
many are traced: a task traces at most 20 a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from bench.alternating_windows import AlternatingWindows
from bench.findings import Pace
from bench.trial import Trial

__all__ = ["TraceCost"]

_BETWEEN_S = 1.0  # after a change: the plan has arrived
_ONE_IN = {"nothing traced": 0, "one in 10,000 roots traced": 10_000, "one in 1,000 roots traced": 1_000}


class TraceCost(AlternatingWindows):
    """The setting is changed while the topology runs."""

    subjects: ClassVar = dict(zip(_ONE_IN, ("", "traces.tuple.{mode}", "traces.tuple.{mode}.one_in_1000"), strict=True))
    around_s: ClassVar = 5 * _BETWEEN_S

    @contextmanager
    def during(self, subject: str, trial: Trial, topology: str, pace: Pace) -> Iterator[None]:
        """`AlternatingWindows.during`."""
        trial.command("update", topology, "--runtime-config", f"topology.trace.one.in={_ONE_IN[subject]}")
        trial.wait(_BETWEEN_S)
        yield
