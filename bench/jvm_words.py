"""Measure a word count in Java, in JVMs of its tasks, against the same word count in Python."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import MODES, Job
from bench.window import Measured, measure_heron

__all__ = ["JvmWords", "rate_in_java"]

_JAVA_WORDS = Job("jvm_word_count")

_JVM_WARM_UP = 6  # times the usual one, as of the systems in a JVM in the comparison: a JVM compiles first


@dataclass(frozen=True)
class JvmWords(Bench):
    """Runs alternate: Python and Java, in each mode. The counts of every run are checked."""

    name: str
    python: Job

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found: defaultdict[tuple[str, str], list[Measured]] = defaultdict(list)
        for _ in range(pace.pairs):
            for mode in MODES:
                found["python", mode].append(measure_heron(self.python.in_mode(mode), pace))
                found["java", mode].append(_measure_java(mode, pace))
        findings = Findings()
        for (subject, mode), runs in found.items():
            cpu_s = [sum(each.cpu_s.values()) for each in runs]
            findings.rows.append(median_row(self.name, subject, "tuples/s", [each.per_s for each in runs], mode))
            findings.rows.append(median_row(self.name, subject, "CPU s/million tuples", cpu_s, mode))
            for role in runs[0].cpu_s:
                used = [each.cpu_s.get(role, 0.0) for each in runs]
                findings.rows.append(median_row(self.name, f"{subject}, {role}", "CPU s/million tuples", used, mode))
        for mode in MODES:
            pairs = list(zip(found["java", mode], found["python", mode], strict=True))
            findings.ratios[f"jvm.tuple.{mode}.vs_python"] = statistics.median(
                java.per_s / python.per_s for java, python in pairs
            )
        return findings


def rate_in_java(mode: str, pace: Pace) -> float:
    """Return the words a second of the word count in Java.

    Raises:
        BenchError: when the run fails or counts wrongly, as it does without Java.
    """
    return _measure_java(mode, pace).per_s


def _measure_java(mode: str, pace: Pace) -> Measured:
    for variable, folder in (("HERON_TESTS_CACHE", "heron-tests"), ("XDG_CACHE_HOME", "")):
        os.environ.setdefault(variable, str(Path.home() / ".cache" / folder))  # a trial has another home
    return measure_heron(_JAVA_WORDS.in_mode(mode), replace(pace, warm_up_s=pace.warm_up_s * _JVM_WARM_UP))
