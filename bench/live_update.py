"""Measure an update of the parallelism under full load: how long it takes, and how long nothing arrives."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.records import BenchError
from bench.silence import Silence
from bench.trial import Trial

__all__ = ["LiveUpdate"]

_TOPOLOGY = "live_state"
_NEW_WITHIN_S = 60.0
_AFTER_S = 1.0
_CHECKPOINT_WITHIN_S = 60.0


@dataclass(frozen=True)
class LiveUpdate(Bench):
    """A bolt of two tasks gets four. With an interval of checkpoints, its keyed state moves; else it has none."""

    name: str
    keys: int
    value_bytes: int
    interval_s: float = 0.0

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(pace.pairs):
            for name, value in self._figures(pace).items():
                found[name].append(value)
        mode = "effectively once" if self.interval_s else "atmost"
        return Findings([median_row(self.name, name, "s", values, mode) for name, values in found.items()])

    def _figures(self, pace: Pace) -> dict[str, float]:
        arguments = ("--keys", str(self.keys), "--bytes", str(self.value_bytes))
        interval = ("--interval_ms", str(int(self.interval_s * 1000)))
        with Trial(_TOPOLOGY, *arguments, *interval, engine=pace.engine) as trial:
            last, apart = Silence(trial, "last"), Silence(trial, "apart")
            trial.wait(pace.warm_up_s)
            if self.interval_s:
                trial.command("checkpoints", "LiveState", "take", "--timeout", str(_CHECKPOINT_WITHIN_S))
            former = set(trial.records.folder.glob("began-*"))
            last.begin()
            apart.begin()
            begun_s = trial.wait(0.0)
            trial.command("update", "LiveState", "--component-parallelism", "value:4")
            complete_s = trial.wait(0.0)
            trial.wait_until(lambda _: len({*trial.records.folder.glob("began-*")} - former) == 2, _NEW_WITHIN_S)
            new = {*trial.records.folder.glob("began-*")} - former
            trial.wait(_AFTER_S)
            figures = {
                "until the command returns": complete_s - begun_s,
                "until the new tasks process": max(float(path.read_text(encoding="utf-8")) for path in new) - begun_s,
                "longest silence": last.longest_s(),
                "longest silence of another part": apart.longest_s(),
            }
            trial.end()
        if not figures["longest silence"]:
            msg = f"{self.name}: no tuple arrived after the update"
            raise BenchError(msg)
        return figures
