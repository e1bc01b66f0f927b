"""The policy ``slo`` on the model of a topology: the cheapest plan for its objectives, in one step, or the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.errors import ConfigError
from heron.spi.health_values import ActionKind, Expectation, Observation, Sample, Subject, Subscription
from heron_health_manager.diagnosing.policy_round import Finding, Round, run_round
from heron_health_manager.objectives.slo_findings import CONTRADICT, MISSED, OUT_OF_REACH, TOO_EXPENSIVE, UNMEASURED
from heron_health_manager.slo_policy import SloPolicy
from heron_testing.topology_model.fluid_model import Model, Part

NAMES = (MISSED, TOO_EXPENSIVE, CONTRADICT, OUT_OF_REACH, UNMEASURED)


def after(*names: str) -> tuple[Subscription, ...]:
    return tuple(Subscription(each, "default") for each in names)


def word_count(tasks: dict[str, int] | None = None, **backlog: float) -> Model:
    """DS2's scenario, 1,000 lines/s: the optimum is 6 tasks of `split` and 12 of `count`."""
    parts = (
        Part("lines", 1e-6, offered=1000.0),
        Part("split", 0.005, after("lines"), ratio=20.0),
        Part("count", 0.000_5, after("split"), ratio=0.0),
    )
    return Model(parts, tasks or {"lines": 1, "split": 1, "count": 1}, backlog=backlog)


def round_of(model: Model, *objectives: str, p99_s: float | None = None, **options: object) -> Round:
    policy = SloPolicy.open({"objectives": list(objectives), **options})
    window: list[Observation] = []
    for second in range(4):
        seen = model.observe(float(second))
        latency = Sample("complete-latency", 0.0, "lines", 1, 1, "lines-1", p99=p99_s)
        window.append(replace(seen, samples=(*seen.samples, latency)))
    found = run_round(policy, window)
    assert found is not None
    assert found.failed == ()
    return found


def findings(found: Round) -> dict[str, Finding]:
    return {each.diagnosis.name: each for each in found.findings if each.diagnosis.name in NAMES}


def plan_of(finding: Finding) -> dict[str, int]:
    assert finding.action is not None
    assert finding.action.kind is ActionKind.UPDATE
    return dict(finding.action.parallelism)


def test_the_rate_of_the_source_is_reached_in_one_step() -> None:
    """Without any objective, too: the plan is that of `ds2`."""
    for objectives in ((), ("throughput >= rate of the source",)):
        found = findings(round_of(word_count(), *objectives))
        assert set(found) == {MISSED}
        assert plan_of(found[MISSED]) == {"split": 6, "count": 12}
    model = word_count()
    model.apply({"split": 6, "count": 12})
    assert findings(round_of(model)) == {}


def test_a_part_of_the_source_needs_fewer_tasks() -> None:
    """A share, or a number of tuples per second."""
    assert plan_of(findings(round_of(word_count(), "throughput >= 50% of the source"))[MISSED]) == {
        "split": 3,
        "count": 6,
    }
    assert plan_of(findings(round_of(word_count(), "throughput >= 100 tuples/s"))[MISSED]) == {"count": 2}


def test_a_plan_that_costs_more_than_it_needs_to_gets_smaller() -> None:
    """The objectives hold with fewer containers."""
    found = findings(round_of(word_count({"lines": 1, "split": 12, "count": 30}), container_cost=3.0))
    assert set(found) == {TOO_EXPENSIVE}
    assert plan_of(found[TOO_EXPENSIVE]) == {"split": 6, "count": 12}
    (evidence,) = found[TOO_EXPENSIVE].diagnosis.evidence
    assert evidence == "43 tasks cost 15; 19 tasks meet the objectives too, and cost 6"
    action = found[TOO_EXPENSIVE].action
    assert action is not None
    assert action.command.endswith("--container-number 2")


