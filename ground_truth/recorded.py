"""The measurements of a round as a small file, for tests that need no topology."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from heron.spi.health import HealthPolicy
from heron.spi.health_values import Measurement, Observation, TopologyShape

__all__ = ["write_round"]

_FOLDER = Path(__file__).resolve().parents[1] / "plugins" / "health-manager" / "tests" / "recorded"
_DIGITS = 4


class _Recorded(msgspec.Struct):
    """`measured` has component, task, container, detail and value of each measurement, by its name."""

    right: tuple[str, ...]
    shape: TopologyShape
    measured: dict[str, list[tuple[str, int, int, str, float]]]


def write_round(name: str, right: tuple[str, ...], policy: HealthPolicy, window: Sequence[Observation]) -> None:
    """Write the file NAME.json: the right diagnoses, the plan, and all measurements of the window."""
    measured: dict[str, list[tuple[str, int, int, str, float]]] = {}
    for sensor in policy.sensors():
        for each in sensor.measure(window):
            measured.setdefault(each.name, []).append(_row(each))
    recorded = _Recorded(right, window[-1].shape, measured)
    _FOLDER.mkdir(exist_ok=True)
    lines = (
        msgspec.json.encode(recorded).decode().replace(']],"', ']],\n"').replace(',"measured":{', ',\n"measured":{\n')
    )
    (_FOLDER / f"{name}.json").write_text(lines + "\n", encoding="utf-8")


def _row(each: Measurement) -> tuple[str, int, int, str, float]:
    subject, value = each.subject, float(f"{each.value:.{_DIGITS}g}")
    return subject.component, subject.task_id, subject.container_id, each.detail, value
