"""The diagnoses of recorded runs: each file has the measurements of a run with an injected cause, or without one.

`./dev truth -- --fixtures` writes the files. The round is that in which all right diagnoses had been found.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from heron.spi.health_values import Measurement, Measurements, Subject, TopologyShape
from heron_health_manager.diagnosing.thresholds import REPORTED
from heron_health_manager.ds2_policy import Ds2Policy

FILES = sorted((Path(__file__).parent / "recorded").glob("*.json"))


class Recorded(msgspec.Struct):
    """What `ground_truth.recorded` writes."""

    right: tuple[str, ...]
    shape: TopologyShape
    measured: dict[str, list[tuple[str, int, int, str, float]]]


def findings(recorded: Recorded) -> list[str]:
    """The diagnoses of the policy from the confidence on that counts, the most confident first."""
    measured = [
        Measurement(name, Subject(component, task, container), value, detail)
        for name, rows in recorded.measured.items()
        for component, task, container, detail, value in rows
    ]
    measurements, policy = Measurements(recorded.shape, measured), Ds2Policy.open({})
    symptoms = [each for detector in policy.detectors() for each in detector.detect(measurements)]
    found = [each for cause in policy.diagnosers() for each in cause.diagnose(symptoms, measurements)]
    found.sort(key=lambda each: (-each.confidence, each.name, each.subject))
    return [f"{each.name} {each.subject}" for each in found if each.confidence >= REPORTED]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_right_diagnosis_comes_first(path: Path) -> None:
    """Also with the noise of a real run; a healthy run has none."""
    recorded = msgspec.json.decode(path.read_bytes(), type=Recorded)
    found = findings(recorded)
    if not recorded.right:
        assert found == []
        return
    assert found[0] in recorded.right
    names = {each.partition(" ")[0] for each in recorded.right}
    assert {each.partition(" ")[0] for each in found if each in recorded.right} == names


def test_there_are_recordings() -> None:
    """Otherwise the test above would test nothing."""
    assert len(FILES) >= 12
