"""Recorded runs: all observations, to judge them again, and the measurements of one round, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ground_truth.trial import TimedWindow, windows_of
from heron.spi.health import HealthPolicy
from heron.spi.health_values import Measurement, Observation, TopologyShape

__all__ = ["Recording", "write_round"]

_FOLDER = Path(__file__).resolve().parents[1] / "plugins" / "health-manager" / "tests" / "recorded"
_DIGITS = 4
_JITTER_S = 0.5  # between the moment of an observation and that of its round


class Recording(msgspec.Struct):
    """The observations of a run in their order.

    `start_s` is the monotonic second at which the fault began, or a healthy run was whole; `right` are the right
    diagnoses, which are known when the run is over.
    """

    name: str
    observations: list[Observation] = []
    start_s: float = 0.0
    right: tuple[str, ...] = ()

    def see(self, at_s: float, window: Sequence[Observation]) -> None:
        """Takes a window of the run."""
        last_s = self.observations[-1].at_s if self.observations else float("-inf")
        self.observations += [each for each in window if each.at_s > last_s]
        self.start_s = window[-1].at_s - at_s

    def windows(self, policy: HealthPolicy) -> Iterator[TimedWindow]:
        """Yield the windows since the fault began."""
        for window in windows_of(self.observations, policy):
            if (at_s := window[-1].at_s - self.start_s) >= -_JITTER_S:
                yield at_s, window

    def write(self, folder: Path) -> None:
        """Write the file NAME.json."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.json").write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Return what `write` wrote."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


class _RecordedRound(msgspec.Struct):
    """`measured` has component, task, container, detail and value of each measurement, by its name."""

    right: tuple[str, ...]
    shape: TopologyShape
    measured: dict[str, list[tuple[str, int, int, str, float]]]


def write_round(recording: Recording, policy: HealthPolicy, at_s: float) -> None:
    """Write the measurements of the last window until then as a fixture, NAME.json."""
    windows = [window for since_s, window in recording.windows(policy) if since_s <= at_s + _JITTER_S]
    measured: dict[str, list[tuple[str, int, int, str, float]]] = {}
    for sensor in policy.sensors():
        for each in sensor.measure(windows[-1]):
            measured.setdefault(each.name, []).append(_row(each))
    text = msgspec.json.encode(_RecordedRound(recording.right, windows[-1][-1].shape, measured)).decode()
    lines = text.replace(']],"', ']],\n"').replace(',"measured":{', ',\n"measured":{\n')
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / f"{recording.name}.json").write_text(lines + "\n", encoding="utf-8")


def _row(each: Measurement) -> tuple[str, int, int, str, float]:
    subject, value = each.subject, float(f"{each.value:.{_DIGITS}g}")
    return subject.component, subject.task_id, subject.container_id, each.detail, value
