"""Which tasks are culprits, for how long, and which spouts they throttle."""

from __future__ import annotations

import random

import pytest

from heron.api.definition import ComponentDefinition
from heron.planner.physical_plan import PlanIndex
from heron.stmgr.back_pressure import BackPressure, Culprits, PressureChanged, Reporter, SpoutChange
from heron_testing.builders import bolt, plan_index, spout, stmgr_locations, stream, subscription, topology

HERE, THERE = Reporter(1, 0), Reporter(2, 0)

# lines (1 here, 2 there) -> split (3) -> count (4), clicks (5 here) -> store (6); both -> all (7)
TASKS = {1: ("lines", 1), 2: ("lines", 2), 3: ("split", 1), 4: ("count", 2), 5: ("clicks", 1), 6: ("store", 2)}


def index_of(tasks: dict[int, tuple[str, int]] | None = None) -> PlanIndex:
    tasks = TASKS if tasks is None else tasks

    def fed_by(name: str, *sources: str) -> ComponentDefinition:
        return bolt(name, *(subscription(source) for source in sources), outputs=(stream("v"),))

    definition = topology(
        spout("lines", stream("v"), parallelism=2),
        spout("clicks", stream("v")),
        fed_by("split", "lines"),
        fed_by("count", "split"),
        fed_by("store", "clicks"),
        fed_by("all", "count", "store"),
    )
    ids: dict[str, list[int]] = {}
    for task_id, (name, _) in tasks.items():
        ids.setdefault(name, []).append(task_id)
    containers = {task_id: container for task_id, (_, container) in tasks.items()}
    return plan_index(definition, ids, containers=containers, stmgrs=stmgr_locations(1, 2))


def pressure(*, all_spouts: bool = False, throttles: bool = True) -> BackPressure:
    made = BackPressure(HERE, all_spouts=all_spouts)
    made.set_plan(index_of(), throttles=throttles)
    return made


def test_only_spouts_that_feed_the_culprit_are_throttled() -> None:
    """They may feed it through bolts. Other spouts, and spouts of other containers, are not affected."""
    made = pressure()
    made.report_own(4, on=True)
    assert made.take_changes() == (SpoutChange(1, 4, True),)
    made.report(6, THERE, on=True)
    assert made.culprits_of(5) == (), "not announced yet"
    assert made.take_changes() == (SpoutChange(5, 6, True),)
    assert (made.culprits_of(1), made.culprits_of(5)) == ((4,), (6,))


def test_all_spouts_is_an_option() -> None:
    """Heron's own mode, for topologies whose spouts depend on each other outside the engine."""
    made = pressure(all_spouts=True)
    made.report_own(4, on=True)
    assert made.take_changes() == (SpoutChange(1, 4, True), SpoutChange(5, 4, True))


def test_no_spout_is_throttled_where_tuples_are_dropped_instead() -> None:
    """The culprit is still reported."""
    made = pressure(throttles=False)
    made.report_own(4, on=True)
    assert made.take_changes() == ()
    assert made.own_culprits() == (4,)


def test_a_task_is_a_culprit_as_long_as_any_stream_manager_reports_it() -> None:
    """Two stream managers may have a full outlet for it."""
    made = pressure()
    made.report_own(4, on=True)
    made.report(4, THERE, on=True)
    made.report_own(4, on=False)
    assert made.take_changes() == (SpoutChange(1, 4, True),)
    made.report(4, THERE, on=False)
    assert made.take_changes() == (SpoutChange(1, 4, False),)
    assert made.take_changes() == ()


def test_two_culprits_are_lifted_one_by_one() -> None:
    """A spout continues when no task that it feeds is a culprit."""
    made = pressure()
    made.report_own(3, on=True)
    made.report_own(4, on=True)
    assert made.take_changes() == (SpoutChange(1, 3, True), SpoutChange(1, 4, True))
    made.report_own(3, on=False)
    assert made.take_changes() == (SpoutChange(1, 3, False),)
    assert made.culprits_of(1) == (4,)


