"""Objectives are read exactly, or refused with the place; their plan is the cheapest one, or there is a reason."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heron.errors import ConfigError
from heron_cli.catalog.other_plugins import check_settings
from heron_health_manager.objectives.cheapest_plan import PlanSearch, cheapest_plan
from heron_health_manager.objectives.grammar import Objectives, parse_objectives
from heron_health_manager.objectives.plan_model import PlanModel, Stage


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("throughput >= rate of the source", Objectives(share=1.0)),
        ("throughput >= 80% of the source", Objectives(share=0.8)),
        ("throughput >= 5000 tuples/s", Objectives(share=0.0, tuples_per_s=5000.0)),
        ("latency p99 <= 200 ms", Objectives(latency_s=0.2)),
        ("latency  p99 <=  1.5 s", Objectives(latency_s=1.5)),
        ("backlog drained in <= 10 min", Objectives(drain_s=600.0)),
        ("containers <= 12", Objectives(containers=12)),
        ("tasks <= 40", Objectives(tasks=40)),
        ("cost <= 7.5", Objectives(cost=7.5)),
    ],
)
def test_each_form_is_read(line: str, expected: Objectives) -> None:
    """With its unit."""
    assert parse_objectives([line]) == expected


def test_of_two_about_the_same_the_stricter_one_counts() -> None:
    """A profile may extend another one."""
    lines = ["latency p99 <= 2 s", "latency p99 <= 200 ms", "throughput >= 80% of the source", "containers <= 3"]
    lines += ["throughput >= rate of the source", "throughput >= 10 tuples/s", "containers <= 9"]
    expected = Objectives(share=1.0, tuples_per_s=10.0, latency_s=0.2, containers=3)
    assert parse_objectives(lines) == expected == parse_objectives(lines[::-1])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "it ends at character 1; expected: throughput, latency, backlog, containers, tasks, cost"),
        ("speed >= 3", "'speed' at character 1; allowed: throughput, latency, backlog, containers, tasks, cost"),
        ("latency p90 <= 200 ms", "'p90' at character 9; allowed: p99"),
        ("latency p99 >= 200 ms", "'>=' at character 13; allowed: <="),
        ("latency p99 <= 200", "it ends at character 19; expected: ms, s, min"),
        ("latency p99 <= 200 hours", "'hours' at character 20; allowed: ms, s, min"),
        ("latency p99 <= 200ms", "'200ms' at character 16 is not a number above 0"),
        ("latency p99 <= -1 s", "'-1' at character 16 is not a number above 0"),
        ("latency p99 <= nan s", "'nan' at character 16 is not a number above 0"),
        ("throughput >= 120% of the source", "'120%' at character 15 is above 100%"),
        ("throughput >= rate of a source", "'a' at character 23; allowed: the"),
        ("throughput >= fast", "'fast' at character 15 is not `rate of the source`, a share such as 80%, or a number"),
        ("containers <= 2.5", "'2.5' at character 15 is not a whole number above 0"),
        ("containers <= 0", "'0' at character 15 is not a whole number above 0"),
        ("containers <= 12 please", "'please' at character 18 is too much"),
        ("backlog drained within 3 s", "'within' at character 17; allowed: in"),
    ],
)
def test_another_line_is_refused_with_its_place(line: str, message: str) -> None:
    """Line, value, and what is allowed."""
    with pytest.raises(ValueError, match=r"^objective 2, ") as caught:
        parse_objectives(["containers <= 12", line])
    assert message in str(caught.value)


def stage(name: str, load: float, service_s: float, wanted: float = 0.85, most: int | None = None) -> Stage:
    least = max(1, -int(-load * service_s // wanted))
    return Stage(name, load, service_s, least, most)


def chain(*stages: Stage, **options: object) -> PlanModel:
    names = tuple(each.name for each in stages)
    return PlanModel({each.name: each for each in stages}, (names,), **options)  # type: ignore[arg-type]


def brute_force(model: PlanModel, objectives: Objectives, spread: int) -> float | None:
    """The least cost of all plans with at most `spread` tasks more of each component."""
    bound = model.most_tasks(objectives)
    costs = [
        model.cost(model.tasks(plan))
        for plan in _plans(model, spread)
        if (objectives.latency_s is None or model.latency_s(plan) <= objectives.latency_s)
        and (bound is None or model.tasks(plan) <= bound[0])
    ]
    return min(costs, default=None)


def _plans(model: PlanModel, spread: int) -> list[Mapping[str, int]]:
    ranges = []
    for each in model.stages.values():
        most = each.least + spread if each.most is None else min(each.least + spread, each.most)
        ranges.append(range(each.least, most + 1))
    return [dict(zip(model.stages, tasks, strict=True)) for tasks in itertools.product(*ranges)]


SPREAD = 3
STAGES = st.tuples(st.floats(1.0, 900.0), st.floats(0.0005, 0.01), st.none() | st.integers(10, 12))
SHAPES = (
    (("a",),),
    (("a", "b"),),
    (("a", "b", "c"),),
    (("a", "b"), ("a", "c")),
    (("a", "c"), ("b", "c")),
    (("a", "b", "d"), ("a", "c", "d")),
    (("a", "d"), ("b", "c")),
)


@st.composite
def models(draw: st.DrawFn) -> PlanModel:
    paths = draw(st.sampled_from(SHAPES))
    stages = {}
    for name in sorted({each for path in paths for each in path}):
        load, service_s, most = draw(STAGES)
        stages[name] = stage(name, load, service_s, most=most)
    per_container, others = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    overhead_s = draw(st.none() | st.floats(0.0, 0.02))
    task_cost = draw(st.sampled_from([0.0, 0.1]))
    return PlanModel(stages, paths, others, per_container, 1.0, task_cost, overhead_s)


@st.composite
def cases(draw: st.DrawFn) -> tuple[PlanModel, Objectives]:
    """A model, and a latency between what its least plan has and what larger plans reach."""
    model = draw(models())
    start = {name: each.least for name, each in model.stages.items()}
    limit_s = draw(st.none() | st.floats(0.3, 1.1).map(lambda share: share * model.latency_s(start)))
    containers = draw(st.none() | st.integers(1, 12))
    tasks = draw(st.none() | st.integers(1, 40))
    return model, Objectives(latency_s=limit_s, containers=containers, tasks=tasks)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_no_feasible_plan_is_cheaper(case: tuple[PlanModel, Objectives]) -> None:
    """By comparison with all plans nearby; one that is found meets every objective."""
    model, objectives = case
    found = cheapest_plan(model, objectives)
    judged = objectives if model.overhead_s is not None else replace(objectives, latency_s=None)
    least = brute_force(model, judged, SPREAD)
    if found.plan is None:
        assert found.reason
        assert least is None
        return
    tasks, bound = model.tasks(found.plan), model.most_tasks(objectives)
    assert bound is None or tasks <= bound[0]
    assert judged.latency_s is None or model.latency_s(found.plan) <= judged.latency_s
    assert all(found.plan[name] >= each.least for name, each in model.stages.items())
    assert all(each.most is None or found.plan[name] <= each.most for name, each in model.stages.items())
    assert found.proved
    if least is not None:
        assert model.cost(tasks) <= least


def cost_of(model: PlanModel, found: PlanSearch) -> float:
    return float("inf") if found.plan is None else model.cost(model.tasks(found.plan))


@given(cases(), st.floats(0.3, 1.0), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_a_stricter_objective_never_gives_a_cheaper_plan(
    case: tuple[PlanModel, Objectives], factor: float, fewer: int
) -> None:
    """Latency, containers and tasks, one after the other."""
    model, objectives = case
    cost = cost_of(model, cheapest_plan(model, objectives))
    stricter = []
    if objectives.latency_s is not None:
        stricter.append(replace(objectives, latency_s=objectives.latency_s * factor))
    if objectives.containers is not None:
        stricter.append(replace(objectives, containers=max(1, objectives.containers - fewer)))
    if objectives.tasks is not None:
        stricter.append(replace(objectives, tasks=max(1, objectives.tasks - fewer)))
    assert all(cost_of(model, cheapest_plan(model, each)) >= cost for each in stricter)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_a_contradiction_is_one(case: tuple[PlanModel, Objectives]) -> None:
    """Without the bound on the size there is a plan; with it there is none."""
    model, objectives = case
    found = cheapest_plan(model, objectives)
    assume(found.contradiction)
    assert found.plan is None
    assert cheapest_plan(model, replace(objectives, containers=None, tasks=None)).plan is not None


def test_the_greedy_plan_is_not_always_the_cheapest() -> None:
    """Each step helps the slowest path most, and a component that both paths share would have helped both."""
    shared = Stage("shared", 100.0, 0.0082, 1)
    left, right = Stage("left", 100.0, 0.0083, 1), Stage("right", 100.0, 0.0083, 1)
    model = PlanModel({each.name: each for each in (left, right, shared)}, (("left", "shared"), ("right", "shared")))
    limit_s = model.latency_s({"left": 1, "right": 1, "shared": 2})
    found = cheapest_plan(model, Objectives(latency_s=limit_s))
    assert found == PlanSearch({"left": 1, "right": 1, "shared": 2})


def test_a_contradiction_names_both_sides() -> None:
    """With the numbers of each."""
    model = chain(stage("split", 1000.0, 0.005), stage("count", 20_000.0, 0.0005), per_container=4)
    found = cheapest_plan(model, Objectives(containers=3))
    needs = "the throughput needs 18 tasks in 5 containers, which cost 5"
    assert (found.contradiction, found.reason) == (True, f"{needs}; containers <= 3 permits 12 tasks")


def test_a_latency_below_the_service_time_is_out_of_reach() -> None:
    """No number of tasks makes one tuple faster. It is no contradiction: nobody can meet it."""
    model = chain(stage("split", 100.0, 0.005), overhead_s=0.01)
    found = cheapest_plan(model, Objectives(latency_s=0.02, containers=1))
    assert not found.contradiction
    assert found.reason == "latency p99 <= 20 ms: it is at least 33 ms with any number of tasks"


def test_latency_that_is_not_measured_is_left_out() -> None:
    """It is named elsewhere; the other objectives are met."""
    model = chain(stage("split", 100.0, 0.005), overhead_s=None)
    assert cheapest_plan(model, Objectives(latency_s=1e-6)).plan == {"split": 1}


def test_a_task_that_is_full_has_no_latency() -> None:
    """It may have no more tasks; the time is unbounded, and said to be."""
    model = chain(Stage("split", 200.0, 0.005, 1, 1))
    assert "it is at least unbounded" in cheapest_plan(model, Objectives(latency_s=1.0)).reason


def test_a_cost_bounds_the_tasks() -> None:
    """Containers are paid as a whole, and tasks by number."""
    model = chain(stage("split", 1000.0, 0.005), per_container=4, container_cost=2.0, task_cost=0.25)
    assert model.most_tasks(Objectives(cost=5.0)) == (4, "cost <= 5")
    assert model.most_tasks(Objectives(cost=5.25)) == (5, "cost <= 5.25")
    assert model.most_tasks(Objectives(cost=1.0)) == (0, "cost <= 1")
    free = replace(model, container_cost=0.0, task_cost=0.0)
    assert cheapest_plan(free, Objectives(cost=0.5)).plan == {"split": 6}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("tasks <= 4", "'tasks <= 4' is not a list of text"),
        (["tasks <= 4", 5], "is not a list of text"),
        ({"tasks": 4}, "is not a list of text"),
        (["tasks <= 4", "cost < 1"], "objective 2, 'cost < 1': '<' at character 6; allowed: <="),
    ],
)
def test_objectives_of_a_topology_are_checked_at_its_submission(value: object, why: str) -> None:
    """The command finds the check by its entry point; topologies without objectives have nothing to check."""
    check_settings({"topology.stmgrs": 2}, "topology 'words'")
    check_settings({"topology.objectives": ["tasks <= 4"]}, "topology 'words'")
    with pytest.raises(ConfigError, match=r"^topology 'words': topology\.objectives: .*" + re.escape(why)):
        check_settings({"topology.objectives": value}, "topology 'words'")
