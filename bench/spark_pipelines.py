"""Measure a pipeline that is compiled to Spark against the same work written by hand in PySpark."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.records import BenchError

__all__ = ["SparkPipeline"]

_ROOT = Path(__file__).parents[1]
_WITHIN_S = 900.0
_COMPILED, _BY_HAND = "compiled", "by_hand"


@dataclass(frozen=True)
class SparkPipeline(Bench):
    """`kind` is batch or stream; `key` names the ratio of the compiled pipeline to the query by hand."""

    name: str
    key: str
    kind: str
    records: int

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. Both forms run in turn in one Spark, which has warmed up."""
        program = f"from bench.pipeline_forms_on_spark import main; main({self.kind!r}, {self.records}, {pace.pairs})"
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])},
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
        rates: defaultdict[str, list[float]] = defaultdict(list)
        results: defaultdict[str, set[int]] = defaultdict(set)
        for line in ran.stdout.splitlines():
            form, rate, count = line.split()
            rates[form].append(float(rate))
            results[form].add(int(count))
        if ran.returncode or len(rates[_BY_HAND]) != pace.pairs:
            msg = f"{self.name}: the program of the two forms failed: {ran.stderr.strip()[-500:]}"
            raise BenchError(msg)
        if self.kind == "batch" and results[_COMPILED] != results[_BY_HAND]:
            msg = f"{self.name}: the forms have different numbers of results: {dict(results)}"
            raise BenchError(msg)
        findings = Findings()
        for form, values in rates.items():
            findings.rows.append(median_row(self.name, form.replace("_", " "), "records/s", values))
        pairs = zip(rates[_COMPILED], rates[_BY_HAND], strict=True)
        findings.ratios[self.key] = statistics.median(one / other for one, other in pairs)
        return findings
