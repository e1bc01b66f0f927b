"""Makes a failing scenario shorter: leaves faults out as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from heron_testing.seeded.simulation import Outcome, Scenario

__all__ = ["shrink"]


def shrink(scenario: Scenario, run: Callable[[Scenario], Outcome]) -> Outcome:
    """The outcome of the shortest failing scenario that was found; each run costs as much as the first one."""
    outcome = run(scenario)
    left = True
    while left:
        left = False
        for fault in scenario.faults:
            fewer = replace(scenario, faults=tuple(each for each in scenario.faults if each is not fault))
            shorter = run(fewer)
            if shorter.problems:
                scenario, outcome, left = fewer, shorter, True
                break
    return outcome