def test_a_lower_latency_costs_more_tasks() -> None:
    """Each of them where it helps most."""
    model = word_count({"lines": 1, "split": 6, "count": 12})
    found = findings(round_of(model, "latency p99 <= 100 ms", p99_s=0.180))
    assert plan_of(found[MISSED]) == {"split": 10}
    shown = "latency p99 is 180 ms on lines -> split -> count; at most 100 ms is wanted"
    assert found[MISSED].diagnosis.evidence == (shown,)
    model.apply({"split": 10})
    for noisy_s in (0.088, 0.094, 0.0999):
        assert findings(round_of(model, "latency p99 <= 100 ms", p99_s=noisy_s)) == {}
    assert MISSED in findings(round_of(model, "latency p99 <= 100 ms", p99_s=0.101))


def test_an_objective_of_containers_counts_those_that_run() -> None:
    """A plan with room for all tasks in fewer containers misses it, and the tasks stay as they are."""
    model = word_count({"lines": 1, "split": 6, "count": 12})
    window = [spread(model.observe(float(second)), 6) for second in range(4)]
    for objective, evidence in (
        ("containers <= 3", "there are 6 containers; at most 3 are wanted"),
        ("cost <= 3.5", "19 tasks in 6 containers cost 6; the limit is 3.5"),
    ):
        found = run_round(SloPolicy.open({"objectives": [objective]}), window)
        assert found is not None
        missed = findings(found)[MISSED]
        assert missed.diagnosis.evidence == (evidence,)
        assert missed.action is not None
        assert (missed.action.kind, missed.action.parallelism) == (ActionKind.UPDATE, {})
        assert (missed.action.containers, missed.action.containers_before) == (2, 6)
        assert missed.action.text == "change the number of containers: 6 -> 2; the cost is 2"
        assert missed.action.command == "heron update model --container-number 2"
    met = run_round(SloPolicy.open({"objectives": ["containers <= 6", "cost <= 6"]}), window)
    assert met is not None
    assert findings(met) == {}


def spread(seen: Observation, containers: int) -> Observation:
    """The first container has ten tasks, and the others have the rest."""
    components = [
        replace(each, tasks={task: 1 if task <= 10 else 2 + task % (containers - 1) for task in each.tasks})
        for each in seen.shape.components
    ]
    return replace(seen, shape=replace(seen.shape, components=tuple(components)))


def test_the_effect_to_expect_is_that_of_the_objective_that_is_missed() -> None:
    """An update for latency has an effect only if the latency falls; the sources are served before it, too."""

    def expected(model: Model, *objectives: str) -> Expectation | None:
        action = findings(round_of(model, *objectives, p99_s=0.18))[MISSED].action
        assert action is not None
        return action.expected

    sized, lines = word_count({"lines": 1, "split": 6, "count": 12}), Subject("lines")
    assert expected(sized, "latency p99 <= 100 ms") == Expectation("complete-p99-s", lines, at_most=0.1)
    assert expected(word_count(), "latency p99 <= 100 ms") == Expectation("served-share", lines, at_least=0.9)
    few = expected(word_count(), "throughput >= 500 tuples/s")
    assert few is not None
    assert few.at_least == pytest.approx(0.45)


def test_objectives_that_contradict_are_named_and_change_nothing() -> None:
    """A person decides which of them matters."""
    found = findings(round_of(word_count({"lines": 1, "split": 2, "count": 2}), "tasks <= 12"))
    assert set(found) == {CONTRADICT}
    (evidence,) = found[CONTRADICT].diagnosis.evidence
    assert "the throughput needs 19 tasks" in evidence
    assert evidence.endswith("tasks <= 12 permits 12 tasks")
    action = found[CONTRADICT].action
    assert action is not None
    assert action.kind is ActionKind.ADVISE


def test_an_objective_that_nobody_can_meet_is_named() -> None:
    """Because of key groups, or because one tuple takes longer."""
    model = word_count()
    model.parts = (*model.parts[:2], replace(model.parts[2], most=4))
    found = findings(round_of(model))
    assert found[OUT_OF_REACH].diagnosis.evidence == (
        "throughput: count: 12 tasks are needed, and at most 4 are possible",
    )
    sized = word_count({"lines": 1, "split": 6, "count": 12})
    found = findings(round_of(sized, "latency p99 <= 10 ms", p99_s=0.18))
    assert "it is at least" in found[OUT_OF_REACH].diagnosis.evidence[0]


