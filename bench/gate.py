"""The gate: measure the ratios that do not depend on the machine, and compare them with the bounds in floor.json."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from bench.benches import FILE_READ, FOUR_FIELDS, WORD_COUNT
from bench.findings import Findings, Pace
from bench.job import ATLEAST, ATMOST
from bench.records import BenchError

__all__ = ["PACE", "Check", "checks_of", "measure"]

FLOOR = Path(__file__).resolve().parent / "floor.json"
PACE = Pace(warm_up_s=1.0, window_s=2.0, pairs=3)
_FEWER = replace(PACE, pairs=2)

_BENCHES = (
    (WORD_COUNT, PACE),
    (replace(FILE_READ, modes=(ATLEAST,)), _FEWER),
    (replace(FOUR_FIELDS, modes=(ATMOST,), null=False), _FEWER),
)


@dataclass(frozen=True, slots=True)
class Check:
    """A ratio and its bound. None means that the ratio was not measured, which counts as a failure."""

    name: str
    measured: float | None
    bound: float
    least: bool

    @property
    def holds(self) -> bool:
        if self.measured is None:
            return False
        return self.measured >= self.bound if self.least else self.measured <= self.bound


def measure(pace: Pace) -> Findings:
    """Run the benches of the gate with the engine of `pace`: under three minutes on two cores.

    Raises:
        BenchError: when a run fails or counts wrongly.
    """
    findings = Findings()
    for bench, own in _BENCHES:
        findings.add(bench.run(replace(own, engine=pace.engine)))
    return findings


def checks_of(ratios: dict[str, float], floor: Path = FLOOR) -> list[Check]:
    """Return a check for every bound of the file: ``{"least": {name: value}, "most": {name: value}}``.

    Raises:
        BenchError: when the file does not have this form.
    """
    document = json.loads(floor.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or set(document) != {"least", "most"}:
        msg = f"{floor}: is not an object with 'least' and 'most'"
        raise BenchError(msg)
    return [
        Check(name, ratios.get(name), float(bound), side == "least")
        for side, bounds in document.items()
        for name, bound in bounds.items()
    ]
