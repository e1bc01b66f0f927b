"""Compare two revisions of the engine: alternating runs of the same topologies."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.findings import Findings, Pace, median_row
from bench.records import BenchError
from bench.throughput import Throughput, median_ratio
from bench.window import Measured, measure_heron

__all__ = ["ROOT", "compare", "working_tree"]

ROOT = Path(__file__).resolve().parents[1]

_THIS = "this tree"


@contextmanager
def working_tree(revision: str) -> Iterator[Path]:
    """Yield a working tree of a revision, with its environment, and remove it at the end.

    The revision's own ``./dev`` installs it, because distributions and entry points differ between revisions.

    Raises:
        BenchError: when git has no such revision, or it cannot be installed.
    """
    with tempfile.TemporaryDirectory(prefix="hb-tree-") as folder:
        tree = Path(folder) / "tree"
        _run("git", "-C", str(ROOT), "worktree", "add", "--detach", str(tree), revision)
        try:
            _run(str(tree / "dev"))
            yield tree
        finally:
            _run("git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree))


def compare(bench: Throughput, mode: str, pace: Pace, other: tuple[str, Path]) -> Findings:
    """Compare the engine of this tree with another; `other` is the name and the tree of a revision.

    Raises:
        BenchError: when a run of either engine fails or counts wrongly.
    """
    name, tree = other
    paces = {name: replace(pace, engine=pace.engine.of_tree(tree)), _THIS: pace}
    runs: defaultdict[str, list[Measured]] = defaultdict(list)
    job = bench.job.in_mode(mode)
    for number in range(pace.pairs):
        for each in sorted(paces, reverse=bool(number % 2)):  # the second may find a warmer machine
            runs[each].append(measure_heron(job, paces[each]))
    findings = Findings()
    for each, measured in runs.items():
        rates = [run.per_s for run in measured]
        used = [sum(run.cpu_s.values()) for run in measured]
        findings.rows.append(median_row(bench.name, each, "tuples/s", rates, mode))
        findings.rows.append(median_row(bench.name, each, "CPU s/million tuples", used, mode))
    key = f"{bench.key}.tuple.{mode}"
    findings.ratios[f"{key}.vs_{name}"] = median_ratio(runs[_THIS], [run.per_s for run in runs[name]])
    findings.ratios[f"{key}.cpu_vs_{name}"] = _cpu_ratio(runs[_THIS], runs[name])
    return findings


def _cpu_ratio(ours: Sequence[Measured], theirs: Sequence[Measured]) -> float:
    pairs = zip(ours, theirs, strict=True)
    return statistics.median(sum(one.cpu_s.values()) / sum(two.cpu_s.values()) for one, two in pairs)


def _run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        msg = f"{' '.join(command)}: {result.stderr.strip()}"
        raise BenchError(msg)
