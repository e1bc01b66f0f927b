"""Results of benches: rows of figures, and ratios that can be compared between machines."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.engine import Engine
from bench.machine import machine

__all__ = [
    "Findings",
    "Pace",
    "Row",
    "median_of_ratios",
    "median_row",
    "read_findings",
    "read_results",
    "write_findings",
]


@dataclass(frozen=True, slots=True)
class Pace:
    """How long and how often each bench measures, and which engine it runs."""

    warm_up_s: float = 1.5
    window_s: float = 4.0
    pairs: int = 5
    engine: Engine = field(default_factory=Engine)


@dataclass(frozen=True, slots=True)
class Row:
    """A figure: `value` is the median of `runs` runs; `spread` is (largest - smallest) / median."""

    bench: str
    path: str
    mode: str
    subject: str
    value: float
    unit: str
    runs: int
    spread: float


@dataclass(frozen=True, slots=True)
class Findings:
    """Rows in the order of measurement, and ratios by name."""

    rows: list[Row] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)

    def add(self, other: Findings) -> None:
        """Add the findings of another bench."""
        self.rows.extend(other.rows)
        self.ratios.update(other.ratios)


def median_row(bench: str, subject: str, unit: str, values: Sequence[float], mode: str = "atmost") -> Row:
    """Return a row of the tuple path."""
    middle = statistics.median(values)
    spread = (max(values) - min(values)) / middle if middle else 0.0
    return Row(bench, "tuple", mode, subject, float(f"{middle:.4g}"), unit, len(values), round(spread, 3))


def median_of_ratios(values: Iterable[float], others: Iterable[float]) -> float:
    """Return the median of the ratios of values that were measured in pairs."""
    return statistics.median(one / other for one, other in zip(values, others, strict=True))


def write_findings(findings: Findings, path: Path, pace: Pace, before: Findings | None = None) -> None:
    """Write the findings as JSON, with the machine and the pace.

    Rows and ratios of `before` (earlier findings of this machine) are kept unless they were measured again.
    """
    measured = {row.bench for row in findings.rows}
    rows = [*(row for row in before.rows if row.bench not in measured), *findings.rows] if before else findings.rows
    ratios = {**before.ratios, **findings.ratios} if before else findings.ratios
    document = {
        "machine": machine(),
        "pace": {
            "warm_up_s": pace.warm_up_s,
            "window_s": pace.window_s,
            "settings": list(pace.engine.settings),
        },
        "rows": [asdict(row) for row in rows],
        "ratios": {name: round(value, 3) for name, value in ratios.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def read_findings(path: Path) -> Findings | None:
    """Read earlier findings. Return None if the file is missing or another machine wrote it."""
    if not path.exists():
        return None
    measured_on, findings = read_results(path)
    return findings if measured_on == machine() else None


def read_results(path: Path) -> tuple[Mapping[str, object], Findings]:
    """Read findings of any machine, and the properties of that machine."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return document["machine"], Findings([Row(**row) for row in document["rows"]], document["ratios"])
