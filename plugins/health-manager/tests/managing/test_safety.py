"""What may be done by itself: one action at a time, cool-down, blacklist, oscillation, bounds, and effects."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.spi.health_section import HealthSection
from heron.spi.health_values import (
    Action,
    ActionKind,
    ComponentShape,
    Decision,
    DecisionState,
    Diagnosis,
    Expectation,
    Measurement,
    Measurements,
    Subject,
    TopologyShape,
)
from heron_health_manager.managing.safety import Limits, Verdict, effect_of, limits_of, permission, too_many_containers

LIMITS = Limits()
NOW_S = 1_000_000.0
SHAPE = TopologyShape("words", (ComponentShape("split", "bolt", {1: 1, 2: 1}), ComponentShape("count", "bolt", {3: 1})))
SPLIT = Subject("split")
UNDER = Diagnosis("under-provisioned", SPLIT, 0.8, ("500% of what they can do",))


def update(**parallelism: int) -> Action:
    expected = Expectation("source-rate", Subject("lines"), at_least=900.0)
    return Action(ActionKind.UPDATE, "change the number of tasks", parallelism=parallelism, expected=expected)


def decided(
    age_s: float, state: DecisionState, action: Action | None = None, diagnosis: Diagnosis = UNDER, number: int = 1
) -> Decision:
    at_s = NOW_S - age_s
    action = action or update(split=4)
    return Decision(number, at_s, "ds2", diagnosis, action, state, "because", carried_out_at_s=at_s)


def asked(
    *history: Decision,
    diagnosis: Diagnosis = UNDER,
    action: Action | None = None,
    shape: TopologyShape = SHAPE,
    limits: Limits = LIMITS,
) -> tuple[Verdict, str]:
    found = permission(history, diagnosis, action or update(split=4), shape, NOW_S, limits)
    return found.verdict, found.reason


def test_acts_without_a_history() -> None:
    """The reason of the action is that of its diagnosis."""
    assert asked() == (Verdict.ACT, "under-provisioned of split: 500% of what they can do")


def test_does_one_thing_at_a_time() -> None:
    """A second change would hide the effect of the first."""
    started = decided(5.0, DecisionState.STARTED, number=7)
    assert asked(started) == (Verdict.WAIT, "decision 7 is under way: change the number of tasks")
    assert asked(shape=replace(SHAPE, changing=True)) == (Verdict.WAIT, "an update is under way")


@pytest.mark.parametrize(
    "state",
    [
        DecisionState.EFFECTIVE,
        DecisionState.INEFFECTIVE,
        DecisionState.UNMEASURED,
        DecisionState.FAILED,
    ],
)
def test_cools_down_after_an_action(state: DecisionState) -> None:
    """The figures of the last minute are still mixed with those from before."""
    other = Diagnosis("data-skew", Subject("count", 3), 0.9, ("3 times the mean",))
    recent = decided(20.0, state, update(count=9), diagnosis=other)
    assert asked(recent) == (Verdict.WAIT, f"decision 1 is {state.value}; 40 s of its cool-down left")
    assert asked(decided(61.0, state, update(count=9), diagnosis=other))[0] is Verdict.ACT


def test_a_restart_that_loses_tuples_needs_a_person() -> None:
    """At most once, it loses what is in the container. Only a task that does nothing is restarted all the same."""
    restart = Action(ActionKind.RESTART, "restart container 1", container_id=1)
    slow = Diagnosis("slow-task", Subject("split", 1), 0.85, ("half as fast",))
    loses = replace(SHAPE, loses=True)
    why = "delivery is at most once, so it loses the tuples that are in container 1 then"
    assert asked(diagnosis=slow, action=restart, shape=loses) == (Verdict.ADVISE, why)
    assert asked(diagnosis=slow, action=restart)[0] is Verdict.ACT
    assert asked(diagnosis=replace(slow, name="stuck-task"), action=restart, shape=loses)[0] is Verdict.ACT
    assert asked(shape=loses)[0] is Verdict.ACT  # an update loses nothing


def test_cools_down_from_the_end_of_the_action() -> None:
    """A slow update would use up its own cool-down."""
    slow = replace(decided(125.0, DecisionState.EFFECTIVE), carried_out_at_s=NOW_S - 5.0)
    restart = Action(ActionKind.RESTART, "restart container 1", container_id=1)
    expected = (Verdict.WAIT, "decision 1 is effective; 55 s of its cool-down left")
    assert asked(slow, action=restart) == expected


def test_approved_advice_is_as_young_as_its_action() -> None:
    """It keeps its number, which is smaller than those of decisions that are older than the approval."""
    other = Diagnosis("data-skew", Subject("count", 3), 0.9, ("3 times the mean",))
    old = decided(5000.0, DecisionState.EFFECTIVE, update(count=9), other, number=4)
    approved = decided(10.0, DecisionState.EFFECTIVE, update(count=8), other, number=3)
    assert asked(approved, old) == (Verdict.WAIT, "decision 3 is effective; 50 s of its cool-down left")
    tried = [decided(age_s, DecisionState.INEFFECTIVE, number=number) for number, age_s in ((3, 100.0), (4, 5000.0))]
    assert asked(*tried)[1] == "decision 3 tried this without the expected effect; it is tried again in 1100 s"
    sizes = [
        decided(age_s, DecisionState.EFFECTIVE, update(split=size), number=number)
        for number, age_s, size in ((1, 400.0, 5), (2, 1000.0, 4), (3, 900.0, 2))
    ]
    assert asked(*sizes, action=update(split=3))[1] == (
        "split was changed up and down (4, 2, 5) and would be changed to 3 now"
    )


def test_advice_needs_no_cool_down() -> None:
    """Advice changes nothing."""
    assert asked(decided(1.0, DecisionState.ADVISED))[0] is Verdict.ACT


def test_what_did_not_help_is_not_tried_again_for_a_while_that_doubles() -> None:
    """Dhalion's blacklist; other actions and other subjects stay possible."""
    once = decided(100.0, DecisionState.INEFFECTIVE, number=3)
    verdict, reason = asked(once)
    assert verdict is Verdict.ADVISE
    assert reason == "decision 3 tried this without the expected effect; it is tried again in 500 s"
    assert asked(decided(601.0, DecisionState.INEFFECTIVE))[0] is Verdict.ACT
    twice = [decided(5000.0, DecisionState.INEFFECTIVE), decided(601.0, DecisionState.INEFFECTIVE, number=4)]
    assert asked(*twice) == (
        Verdict.ADVISE,
        "decision 4 tried this without the expected effect; it is tried again in 599 s",
    )
    elsewhere = replace(UNDER, subject=Subject("count"))
    assert asked(once, diagnosis=elsewhere)[0] is Verdict.ADVISE, "the same plan, because of another component"
    assert asked(once, diagnosis=elsewhere, action=update(count=2))[0] is Verdict.ACT
    restart = Action(ActionKind.RESTART, "restart container 1", container_id=1)
    assert asked(once, action=restart)[0] is Verdict.ACT


