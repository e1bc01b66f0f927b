"""The one line of JSON that a chaos run prints, and whether the run passed."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chaos.campaign import Campaign, Times
from chaos.committed import CommittedVerdict
from chaos.fault_plan import Kind
from chaos.oracle import Verdict

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`flowed_s` is the time in which lines were made; `problems` lists errors in words.

    `checkpoints` is what the topology reported about them before its end; empty without checkpoints.
    """

    seed: int
    minutes: float
    campaign: Campaign
    verdict: Verdict | CommittedVerdict | None
    flowed_s: float
    remaining: Sequence[str]
    problems: Sequence[str]
    checkpoints: Mapping[str, object] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether nothing was lost, unexplained or left, and no process was replaced without a kill."""
        clean = not (self.remaining or self.problems or self.campaign.unasked)
        return clean and self.verdict is not None and self.verdict.passed

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
                **verdict.figures(),
            }
        if campaign.updates is not None:
            document["updates"] = dict(campaign.updates.outcomes)
        if self.checkpoints:
            document["restores"] = self.checkpoints["restores"]
            document["checkpoints"] = {name: self.checkpoints[name] for name in ("complete", "failed")}
        document |= {
            "recover_s": _figures(campaign.recover_s),
            "crowded_s": _figures(campaign.crowded_s),
            "resume_s": _figures(campaign.resume_s),
            "unasked": campaign.unasked,
            "left": list(self.remaining),
            "problems": [*self.problems, *(verdict.strange if verdict else ())],
            "mode": campaign.chaos_run.mode.value,
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
