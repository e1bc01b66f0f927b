"""Measure the resident memory of each kind of process while a topology is almost idle."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import LAST, MODES, Job
from bench.trial import Trial

__all__ = ["Memory"]

_START_WITHIN_S = 60.0
_SETTLE_S = 2.0


@dataclass(frozen=True)
class Memory(Bench):
    """One spout, one bolt, ten tuples a second, in both modes."""

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for _ in range(max(1, pace.pairs // 2)):
            for mode in MODES:
                for role, size in _largest(pace, mode).items():
                    found[mode, role].append(size / 2**20)
        findings = Findings()
        for (mode, role), sizes in found.items():
            findings.rows.append(median_row(self.name, role, "MiB resident", sizes, mode))
        return findings


def _largest(pace: Pace, mode: str) -> dict[str, int]:
    """Return the bytes of the largest process of each role."""
    largest: defaultdict[str, int] = defaultdict(int)
    job = Job("low_throughput", ("--rate", "10")).in_mode(mode)
    with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
        trial.wait_until(lambda _: trial.records.has_begun(LAST, 1), _START_WITHIN_S)
        trial.wait(_SETTLE_S)
        for each in trial.processes():
            role = "idle instance" if each.instance else each.role
            largest[role] = max(largest[role], each.resident_bytes)
        trial.end()
    return largest