def test_an_oscillation_ends_in_advice() -> None:
    """Up, down and up again: the load or the measurement is the problem, not the size."""
    sizes = [
        decided(1000.0 - 100 * at, DecisionState.EFFECTIVE, update(split=tasks)) for at, tasks in enumerate([4, 2])
    ]
    verdict, reason = asked(*sizes, action=update(split=5))
    assert (verdict, reason) == (Verdict.ACT, "under-provisioned of split: 500% of what they can do")
    sizes.append(decided(400.0, DecisionState.EFFECTIVE, update(split=5)))
    verdict, reason = asked(*sizes, action=update(split=3))
    assert verdict is Verdict.ADVISE
    assert reason == "split was changed up and down (4, 2, 5) and would be changed to 3 now"
    old = [replace(each, at_s=each.at_s - 2000.0, carried_out_at_s=None) for each in sizes]
    assert asked(*old, action=update(split=3))[0] is Verdict.ACT


def test_a_cause_that_comes_back_ends_in_advice() -> None:
    """Restarting the same container all day helps nobody. A larger number of tasks is another action each time."""
    restart = Action(ActionKind.RESTART, "restart container 1", container_id=1)
    slow = Diagnosis("slow-host", Subject(container_id=1), 0.9, ("its tasks wait",))
    done = [decided(age_s, DecisionState.EFFECTIVE, restart, slow, number) for number, age_s in ((3, 900.0), (5, 90.0))]
    assert asked(*done, diagnosis=slow, action=restart) == (
        Verdict.ADVISE,
        "slow-host of container 1 has come back after decisions 3, 5",
    )
    assert asked(done[1], diagnosis=slow, action=restart)[0] is Verdict.ACT
    elsewhere = replace(slow, subject=Subject(container_id=2))
    assert asked(*done, diagnosis=elsewhere, action=restart)[0] is Verdict.ACT
    grown = [decided(age_s, DecisionState.EFFECTIVE, update(split=size)) for age_s, size in ((900.0, 3), (90.0, 4))]
    assert asked(*grown, action=update(split=5))[0] is Verdict.ACT


