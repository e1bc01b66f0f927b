"""The loop of the health manager on the model of a topology: a day of load, no effect, advice, and deaths."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.spi.health_values import (
    Action,
    ActionKind,
    Decision,
    DecisionState,
    Diagnosis,
    Expectation,
    Measurement,
    Measurements,
    Subject,
    Subscription,
)
from heron.state_nodes.health_records import HealthRecords
from heron_health_manager.diagnosing.policy_round import Round, run_round
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.managing.pilot import Mode, Step, next_step
from heron_health_manager.managing.safety import Limits
from heron_testing.topology_model.fluid_model import Model, Part

POLICY = Ds2Policy.open({})
LIMITS = Limits()
START_S = 1_700_000_000.0


def word_count(offered: float, split: int = 1, count: int = 1) -> Model:
    lines, words = Subscription("lines", "default"), Subscription("split", "default")
    parts = (
        Part("lines", 1e-6, offered=offered),
        Part("split", 0.005, (lines,), ratio=20.0),
        Part("count", 0.0005, (words,), ratio=0.0),
    )
    return Model(parts, {"lines": 1, "split": split, "count": count})


def looked(model: Model, now_s: float) -> Round:
    found = run_round(POLICY, [model.observe(now_s + second) for second in range(3)])
    assert found is not None
    return found


def with_records(history: tuple[Decision, ...], *changed: Decision) -> tuple[Decision, ...]:
    return HealthRecords("model-1", decisions=history).with_decisions(*changed).decisions


class Loop:
    """A health manager without processes: it records, then carries out."""

    def __init__(self, model: Model, mode: Mode = Mode.ACT, limits: Limits = LIMITS) -> None:
        self.model, self.mode, self.limits = model, mode, limits
        self.history: tuple[Decision, ...] = ()
        self.carried_out: list[tuple[float, dict[str, int]]] = []

    def round(self, now_s: float, *, dies_before_action: bool = False) -> Step:
        step = next_step(self.history, looked(self.model, now_s), "ds2", self.mode, START_S + now_s, self.limits)
        self._record(*step.records)
        if step.action is not None and step.action.kind is ActionKind.UPDATE and not dies_before_action:
            self.model.apply(step.action.parallelism)
            done = replace(step.records[-1], carried_out_at_s=START_S + now_s)
            self._record(done)
            self.carried_out.append((now_s, dict(step.action.parallelism)))
        return step

    def _record(self, *changed: Decision) -> None:
        self.history = with_records(self.history, *changed)


def test_a_record_is_written_before_the_action_and_its_effect_after_it() -> None:
    """The word count becomes large enough, and the decision says why and that it helped."""
    loop = Loop(word_count(1000.0))
    step = loop.round(0.0)
    (begun,) = step.records
    assert (begun.state, begun.number, begun.policy) == (DecisionState.STARTED, 1, "ds2")
    assert begun.action.before == {"split": 1, "count": 1}
    assert begun.reason.startswith("under-provisioned of ")
    assert loop.model.tasks == {"lines": 1, "split": 6, "count": 12}
    loop.round(10.0)
    assert [each.state for each in loop.history] == [DecisionState.EFFECTIVE]
    assert loop.round(100.0) == Step()


def test_advise_changes_nothing_and_says_each_thing_once() -> None:
    """The records of a night must not be one line each minute."""
    loop = Loop(word_count(1000.0), Mode.ADVISE)
    for minute in range(20):
        assert loop.round(60.0 * minute).action is None
    assert loop.model.tasks == {"lines": 1, "split": 1, "count": 1}
    assert [(each.state, str(each.diagnosis.subject)) for each in loop.history] == [
        (DecisionState.ADVISED, "count"),
        (DecisionState.ADVISED, "split"),
    ]


class Unmoved(Model):
    """A topology whose plan can change without any effect on what its sources emit."""

    def shares(self) -> dict[str, float]:
        return {"lines": 0.1}


def test_an_action_without_effect_is_undone_and_not_tried_again_for_a_while() -> None:
    """Something else holds the source. The plan is that of before, and a person is asked."""
    model = word_count(1000.0)
    loop = Loop(Unmoved(model.parts, model.tasks))
    loop.round(0.0)
    assert loop.model.tasks["split"] == 6
    assert loop.round(60.0) == Step()
    loop.round(121.0)
    assert loop.model.tasks == {"lines": 1, "split": 1, "count": 1}
    assert [each.state for each in loop.history] == [DecisionState.INEFFECTIVE, DecisionState.STARTED]
    assert loop.history[1].reason == "undoes decision 1, whose effect did not come within 120 s"
    loop.round(300.0)  # an undo is over after its time: it expects nothing
    for at_s in (400.0, 500.0, 599.0):
        assert loop.round(at_s).action is None
    advised = [each for each in loop.history if each.state is DecisionState.ADVISED]
    assert any("tried this without the expected effect" in each.reason for each in advised)


def test_while_it_only_advises_an_action_without_effect_is_not_undone_by_itself() -> None:
    """A person has approved it."""
    model = word_count(1000.0)
    loop = Loop(Unmoved(model.parts, model.tasks))
    loop.round(0.0)
    loop.mode = Mode.ADVISE
    assert loop.round(121.0).action is None
    assert [each.state for each in loop.history] == [DecisionState.INEFFECTIVE, DecisionState.ADVISED]
    assert (loop.history[1].undoes, loop.history[1].action.parallelism) == (1, {"split": 1, "count": 1})
    assert loop.model.tasks["split"] == 6


def test_while_it_is_paused_an_action_without_effect_stays_under_way() -> None:
    """It is undone as soon as it goes on, unless its effect has come meanwhile."""
    model = word_count(1000.0)
    loop = Loop(Unmoved(model.parts, model.tasks))
    loop.round(0.0)
    loop.mode = Mode.PAUSED
    assert loop.round(121.0) == Step()
    loop.mode = Mode.ACT
    loop.round(300.0)
    assert [each.state for each in loop.history] == [DecisionState.INEFFECTIVE, DecisionState.STARTED]
    assert loop.model.tasks["split"] == 1


def test_only_the_policy_that_decided_judges_the_effect() -> None:
    """Another policy may not measure what is expected. It closes the decision only if nobody else does."""
    loop = Loop(word_count(1000.0))
    loop.round(0.0)
    found = looked(loop.model, 130.0)
    missing = replace(found, measurements=Measurements(found.measurements.shape))
    assert next_step(loop.history, missing, "other", Mode.ACT, START_S + 130.0, LIMITS) == Step()
    late = next_step(loop.history, missing, "other", Mode.ACT, START_S + 250.0, LIMITS)
    (closed,) = late.records
    assert (closed.state, late.action) == (DecisionState.UNMEASURED, None)
    assert closed.reason == f"{loop.history[0].reason}; its effect could not be measured"


@pytest.mark.matrix
def test_a_day_with_a_curve_of_load_is_followed_with_few_changes() -> None:
    """From 100 to 1,500 lines/s and back, with 2 % of noise, seen every five minutes."""
    loop = Loop(word_count(800.0, 5, 10), limits=Limits(cool_down_s=60.0, effect_s=600.0))
    loop.model.noise = 0.02
    source, split, count = loop.model.parts
    used = needed = worst = 0.0
    worst = 1.0
    for at_s in range(0, 86_400, 300):
        offered = 800.0 + 700.0 * math.sin(2 * math.pi * at_s / 86_400)
        loop.model.parts = (replace(source, offered=offered), split, count)
        worst = min(worst, loop.model.shares()["lines"])
        loop.round(float(at_s))
        used += sum(loop.model.tasks.values()) - 1
        needed += offered * 0.005 / 0.85 + offered * 20 * 0.0005 / 0.85
    assert worst > 0.9, "the load grows by less than 10 % between two rounds"
    assert used / needed < 1.25, "tasks that idle are taken back"
    assert len(loop.carried_out) < 80
    times = [at_s for at_s, _ in loop.carried_out]
    assert all(later - earlier >= 60.0 for earlier, later in itertools.pairwise(times))
    assert {each.state for each in loop.history} <= {DecisionState.EFFECTIVE, DecisionState.STARTED}


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.floats(50.0, 3000.0))
def test_a_death_between_record_and_action_repeats_nothing(deaths: list[bool], offered: float) -> None:
    """The health manager knows only the records: what was begun is judged, and never begun again at once."""
    loop = Loop(word_count(offered))
    for number, dies in enumerate(deaths):
        before = [each for each in loop.history if each.state is DecisionState.STARTED]
        step = loop.round(30.0 * number, dies_before_action=dies)
        under_way = [each for each in loop.history if each.state is DecisionState.STARTED]
        assert len(under_way) <= 1
        if before and step.action is not None:
            assert step.action.parallelism == before[0].action.before, "only an undo may follow at once"
    numbers = [each.number for each in loop.history]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("mode", Mode)
def test_a_healthy_topology_has_no_records(mode: Mode) -> None:
    """Nothing is written while nothing is found."""
    loop = Loop(word_count(1000.0, 6, 12), mode)
    assert [loop.round(60.0 * minute) for minute in range(5)] == [Step()] * 5


@pytest.mark.parametrize(
    ("action", "undone"),
    [
        (
            Action(ActionKind.UPDATE, "spread", containers=3, containers_before=2),
            Action(ActionKind.UPDATE, "put the plan back: containers 3 -> 2", containers=2, containers_before=3),
        ),
        (
            Action(
                ActionKind.CONFIGURE,
                "raise",
                settings={"lines": {"topology.max.spout.pending": 2500}},
                settings_before={"lines": {"topology.max.spout.pending": 1000}},
            ),
            Action(
                ActionKind.CONFIGURE,
                "put the configuration back: topology.max.spout.pending of lines 2,500 -> 1,000",
                settings={"lines": {"topology.max.spout.pending": 1000}},
                settings_before={"lines": {"topology.max.spout.pending": 2500}},
            ),
        ),
        (Action(ActionKind.RESTART, "restart", container_id=1), None),
    ],
)
def test_whatever_has_a_former_value_is_undone(action: Action, undone: Action | None) -> None:
    """The number of containers and the configuration, as the number of tasks; a restart is over."""
    cause = Diagnosis("cause", Subject("lines"), 0.8, ("shown",))
    action = replace(action, expected=Expectation("source-rate", Subject("lines"), at_least=100.0))
    begun = Decision(1, START_S, "ds2", cause, action, DecisionState.STARTED, "because")
    still = Measurement("source-rate", Subject("lines"), 10.0)
    quiet = Round(Measurements(looked(word_count(1.0), 0.0).measurements.shape, (still,)), (), (), ())
    step = next_step((begun,), quiet, "ds2", Mode.ACT, START_S + LIMITS.effect_s, LIMITS)
    assert step.records[0] == replace(begun, state=DecisionState.INEFFECTIVE)
    assert step.action == undone
    if undone is not None:
        again = next_step(
            with_records((begun,), *step.records), quiet, "ds2", Mode.ACT, START_S + 3 * LIMITS.effect_s, LIMITS
        )
        assert again.action is None, "what undoes is not undone"
