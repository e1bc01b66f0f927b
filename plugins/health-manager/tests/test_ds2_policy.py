"""The policy ``ds2`` on the model of a topology: it reaches the known optimum, stays there, or says why it cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import ConfigError
from heron.spi.health_values import ActionKind, Measurement, Measurements, Observation, Subject, Subscription
from heron_health_manager.diagnosing.policy_round import Round, run_round
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.sizing.provisioning import OVER, UNDER
from heron_testing.topology_model.fluid_model import Model, Part

WANTED, MOST = 0.85, 0.97
POLICY = Ds2Policy.open({})


def after(*names: str) -> tuple[Subscription, ...]:
    return tuple(Subscription(each, "default") for each in names)


def word_count(offered: float, **options: float) -> tuple[Part, ...]:
    """DS2's scenario: lines become twenty words each, and words are counted."""
    return (
        Part("lines", 1e-6, offered=offered),
        Part("split", 0.005, after("lines"), ratio=20.0, **options),  # type: ignore[arg-type]  # all are floats
        Part("count", 0.000_5, after("split"), ratio=0.0),
    )


def window_of(model: Model, now_s: float) -> list[Observation]:
    """What is seen in the look-back window, once per second."""
    return [model.observe(now_s + second) for second in range(4)]


def looked(model: Model, now_s: float = 0.0) -> Round:
    found = run_round(POLICY, window_of(model, now_s))
    assert found is not None
    assert found.failed == ()
    return found


def steps_to_rest(model: Model, most_steps: int = 5) -> int:
    """Carry out the updates that the policy proposes, and return their number."""
    for step in range(most_steps):
        actions = [each.action for each in looked(model, 100.0 * step).findings if each.action is not None]
        updates = [each for each in actions if each.kind is ActionKind.UPDATE]
        if not updates:
            return step
        model.apply(updates[0].parallelism)
    return most_steps


def test_reaches_the_optimum_of_the_word_count_in_one_step() -> None:
    """1,000 lines/s x 5 ms are 5 tasks of full use, 5.9 at 85 %; 20,000 words/s x 0.5 ms are 10, or 11.8."""
    model = Model(word_count(1000.0), {"lines": 1, "split": 1, "count": 1})
    assert steps_to_rest(model) == 1
    assert model.tasks == {"lines": 1, "split": 6, "count": 12}


def test_follows_the_load_down_in_one_step() -> None:
    """Spare tasks cost money, and their update is as safe as any."""
    model = Model(word_count(200.0), {"lines": 1, "split": 6, "count": 12})
    assert steps_to_rest(model) == 1
    assert model.tasks == {"lines": 1, "split": 2, "count": 3}


def test_the_diagnosis_shows_the_numbers() -> None:
    """People compare them with what they know of their topology."""
    model = Model(word_count(1000.0), {"lines": 1, "split": 1, "count": 12})
    (finding,) = [each for each in looked(model).findings if each.diagnosis.name == UNDER]
    assert str(finding.diagnosis.subject) == "split"
    text = "split has to do 1,000 tuples/s with 1 task, 1,000 each: 500% of what it can do"
    assert finding.diagnosis.evidence == (text,)
    assert finding.action is not None
    assert finding.action.command == "heron update model --component-parallelism split:6"
    assert finding.action.expected is not None
    assert finding.action.expected.measurement == "served-share"
    assert finding.action.expected.at_least == pytest.approx(0.9)


def test_a_healthy_topology_has_no_findings() -> None:
    """Noise of 5 % in every metric is natural."""
    model = Model(word_count(1000.0), {"lines": 1, "split": 6, "count": 12}, noise=0.05)
    for seed in range(20):
        model.seed = seed
        assert [each.diagnosis for each in looked(model).findings] == []


def test_a_bound_is_explained_and_the_rest_is_sized_for_what_arrives() -> None:
    """With 3 splitters 600 lines/s are possible: 12,000 words/s need 8 counters at 85 %, not 12."""
    source, split, count = word_count(1000.0)
    bounded = Part("split", split.cost_s, split.inputs, split.ratio, most=3)
    model = Model((source, bounded, count), {"lines": 1, "split": 1, "count": 1})
    assert steps_to_rest(model) == 1
    assert model.tasks == {"lines": 1, "split": 3, "count": 8}
    (finding,) = looked(model, 500.0).findings
    assert finding.diagnosis.evidence[1] == "6 tasks are needed, and at most 3 are possible"
    assert finding.action is not None
    assert finding.action.kind is ActionKind.ADVISE


def test_tasks_with_time_to_spare_are_not_too_few() -> None:
    """Then a backlog grows because the source does not give its tuples: more tasks would not get them."""
    shape = Model(word_count(1000.0), {"lines": 1, "split": 2, "count": 12}).observe(0.0).shape
    for used, confidence in ((0.4, 0.4), (0.95, 0.8)):
        tasks = [Subject("split", task) for task in shape.component("split").tasks]
        measured = [
            Measurement("target-rate", Subject("lines"), 1000.0),
            Measurement("ratio", Subject("lines"), 1.0, "default"),
        ]
        measured += [Measurement("true-rate", each, 200.0) for each in tasks]
        measured += [Measurement("useful-share", each, used) for each in tasks]
        measurements = Measurements(shape, measured)
        symptoms = [each for detector in POLICY.detectors() for each in detector.detect(measurements)]
        found = [each for cause in POLICY.diagnosers() for each in cause.diagnose(symptoms, measurements)]
        assert [(each.name, each.confidence) for each in found] == [(UNDER, confidence)]


