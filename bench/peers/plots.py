"""The plots of the documents, as data: what is drawn, and which results are missing."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.benches import BENCHES
from bench.findings import Findings
from bench.job import ATLEAST, ATMOST
from bench.latency import PERCENTILES, Latency
from bench.peers.comparison import Comparison
from bench.peers.report import label, machine_text
from bench.scaling import Scaling

__all__ = ["NAMES", "Plot", "plots_of"]

NAMES = ("throughput", "latency", "scaling")

_MODE_TITLES = {ATMOST: "at most once", ATLEAST: "at least once"}
_SCALING_LABELS = {
    "ScalingTasks": "tasks, in one container",
    "ScalingContainers": "containers, with the same tasks",
}


@dataclass(frozen=True, slots=True)
class Plot:
    """`name` of the file without its suffix; `caption` in the document; `data` for draw.py."""

    name: str
    caption: str
    data: Mapping[str, object]


def plots_of(
    comparison: Comparison | None, machine: Mapping[str, object], findings: Findings
) -> tuple[list[Plot], list[str]]:
    """Return the plots, and what the stored results lack for them. A plot without any result is left out.

    `machine` is where the findings were measured.
    """
    lacking: list[str] = [] if comparison else ["the comparison with other systems"]
    plots = [
        _throughput(comparison) if comparison else None,
        _latency(findings, machine_text(machine), lacking),
        _scaling(findings, machine_text(machine), lacking),
    ]
    return [each for each in plots if each], lacking


def _throughput(found: Comparison) -> Plot:
    ordered = sorted(found.rates.items(), key=lambda each: statistics.median(each[1]))
    bars = [
        {
            "name": label(name, found),
            "ours": name not in found.versions,
            "values": [float(f"{rate / 1e6:.3g}") for rate in (min(rates), statistics.median(rates), max(rates))],
        }
        for name, rates in ordered
    ]
    caption = (
        "Words a second of each system; a bar ends at the median, and a line goes from the smallest to the largest."
    )
    return Plot("throughput", caption, {"bars": bars, "x": "million words a second, logarithmic scale"})


def _latency(findings: Findings, machine: str, lacking: list[str]) -> Plot | None:
    values = {(row.bench, row.mode, row.subject): row for row in findings.rows}
    names = [f"p{each:g}" for each in PERCENTILES]
    benches = [each for each in BENCHES if isinstance(each, Latency)]
    found = {
        mode: {each: [values.get((each.name, mode, name)) for name in names] for each in benches}
        for mode in _MODE_TITLES
    }
    lacking += _gaps({(bench.name, _MODE_TITLES[mode]): rows for mode in found for bench, rows in found[mode].items()})
    panels = [
        {
            "title": _MODE_TITLES[mode],
            "x": "percentile of the tuples",
            "y": "latency, ms",
            "ticks": names,
            "lines": [
                {"name": f"{each.rate:,} tuples/s", "values": [row.value if row else None for row in rows]}
                for each, rows in lines.items()
                if any(rows)
            ],
        }
        for mode, lines in found.items()
        if any(map(any, lines.values()))
    ]
    runs = {row.runs for lines in found.values() for rows in lines.values() for row in rows if row}
    caption = f"Latency of tuples by percentile. {_runs(runs)}; {machine}."
    return Plot("latency", caption, {"panels": panels}) if runs else None


def _scaling(findings: Findings, machine: str, lacking: list[str]) -> Plot | None:
    panels: list[Mapping[str, object]] = []
    runs: set[int] = set()
    for bench in BENCHES:
        if not isinstance(bench, Scaling):
            continue
        ratios = [findings.ratios.get(f"{bench.key}.{subject.replace(' ', '_')}") for subject in bench.jobs]
        lacking += _gaps({(bench.name, ""): ratios})
        if not any(ratios):
            continue
        ticks = [subject.partition(" ")[0] for subject in bench.jobs]
        lines = [{"name": "", "values": ratios}]
        y = "throughput, relative to the first"
        panels.append({"x": _SCALING_LABELS[bench.name], "y": y, "ticks": ticks, "lines": lines})
        runs |= {row.runs for row in findings.rows if row.bench == bench.name}
    caption = f"Throughput of one word count over more tasks and containers. {_runs(runs)}; {machine}."
    return Plot("scaling", caption, {"panels": panels}) if panels else None


def _gaps(found: Mapping[tuple[str, str], Sequence[object]]) -> Iterator[str]:
    for (bench, mode), values in found.items():
        if None in values:
            part = "some results of " if any(values) else ""
            yield f"{part}{bench}" + (f", {mode}" if mode else "")


def _runs(runs: set[int]) -> str:
    if runs == {1}:
        return "One run of each"
    return f"Medians of {' or '.join(map(str, sorted(runs)))} runs"