def test_doubt_and_size_end_in_advice() -> None:
    """A person sees the proposal, and may approve it."""
    assert asked(diagnosis=replace(UNDER, confidence=0.4)) == (Verdict.ADVISE, "the confidence 40% is below 70%")
    small, spread = Limits(max_containers=2), Action(ActionKind.UPDATE, "spread", containers=3)
    assert asked(action=spread, limits=small) == (
        Verdict.ADVISE,
        "the topology would have 3 containers, and the limit is 2",
    )
    assert asked(action=replace(spread, containers=2), limits=small)[0] is Verdict.ACT
    advice = Action(ActionKind.ADVISE, "group by partial key")
    assert asked(action=advice) == (Verdict.ADVISE, "only a person can do this")


@pytest.mark.parametrize(
    ("most", "before", "after", "why"),
    [
        (None, 2, 99, ""),
        (4, 2, 4, ""),
        (4, 2, 5, "the topology would have 5 containers, and the limit is 4"),
        (4, 8, 6, ""),
    ],
)
def test_containers_are_bounded_unless_there_were_more_already(
    most: int | None, before: int, after: int, why: str
) -> None:
    """A person may have made a topology larger; then it may become smaller by itself."""
    assert too_many_containers(before, after, Limits(max_containers=most)) == why


def test_a_clock_that_was_set_back_blocks_nothing_for_ever() -> None:
    """A decision from the future is as old as its span."""
    assert asked(decided(-86_400.0, DecisionState.EFFECTIVE))[0] is Verdict.ACT
    assert asked(decided(-86_400.0, DecisionState.INEFFECTIVE))[0] is Verdict.ACT
    assert asked(decided(-5.0, DecisionState.EFFECTIVE))[0] is Verdict.WAIT


@pytest.mark.parametrize(
    ("age_s", "rate", "changing", "state"),
    [
        (10.0, 950.0, False, DecisionState.EFFECTIVE),
        (10.0, 500.0, False, DecisionState.STARTED),
        (10.0, None, False, DecisionState.STARTED),
        (121.0, 500.0, False, DecisionState.INEFFECTIVE),
        (121.0, None, False, DecisionState.UNMEASURED),
        (121.0, 950.0, True, DecisionState.STARTED),
    ],
)
def test_an_effect_is_seen_awaited_or_missed(
    age_s: float, rate: float | None, changing: bool, state: DecisionState
) -> None:
    """Rates of a plan in change are of neither plan."""
    measured = [] if rate is None else [Measurement("source-rate", Subject("lines"), rate)]
    measurements = Measurements(replace(SHAPE, changing=changing), measured)
    assert effect_of(decided(age_s, DecisionState.STARTED), measurements, NOW_S, LIMITS) is state


def test_an_effect_is_seen_after_the_action_only() -> None:
    """While another process carries it out, the figures are of the time before."""
    measurements = Measurements(SHAPE, [Measurement("source-rate", Subject("lines"), 950.0)])
    for age_s, state in ((10.0, DecisionState.STARTED), (121.0, DecisionState.EFFECTIVE)):
        begun = replace(decided(age_s, DecisionState.STARTED), carried_out_at_s=None)
        assert effect_of(begun, measurements, NOW_S, LIMITS) is state


def test_an_action_without_an_expectation_counts_after_its_time() -> None:
    """Nothing can show that it failed."""
    action = Action(ActionKind.RESTART, "restart container 1", container_id=1)
    measurements = Measurements(SHAPE)
    assert effect_of(decided(10.0, DecisionState.STARTED, action), measurements, NOW_S, LIMITS) is DecisionState.STARTED
    assert effect_of(decided(121.0, DecisionState.STARTED, action), measurements, NOW_S, LIMITS) is (
        DecisionState.EFFECTIVE
    )


ages = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(ages, st.sampled_from(DecisionState), st.integers(1, 9)), max_size=12), st.integers(1, 9))
def test_never_acts_while_something_is_under_way_or_cools_down(
    taken: list[tuple[float, DecisionState, int]], wanted: int
) -> None:
    """For any history, in any order, with any clock."""
    history = [decided(age_s, state, update(split=tasks)) for age_s, state, tasks in taken]
    verdict, reason = asked(*history, action=update(split=wanted))
    assert reason
    if any(state is DecisionState.STARTED for _, state, _ in taken):
        assert verdict is Verdict.WAIT
    carried_out = [age_s for age_s, state, _ in taken if state not in (DecisionState.ADVISED, DecisionState.STARTED)]
    if carried_out and 0 <= carried_out[-1] < LIMITS.cool_down_s:
        assert verdict is Verdict.WAIT


def test_the_limits_of_safety_are_those_of_the_section() -> None:
    """Each key of the section arrives."""
    section = HealthSection(cool_down_s=1.0, effect_s=2.0, blacklist_s=3.0, least_confidence=0.4, max_containers=5)
    limits = limits_of(section)
    assert (limits.cool_down_s, limits.effect_s, limits.blacklist_s, limits.least_confidence) == (1.0, 2.0, 3.0, 0.4)
    assert limits.max_containers == 5