@pytest.mark.parametrize(("error", "names"), [(0.0, [OVER]), (0.1, [OVER]), (0.5, [])])
def test_no_task_is_spare_where_a_window_may_lack_a_burst(error: float, names: list[str]) -> None:
    """500 lines/s x 5 ms are 2.5 tasks of full use, and need 3 at 85 %; 10 % more need 4 tasks, half more all 5."""
    shape = Model(word_count(500.0), {"lines": 1, "split": 5, "count": 12}).observe(0.0).shape
    measured = [
        Measurement("target-rate", Subject("lines"), 500.0),
        Measurement("source-error", Subject("lines"), error),
        Measurement("ratio", Subject("lines"), 1.0, "default"),
        *[Measurement("true-rate", Subject("split", task), 200.0) for task in shape.component("split").tasks],
    ]
    found = [each for cause in POLICY.diagnosers() for each in cause.diagnose([], Measurements(shape, measured))]
    assert [each.name for each in found] == names


def test_a_backlog_that_grows_is_part_of_the_target() -> None:
    """The spout emits 1,000/s without any wait, and 6,000 tuples wait at its source: 10/s more drain them in 600 s."""
    model = Model(word_count(1000.0), {"lines": 1, "split": 6, "count": 12}, backlog={"lines": 6000.0})
    found = looked(model)
    target = next(each.value for each in found.measurements.of("target-rate"))
    assert target == pytest.approx(1010.0)


def test_nothing_is_said_while_the_plan_changes_or_was_just_changed() -> None:
    """Rates from before a change say nothing about the plan behind it."""
    model = Model(word_count(1000.0), {"lines": 1, "split": 1, "count": 1})
    before = window_of(model, 0.0)
    model.apply({"split": 6, "count": 12})
    found = run_round(POLICY, [*before, model.observe(15.0)])
    assert found is not None
    assert [each for each in found.findings if each.diagnosis.name in (UNDER, OVER)] == []


def test_a_window_without_observations_gives_no_round() -> None:
    """The topology manager may be away since the health manager began."""
    assert run_round(POLICY, []) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"look_back_s": 1.0}, "period_s 5 s and look_back_s 1 s are not"),
        ({"wanted_utilisation": 0.99}, "wanted 0.99 and most 0.97"),
        ({"period_s": 0.0}, "period_s"),
    ],
)
def test_refuses_options_that_contradict(options: dict[str, object], message: str) -> None:
    """The profile is checked before anything starts."""
    with pytest.raises(ConfigError, match=message):
        Ds2Policy.open(options)


parts = st.lists(
    st.tuples(
        st.floats(1e-5, 2e-3),  # cost
        st.floats(0.05, 1.5),  # ratio
        st.integers(0, 2),  # which earlier component it reads from, counted back
        st.booleans(),  # whether it also reads from the source
        st.integers(1, 12),  # tasks now
    ),
    min_size=1,
    max_size=5,
)


def topology_of(
    bolts: list[tuple[float, float, int, bool, int]], offered: float, overhead: float, most: int | None
) -> Model:
    names, built, tasks = ["source"], [Part("source", 1e-7, offered=offered)], {"source": 1}
    for number, (cost_s, ratio, back, also, now) in enumerate(bolts):
        inputs = {names[max(0, len(names) - 1 - back)], *(["source"] if also else [])}
        name = f"bolt{number}"
        built.append(Part(name, cost_s, after(*sorted(inputs)), ratio, overhead_s=overhead * cost_s, most=most))
        names.append(name)
        tasks[name] = now if most is None else min(now, most)
    return Model(tuple(built), tasks)


@given(parts, st.floats(1.0, 2000.0))
def test_any_topology_of_constant_costs_is_right_after_one_step(
    bolts: list[tuple[float, float, int, bool, int]], offered: float
) -> None:
    """DS2's claim. The parallelism is the known optimum, or one that is used between the two utilisations."""
    model = topology_of(bolts, offered, 0.0, None)
    assert steps_to_rest(model) <= 1
    assert model.shares()["source"] == pytest.approx(1.0)
    for part in model.parts[1:]:
        used, tasks = model.used()[part.name], model.tasks[part.name]
        assert used <= MOST + 1e-6
        assert model.optimum(part, MOST) <= tasks <= model.optimum(part, WANTED)


@given(parts, st.floats(1.0, 2000.0), st.floats(0.0, 0.004), st.none() | st.integers(1, 8))
def test_it_converges_within_two_steps_or_says_why_not(
    bolts: list[tuple[float, float, int, bool, int]], offered: float, overhead: float, most: int | None
) -> None:
    """True rates fall a little with each task, and components may be bounded. No plan exceeds a bound."""
    model = topology_of(bolts, offered, overhead, most)
    steps = steps_to_rest(model)
    assert all(tasks >= 1 and (most is None or tasks <= most) for tasks in model.tasks.values())
    growth = max(1 + overhead * (tasks - 1) for tasks in model.tasks.values())
    if growth <= MOST / WANTED:
        assert steps <= 2
    if model.shares()["source"] < 1 - 1e-9:
        limits = [each.diagnosis.evidence[1:] for each in looked(model, 900.0).findings]
        assert any(limits), "the source is throttled, and nothing says why"


@given(parts, st.floats(1.0, 2000.0), st.integers(0, 1000))
def test_noise_causes_no_changes_back_and_forth(
    bolts: list[tuple[float, float, int, bool, int]], offered: float, seed: int
) -> None:
    """With 3 % of noise, a plan that was made is left alone."""
    model = topology_of(bolts, offered, 0.0, None)
    model.noise, model.seed = 0.03, seed
    assert steps_to_rest(model) <= 2