def test_a_culprit_that_comes_and_goes_between_two_calls_is_not_announced() -> None:
    """A spout receives only lasting states."""
    made = pressure()
    made.report_own(4, on=True)
    made.report_own(4, on=False)
    assert made.take_changes() == ()


def test_the_reports_of_an_incarnation_end_with_it() -> None:
    """It cannot withdraw them any more; its successor reports its present culprits again."""
    made = pressure()
    made.report(4, THERE, on=True)
    made.report(6, THERE, on=True)
    made.take_changes()
    made.report(4, Reporter(2, 1), on=True)
    made.forget(THERE)
    assert made.take_changes() == (SpoutChange(5, 6, False),)
    assert made.culprits_of(1) == (4,)


def test_a_culprit_that_leaves_the_plan_is_dropped() -> None:
    """No stream manager would ever withdraw it."""
    made = pressure()
    made.report_own(4, on=True)
    made.take_changes()
    made.set_plan(index_of({task: place for task, place in TASKS.items() if task != 4}), throttles=True)
    assert made.take_changes() == (SpoutChange(1, 4, False),)
    assert made.own_culprits() == ()


def test_a_report_before_the_first_plan_counts_after_the_plan() -> None:
    """A restarted stream manager receives reports of its peers before it has a plan."""
    made = BackPressure(HERE)
    made.report(4, THERE, on=True)
    assert made.take_changes() == ()
    made.set_plan(index_of(), throttles=True)
    assert made.take_changes() == (SpoutChange(1, 4, True),)


@pytest.mark.parametrize("seed", range(20))
def test_no_spout_is_throttled_after_all_reports_have_ended(seed: int) -> None:
    """Random reports, repeats, restarts and plans: the announced state always matches the reports."""
    draw = random.Random(seed)
    made = pressure()
    told: dict[int, set[int]] = {1: set(), 5: set()}
    reporters = [HERE, THERE, Reporter(2, 1), Reporter(3, 0)]

    def look() -> None:
        for change in made.take_changes():
            assert (change.culprit in told[change.task_id]) != change.on, "announced twice"
            (told[change.task_id].add if change.on else told[change.task_id].remove)(change.culprit)
        assert {task_id: tuple(sorted(each)) for task_id, each in told.items()} == {
            task_id: tuple(sorted(made.culprits_of(task_id))) for task_id in told
        }

    for _ in range(200):
        step = draw.randrange(10)
        if step < 7:
            made.report(draw.choice([3, 4, 6]), draw.choice(reporters), on=draw.random() < 0.6)
        elif step < 9:
            made.forget(draw.choice(reporters))
        else:
            made.set_plan(index_of(), throttles=True)
        if draw.random() < 0.5:
            look()
    for reporter in reporters:
        made.forget(reporter)
    look()
    assert told == {1: set(), 5: set()}


def test_changes_name_new_and_former_culprits() -> None:
    """Each change is reported once, with its duration at its end."""
    culprits = Culprits()
    assert culprits.update(frozenset({2, 1}), 10.0) == (PressureChanged(1, True), PressureChanged(2, True))
    assert culprits.update(frozenset({1, 2}), 11.0) == ()
    assert culprits.update(frozenset({2, 3}), 14.0) == (PressureChanged(3, True), PressureChanged(1, False, 4.0))
    assert culprits.present() == {2, 3}


def test_totals_add_up_and_grow_while_a_task_is_a_culprit() -> None:
    """The metric is a counter, so it must never fall."""
    culprits = Culprits()
    culprits.update(frozenset({1}), 0.0)
    culprits.update(frozenset(), 2.0)
    culprits.update(frozenset({1}), 5.0)
    assert culprits.totals_s(6.5) == {1: 3.5}
    culprits.update(frozenset(), 7.0)
    assert culprits.totals_s(100.0) == {1: 4.0}
