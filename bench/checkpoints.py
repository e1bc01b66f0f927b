"""Measure what checkpoints cost while nothing fails, and how long a restore takes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import psutil

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.latency import percentile
from bench.records import BenchError
from bench.silence import Silence, late_ms
from bench.trial import Trial

__all__ = ["CheckpointLatency", "Checkpoints", "RestoreState"]

_TOPOLOGY = "live_state"
_ONCE = "effectively once"
_BACK_WITHIN_S = 60.0
_AFTER_S = 2.0


@dataclass(frozen=True)
class Checkpoints(Bench):
    """The rate of the topology with checkpoints, and without them at most once, in alternating runs."""

    name: str
    key: str
    interval_s: float
    keys: int
    value_bytes: int

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. A window has at least one checkpoint."""
        window_s = max(pace.window_s, 1.3 * self.interval_s)
        with_s, without = [], []
        for _ in range(pace.pairs):
            without.append(self._rate(pace, window_s, 0.0))
            with_s.append(self._rate(pace, window_s, self.interval_s))
        ratios = [once / atmost for once, atmost in zip(with_s, without, strict=True)]
        rows = [
            median_row(self.name, "heron", "tuples/s", without),
            median_row(self.name, "heron", "tuples/s", with_s, _ONCE),
        ]
        return Findings(rows, {f"{self.key}.tuple.once_vs_atmost": statistics.median(ratios)})

    def _rate(self, pace: Pace, window_s: float, interval_s: float) -> float:
        arguments = ("--keys", str(self.keys), "--bytes", str(self.value_bytes))
        interval = ("--interval_ms", str(int(interval_s * 1000)))
        with Trial(_TOPOLOGY, *arguments, *interval, engine=pace.engine) as trial:
            last = Silence(trial, "last")
            start_s = trial.wait(pace.warm_up_s)
            before = last.count()
            end_s = trial.wait(window_s)
            after = last.count()
            trial.end()
        return (after - before) / (end_s - start_s)


@dataclass(frozen=True)
class CheckpointLatency(Bench):
    """The latency at 10,000 tuples a second with a checkpoint each second, and at most once without."""

    name: str
    rate: int = 10_000

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found: dict[str, list[float]] = {"atmost": [], _ONCE: []}
        for _ in range(pace.pairs):
            for mode, interval_ms in (("atmost", 0), (_ONCE, 1000)):
                found[mode].append(self._p99_ms(pace, interval_ms))
        rows = [median_row(self.name, "p99", "ms", values, mode) for mode, values in found.items()]
        added = [once - atmost for once, atmost in zip(found[_ONCE], found["atmost"], strict=True)]
        rows.append(median_row(self.name, "p99 that checkpoints add", "ms", added, _ONCE))
        return Findings(rows)

    def _p99_ms(self, pace: Pace, interval_ms: int) -> float:
        arguments = ("--rate", str(self.rate), "--interval_ms", str(interval_ms), "--keys", "1000", "--bytes", "100")
        with Trial(_TOPOLOGY, *arguments, engine=pace.engine) as trial:
            Silence(trial, "last")
            start_s = trial.wait(pace.warm_up_s)
            end_s = trial.wait(2 * pace.window_s)
            trial.wait(1.0)
            trial.end()
            found = late_ms(trial.records.folder, start_s, end_s)
        if len(found) < 0.9 * self.rate * (end_s - start_s):
            msg = f"{self.name}: only {len(found)} tuples were due in {end_s - start_s:.1f} s at {self.rate}/s"
            raise BenchError(msg)
        return percentile(found, 99.0)


@dataclass(frozen=True)
class RestoreState(Bench):
    """A task of a bolt dies: all eight tasks load 100 MB of state together."""

    name: str
    keys: int = 10_000
    value_bytes: int = 10_000
    rate: int = 2_000

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        runs = [self._figures(pace) for _ in range(pace.pairs)]
        return Findings([median_row(self.name, name, "s", [run[name] for run in runs], _ONCE) for name in runs[0]])

    def _figures(self, pace: Pace) -> dict[str, float]:
        arguments = ("--keys", str(self.keys), "--bytes", str(self.value_bytes), "--rate", str(self.rate))
        with Trial(_TOPOLOGY, *arguments, "--tasks", "8", "--interval_ms", "600000", engine=pace.engine) as trial:
            last, apart = Silence(trial, "last"), Silence(trial, "apart")
            trial.wait(pace.warm_up_s)
            trial.command("checkpoints", "LiveState", "take")
            last.begin()
            apart.begin()
            killed_s = trial.wait(0.0)
            next(psutil.Process(each.pid) for each in trial.processes() if each.role == "value").kill()
            began = [*trial.records.folder.glob("began-*")]
            trial.wait_until(
                lambda _: all(float(each.read_text(encoding="utf-8") or 0) > killed_s for each in began), _BACK_WITHIN_S
            )
            trial.wait(_AFTER_S)
            if last.last_s() < killed_s:
                msg = f"{self.name}: no tuple arrived after the kill"
                raise BenchError(msg)
            back_s = max(float(each.read_text(encoding="utf-8")) for each in began)
            figures = {
                "from the kill until all tasks process": back_s - killed_s,
                "longest silence": last.longest_s(),
                "longest silence of another part": apart.longest_s(),
            }
            trial.end()
        return figures
