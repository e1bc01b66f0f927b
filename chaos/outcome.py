"""The one line of JSON that a chaos run prints, and whether the run passed."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.campaign import Campaign, Times
from chaos.fault_plan import Kind
from chaos.oracle import Verdict

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`flowed_s` is the time in which lines were made; `problems` lists errors in words."""

    seed: int
    minutes: float
    campaign: Campaign
    verdict: Verdict | None
    flowed_s: float
    remaining: Sequence[str]
    problems: Sequence[str]

    @property
    def passed(self) -> bool:
        """Whether nothing was lost, unexplained or left, and no process was replaced without a kill."""
        verdict = self.verdict
        clean = not (self.remaining or self.problems or self.campaign.unasked)
        return clean and verdict is not None and not (verdict.lost or verdict.unexplained or verdict.strange)

    def json(self) -> str:
        """Return the result as one line."""
        verdict, campaign = self.verdict, self.campaign
        document: dict[str, object] = {
            "killed": _counts(campaign.killed),
            "stopped": _counts(campaign.stopped),
            "missed": campaign.missed,
        }
        if verdict is not None:
            document |= {
                "lines": verdict.lines,
                "lines_per_s": round(verdict.lines / self.flowed_s),
                "lost": verdict.lost,
                "duplicates": verdict.duplicates,
                "duplicates_of": {
                    "failed trees": verdict.by_failed_trees,
                    "lives of spouts": verdict.by_lives,
                    "unexplained": verdict.unexplained,
                },
            }
        document |= {
            "recover_s": _figures(campaign.recover_s),
            "crowded_s": _figures(campaign.crowded_s),
            "resume_s": _figures(campaign.resume_s),
            "unasked": campaign.unasked,
            "left": list(self.remaining),
            "problems": [*self.problems, *(verdict.strange if verdict else ())],
            "seed": self.seed,
            "minutes": self.minutes,
        }
        return json.dumps(document)


def _counts(counts: Counter[Kind]) -> dict[str, int]:
    return {kind.value: counts[kind] for kind in Kind}


def _figures(times: Times) -> dict[str, dict[str, float]]:
    return {
        kind.value: {"n": len(found), "p50": round(statistics.median(found), 3), "max": round(max(found), 3)}
        for kind in Kind
        if (found := times.get(kind))
    }
