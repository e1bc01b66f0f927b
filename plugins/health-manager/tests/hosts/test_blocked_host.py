"""A container on a blocked host is restarted elsewhere, and the move is effective when its host is not blocked."""

from __future__ import annotations

from heron.spi.health_values import (
    ActionKind,
    ComponentShape,
    Diagnosis,
    Measurement,
    Measurements,
    Observation,
    Subject,
    TopologyShape,
)
from heron_health_manager.diagnosing.container_causes import BlockedHost
from heron_health_manager.diagnosing.detectors import DETECTORS
from heron_health_manager.diagnosing.resolvers import RestartResolver
from heron_health_manager.sensors.host_sensor import HostSensor

SHAPE = TopologyShape("words", (ComponentShape("split", "bolt", {1: 1, 2: 2}),))


def diagnosed(blocked_s: float) -> tuple[Measurements, list[Diagnosis]]:
    """What follows if container 1 is on a good host, and the host of container 2 is blocked for so long."""
    window = [Observation(at_s, SHAPE, blocked={1: 0.0, 2: blocked_s}) for at_s in (0.0, 1.0)]
    measurements = Measurements(SHAPE, HostSensor().measure(window))
    symptoms = [each for detector in DETECTORS for each in detector.detect(measurements)]
    return measurements, list(BlockedHost().diagnose(symptoms, measurements))


def test_the_container_starts_again_elsewhere() -> None:
    """The command is that of a person: `heron restart` leaves a blocked host by itself."""
    measurements, (found,) = diagnosed(30.0)
    assert (found.name, found.subject) == ("blocked-host", Subject(container_id=2))
    assert found.evidence == ("its host has been blocked for 30 s; `heron hosts list` shows why",)
    action = RestartResolver().resolve(found, measurements)
    assert action is not None
    assert (action.kind, action.container_id, action.elsewhere) == (ActionKind.RESTART, 2, True)
    assert action.command == "heron restart words 2"
    assert action.expected is not None
    assert not action.expected.holds(30.0)
    assert action.expected.holds(0.0)


def test_a_host_that_is_not_blocked_is_no_reason() -> None:
    """Neither is one that is not known: there is no measurement then."""
    measurements, found = diagnosed(0.0)
    assert found == []
    assert measurements.value("host-blocked-s", Subject(container_id=2)) == 0.0
    assert list(Measurements(SHAPE, HostSensor().measure([Observation(0.0, SHAPE)] * 2)).of("host-blocked-s")) == []


def test_a_stuck_task_starts_again_wherever() -> None:
    """Its host is not the reason."""
    stuck = Diagnosis("stuck-task", Subject("split", 2), 0.9, ("it stands still",))
    action = RestartResolver().resolve(stuck, Measurements(SHAPE, [Measurement("rate-in", Subject("split", 2), 0.0)]))
    assert action is not None
    assert not action.elsewhere