def test_what_is_not_measured_is_named_and_the_rest_is_met() -> None:
    """No backlog is reported, and no acks measure a latency."""
    objectives = ("latency p99 <= 100 ms", "backlog drained in <= 1 min")
    found = findings(round_of(word_count(), *objectives))
    assert set(found) == {MISSED, UNMEASURED}
    assert [each.partition(":")[0] for each in found[UNMEASURED].diagnosis.evidence] == [
        "the backlog of lines",
        "latency",
    ]
    assert plan_of(found[MISSED]) == {"split": 6, "count": 12}


def test_a_backlog_is_drained_in_the_given_time() -> None:
    """60,000 lines in a minute are another 1,000 lines/s; a longer time needs fewer tasks."""
    model = word_count({"lines": 1, "split": 6, "count": 12}, lines=60_000.0)
    assert plan_of(findings(round_of(model, "backlog drained in <= 1 min"))[MISSED]) == {"split": 12, "count": 24}
    assert plan_of(findings(round_of(model, "backlog drained in <= 3 min"))[MISSED]) == {"split": 8, "count": 16}
    assert findings(round_of(model)) == {}


def test_a_topology_without_metrics_is_not_judged() -> None:
    """It has just started."""
    policy = SloPolicy.open({"objectives": ["containers <= 1"]})
    silent = [replace(word_count().observe(0.0), samples=())]
    found = run_round(policy, silent)
    assert found is not None
    assert found.findings == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objectives": ["latency p90 <= 1 s"]}, "'p90' at character 9; allowed: p99"),
        ({"objectives": "containers <= 1"}, "objectives"),
        ({"container_cost": -1.0}, "container_cost"),
        ({"wanted_utilisation": 0.99, "most_utilisation": 0.9}, "utilisation"),
        ({"objective": []}, "objective"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    """With the place."""
    with pytest.raises(ConfigError, match="health") as caught:
        SloPolicy.open(options)
    assert message in str(caught.value)


def shaped(model: Model, *objectives: str) -> list[Observation]:
    """A window of a topology with objectives of its own."""
    seen = [model.observe(float(second)) for second in range(4)]
    return [replace(each, shape=replace(each.shape, objectives=objectives)) for each in seen]


def test_objectives_of_the_topology_count_as_those_of_the_profile() -> None:
    """Of two about the same, the stricter one counts, wherever it stands."""
    for of_policy, of_topology, permitted in (
        (["tasks <= 30"], ("tasks <= 10",), 10),
        (["tasks <= 10"], ("tasks <= 30",), 10),
        ([], ("tasks <= 8",), 8),
    ):
        found = run_round(SloPolicy.open({"objectives": of_policy}), shaped(word_count(), *of_topology))
        assert found is not None
        (evidence,) = findings(found)[CONTRADICT].diagnosis.evidence
        assert evidence.endswith(f"permits {permitted} tasks")


def test_a_backlog_is_drained_as_the_topology_asks() -> None:
    """6,000 lines wait; in 6 s they are 1,000 lines/s more."""
    found = run_round(SloPolicy.open({}), shaped(word_count(lines=6000.0), "backlog drained in <= 6 s"))
    assert found is not None
    assert sum(each.value for each in found.measurements.of("target-rate")) > 1000.0


def test_a_wrong_objective_of_the_topology_is_named_and_changes_nothing() -> None:
    """The health manager need not be installed where the topology is submitted, so it may be wrong."""
    found = run_round(SloPolicy.open({}), shaped(word_count(), "latency p90 <= 1 s"))
    assert found is not None
    assert findings(found) == {}
    assert any("topology.objectives: objective 1, 'latency p90 <= 1 s': 'p90'" in each for each in found.failed)
