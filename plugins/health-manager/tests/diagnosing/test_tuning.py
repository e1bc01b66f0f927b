"""Too few tuples in flight, and batches of few tuples: when they are recognised, and what is done about it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from heron.api.api_constants import TOPOLOGY_MAX_SPOUT_PENDING
from heron.spi.health_values import (
    Action,
    ActionKind,
    ComponentShape,
    Diagnosis,
    Expectation,
    Measurement,
    Measurements,
    Observation,
    Sample,
    Subject,
    Subscription,
    TopologyShape,
)
from heron_health_manager.diagnosing.detectors import DETECTORS
from heron_health_manager.diagnosing.policy_round import run_round
from heron_health_manager.diagnosing.tuning import SmallBatches, TooFewPending, TuningResolver
from heron_health_manager.ds2_policy import Ds2Policy

SOURCE = Subject("source")
SHAPE = TopologyShape(
    "words",
    (
        ComponentShape("source", "spout", {1: 1}, most_pending=100),
        ComponentShape("work", "bolt", {2: 1}, (Subscription("source", "default"),)),
    ),
)


def measured(values: Mapping[str, float], work: Mapping[str, float] | None = None) -> Measurements:
    found = [Measurement(name, SOURCE, value) for name, value in values.items()]
    found += [Measurement(name, Subject("work", 2), value) for name, value in (work or {}).items()]
    return Measurements(SHAPE, found)


def found(measurements: Measurements) -> list[Diagnosis]:
    symptoms = [each for detector in DETECTORS for each in detector.detect(measurements)]
    return [*TooFewPending().diagnose(symptoms, measurements), *SmallBatches().diagnose(symptoms, measurements)]


def resolved(measurements: Measurements) -> Action | None:
    (diagnosis,) = found(measurements)
    return TuningResolver().resolve(diagnosis, measurements)


def test_a_spout_that_waits_for_acks_of_idle_bolts_may_have_more_in_flight() -> None:
    """It could emit twice as much; a quarter is added to that."""
    waiting = measured({"acks-share": 0.5, "source-rate": 400.0, "complete-p99-s": 0.3}, {"useful-share": 0.2})
    (diagnosis,) = found(waiting)
    assert (diagnosis.name, diagnosis.subject) == ("too-few-pending", SOURCE)
    assert diagnosis.evidence == (
        "source waits for acks 50% of the time, with 100 tuples in flight",
        "99% of its trees are complete within 300 ms",
        "the busiest task of a bolt is useful 20% of the time",
    )
    assert resolved(waiting) == Action(
        ActionKind.CONFIGURE,
        "let more tuples of source be in flight: 100 -> 250 for each task",
        "heron update words --runtime-config source:topology.max.spout.pending=250",
        settings={"source": {TOPOLOGY_MAX_SPOUT_PENDING: 250}},
        settings_before={"source": {TOPOLOGY_MAX_SPOUT_PENDING: 100}},
        expected=Expectation("source-rate", SOURCE, at_least=1.1 * 400.0),
    )


@pytest.mark.parametrize(("share", "wanted"), [(0.26, 169), (0.9, 400), (1.0, 400)])
def test_one_step_is_at_most_four_times_as_many(share: float, wanted: int) -> None:
    """A spout that waits nearly always says little about its source."""
    action = resolved(measured({"acks-share": share, "source-rate": 1.0}, {"useful-share": 0.2}))
    assert action is not None
    assert action.settings == {"source": {TOPOLOGY_MAX_SPOUT_PENDING: wanted}}


@pytest.mark.parametrize(
    "work",
    [
        {"useful-share": 0.75},
        {"useful-share": 0.2, "pressure-share": 0.5},
        {"useful-share": 0.2, "recent-restarts": 3.0},
        {"useful-share": 0.2, "still-s": 12.0, "queue-bytes": 100.0},
        {"useful-share": 0.2, "cpu-wait-share": 0.5},
    ],
)
def test_more_in_flight_would_only_wait_longer_where_something_else_is_slow(work: Mapping[str, float]) -> None:
    """A busy, stuck or dying bolt is the cause, and the spout waits because of it."""
    assert not found(measured({"acks-share": 0.5, "source-rate": 400.0}, work))


def test_a_spout_with_room_is_left_alone() -> None:
    """It waits for acks a quarter of the time, and has spare time."""
    assert not found(measured({"acks-share": 0.25, "source-rate": 400.0}, {"useful-share": 0.2}))


def test_nothing_is_changed_without_a_rate() -> None:
    """Without it nobody could tell whether the change has helped."""
    assert resolved(measured({"acks-share": 0.5}, {"useful-share": 0.2})) is None


def test_batches_of_few_tuples_are_advice() -> None:
    """The linger of a running topology cannot change."""
    work = {"useful-share": 0.95, "rows-per-batch": 2.0, "engine-share": 0.6}
    action = resolved(measured({"acks-share": 0.0}, work))
    assert action is not None
    assert action.kind is ActionKind.ADVISE
    assert "--set heron.instance.linger.s=0.05" in action.text


@pytest.mark.parametrize("other", [{"rows-per-batch": 50.0}, {"engine-share": 0.4}, {"useful-share": 0.6}])
def test_large_batches_own_code_and_spare_time_are_no_small_batches(other: Mapping[str, float]) -> None:
    """Only a task that is full of engine work for single tuples gains from a longer linger."""
    work = {"useful-share": 0.95, "rows-per-batch": 2.0, "engine-share": 0.6, **other}
    assert not found(measured({"acks-share": 0.0}, work))


def test_the_policy_raises_the_limit_and_adds_no_tasks() -> None:
    """More tasks of an idle bolt would not let one more tuple into the topology."""
    uses = {1: {"acks": 0.8, "user-cpu": 0.2}, 2: {"user-cpu": 0.5, "input": 0.5}}
    rates = {1: ("emit-count", {"stream": "default"}), 2: ("execute-count", {"stream": "default"})}
    samples = [
        Sample("task-time-s", 1.0, name, task, 1, f"{name}-{task}", {"use": use}, share)
        for task, name in ((1, "source"), (2, "work"))
        for use, share in uses[task].items()
    ]
    samples += [
        Sample(rates[task][0], 1e4, name, task, 1, f"{name}-{task}", rates[task][1], 100.0)
        for task, name in ((1, "source"), (2, "work"))
    ]
    window = [Observation(float(at), SHAPE, tuple(samples)) for at in range(16)]
    ran = run_round(Ds2Policy.open({}), window)
    assert ran is not None
    first, *others = ran.findings
    assert first.diagnosis.name == "too-few-pending"
    assert [(each.diagnosis.name, each.diagnosis.confidence) for each in others] == [("under-provisioned", 0.4)]
