"""Each cause is recognised from the measurements that it makes, and from nothing less."""

from __future__ import annotations

import pytest

from heron.spi.health_values import (
    Action,
    ActionKind,
    ComponentShape,
    Diagnosis,
    Measurement,
    Measurements,
    Subject,
    Subscription,
    TopologyShape,
)
from heron_health_manager.detectors import DETECTORS
from heron_health_manager.diagnosers import CAUSES
from heron_health_manager.resolvers import RESOLVERS

WORK = ComponentShape("work", "bolt", {2: 1, 3: 1, 4: 2, 5: 2}, (Subscription("source", "default"),))
SHAPE = TopologyShape("words", (ComponentShape("source", "spout", {1: 1}), WORK))
HEALTHY = {"useful-share": 0.6, "rate-in": 100.0, "true-rate": 166.0, "queue-bytes": 1000.0, "obstructed-share": 0.0}


def measured(
    tasks: dict[int, dict[str, float]] | None = None, containers: dict[int, dict[str, float]] | None = None
) -> Measurements:
    """Measurements of healthy tasks, with these in their place; and those of containers."""
    found = [
        Measurement(name, Subject("work", task), value)
        for task in WORK.tasks
        for name, value in (HEALTHY | (tasks or {}).get(task, {})).items()
    ]
    found += [
        Measurement(name, Subject(container_id=container), value)
        for container, values in (containers or {}).items()
        for name, value in values.items()
    ]
    return Measurements(SHAPE, found)


def diagnosed(measurements: Measurements) -> list[Diagnosis]:
    symptoms = [each for detector in DETECTORS for each in detector.detect(measurements)]
    return [each for cause in CAUSES for each in cause.diagnose(symptoms, measurements)]


def names(measurements: Measurements) -> list[tuple[str, str]]:
    return [(each.name, str(each.subject)) for each in diagnosed(measurements)]


def all_tasks(**values: float) -> dict[int, dict[str, float]]:
    return dict.fromkeys(WORK.tasks, values)


WAITING = {"cpu-wait-share": 0.5, "useful-share": 0.95, "true-rate": 60.0}

CASES: dict[str, tuple[Measurements, list[tuple[str, str]]]] = {
    "healthy": (measured(), []),
    "busy everywhere": (measured(all_tasks(**{"useful-share": 1.0, "pressure-share": 1.0})), []),
    "a hot key": (
        measured({3: {"rate-in": 400.0, "useful-share": 0.98}}),
        [("data-skew", "work/3")],
    ),
    "skew that hurts nobody": (measured({3: {"rate-in": 400.0, "useful-share": 0.7}}), []),
    "a straggler": (
        measured({4: {"true-rate": 50.0, "useful-share": 1.0}}),
        [("slow-task", "work/4")],
    ),
    "a straggler with time to spare": (measured({4: {"true-rate": 50.0, "useful-share": 0.5}}), []),
    "a busy host": (
        measured({4: WAITING, 5: WAITING}, {1: {"host-pressure-share": 0.2}, 2: {"host-pressure-share": 0.9}}),
        [("slow-host", "container 2")],
    ),
    "the only host is busy": (
        measured({4: WAITING, 5: WAITING}, {2: {"host-pressure-share": 0.9}}),
        [("slow-host", "container 2")],
    ),
    "a hypervisor": (
        measured({4: WAITING, 5: WAITING}, {2: {"host-steal-share": 0.4}}),
        [("slow-host", "container 2")],
    ),
    "a busy host whose tasks do not wait": (measured(None, {2: {"host-pressure-share": 0.9}}), []),
    "a slow service": (
        measured(all_tasks(**{"useful-share": 0.99, "blocked-share": 0.9})),
        [("slow-external-service", "work")],
    ),
    "one blocked task": (
        measured({2: {"useful-share": 0.99, "blocked-share": 0.9, "true-rate": 20.0}}),
        [("slow-task", "work/2")],
    ),
    "a stuck task": (
        measured({2: {"rate-in": 0.0, "true-rate": 0.0, "useful-share": 0.0, "still-s": 12.0}}),
        [("stuck-task", "work/2")],
    ),
    "a task without input": (measured({2: {"rate-in": 0.0, "queue-bytes": 0.0}}), []),
    "a task that its consumers hold": (measured({2: {"rate-in": 0.0, "obstructed-share": 1.0}}), []),
    "a crash loop": (
        measured({2: {"restarts": 4.0, "rate-in": 0.0}}),
        [("restart-loop", "work/2")],
    ),
    "two restarts": (measured({2: {"restarts": 2.0}}), []),
    "memory": (measured(None, {1: {"memory-share": 0.95}}), [("memory-near-limit", "container 1")]),
    "a lost container": (measured(None, {2: {"silent-s": 5.0}}), [("unreachable-peer", "container 2")]),
    "a slow stream manager": (
        measured(None, {2: {"stmgr-late-share": 0.5}}),
        [("slow-stream-manager", "container 2")],
    ),
    "garbage": (measured({5: {"gc-share": 0.4}}), [("garbage", "work/5")]),
    "pressure without a cause": (
        measured({5: {"pressure-share": 0.9}}),
        [("unexplained-back-pressure", "the topology")],
    ),
    "two causes at once": (
        measured({2: {"restarts": 4.0}, 5: {"gc-share": 0.4}}),
        [("restart-loop", "work/2"), ("garbage", "work/5")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_finds_the_cause_and_no_other(case: str) -> None:
    """A wrong diagnosis would cost a restart that helps nobody."""
    measurements, expected = CASES[case]
    assert names(measurements) == expected


def test_the_evidence_has_the_numbers() -> None:
    """People must be able to check a diagnosis."""
    (slow,) = diagnosed(CASES["a straggler"][0])
    assert slow.evidence == ("work/4 can do 50 tuples/s, 30% of the median of the other tasks",)
    (host,) = diagnosed(CASES["a busy host"][0])
    assert host.evidence == (
        "2 of its tasks wait for a processor, up to 50% of the time",
        "threads of the host wait for a processor 90% of the time",
    )


def action_against(case: str) -> Action:
    measurements = CASES[case][0]
    (diagnosis,) = diagnosed(measurements)
    return next(action for each in RESOLVERS if (action := each.resolve(diagnosis, measurements)) is not None)


@pytest.mark.parametrize(
    ("case", "kind", "command"),
    [
        ("a straggler", ActionKind.RESTART, "heron restart words 2"),
        ("a stuck task", ActionKind.RESTART, "heron restart words 1"),
        ("a busy host", ActionKind.RESTART, "heron restart words 2"),
        ("the only host is busy", ActionKind.ADVISE, ""),
        ("a hot key", ActionKind.REBALANCE, "heron update words --rebalance work"),
        ("a slow service", ActionKind.ADVISE, ""),
        ("a crash loop", ActionKind.ADVISE, ""),
        ("garbage", ActionKind.ADVISE, ""),
        ("memory", ActionKind.ADVISE, ""),
        ("a lost container", ActionKind.ADVISE, ""),
        ("a slow stream manager", ActionKind.ADVISE, ""),
        ("pressure without a cause", ActionKind.ADVISE, ""),
    ],
)
def test_every_cause_has_a_remedy(case: str, kind: ActionKind, command: str) -> None:
    """The command does by hand what the health manager would do."""
    action = action_against(case)
    assert (action.kind, action.command) == (kind, command)
    assert str(diagnosed(CASES[case][0])[0].subject) in action.text or action.container_id or action.component
