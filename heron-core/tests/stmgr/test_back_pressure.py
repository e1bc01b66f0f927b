"""Whom a culprit holds back, and that nobody is held back for ever."""

from __future__ import annotations

import random

import pytest

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, StreamManagerLocation, TaskPlan, TopologyState
from heron.stmgr.back_pressure import BackPressure, Reporter, SpoutChange

HERE, THERE = Reporter(1, 0), Reporter(2, 0)

# lines (1 here, 2 there) -> split (3) -> count (4), clicks (5 here) -> store (6); both -> all (7)
TASKS = {1: ("lines", 1), 2: ("lines", 2), 3: ("split", 1), 4: ("count", 2), 5: ("clicks", 1), 6: ("store", 2)}


def index_of(tasks: dict[int, tuple[str, int]] | None = None) -> PlanIndex:
    tasks = TASKS if tasks is None else tasks
    stream = (StreamDefinition("default", ("v",)),)

    def bolt(name: str, *sources: str) -> ComponentDefinition:
        shuffle = GroupingDefinition(GroupingKind.SHUFFLE)
        inputs = tuple(InputDefinition(source, "default", shuffle) for source in sources)
        return ComponentDefinition(name, ComponentKind.BOLT, "m:B", 1, stream, inputs)

    topology = TopologyDefinition(
        "t",
        (
            ComponentDefinition("lines", ComponentKind.SPOUT, "m:S", 2, stream),
            ComponentDefinition("clicks", ComponentKind.SPOUT, "m:S", 1, stream),
            bolt("split", "lines"),
            bolt("count", "split"),
            bolt("store", "clicks"),
            bolt("all", "count", "store"),
        ),
    )
    plans = tuple(TaskPlan(task_id, name, 0, container) for task_id, (name, container) in tasks.items())
    stmgrs = tuple(StreamManagerLocation(container, 0, "e", "h", 1) for container in (1, 2))
    return PlanIndex(PhysicalPlan(1, 1, "t-1", topology, TopologyState.RUNNING, plans, stmgrs))


def pressure(*, all_spouts: bool = False, throttles: bool = True) -> BackPressure:
    made = BackPressure(HERE, all_spouts=all_spouts)
    made.set_plan(index_of(), throttles=throttles)
    return made


def test_only_spouts_that_feed_the_culprit_are_held_back() -> None:
    """Over however many bolts; others, and those of other containers, are none of its business."""
    made = pressure()
    made.report_own(4, on=True)
    assert made.take_changes() == (SpoutChange(1, 4, True),)
    made.report(6, THERE, on=True)
    assert made.culprits_of(5) == (), "nobody has told it"
    assert made.take_changes() == (SpoutChange(5, 6, True),)
    assert (made.culprits_of(1), made.culprits_of(5)) == ((4,), (6,))


def test_all_spouts_is_an_option() -> None:
    """Heron's own way, for topologies whose spouts depend on each other outside the engine."""
    made = pressure(all_spouts=True)
    made.report_own(4, on=True)
    assert made.take_changes() == (SpoutChange(1, 4, True), SpoutChange(5, 4, True))


def test_nobody_is_held_back_where_tuples_are_dropped_instead() -> None:
    """The culprit still has its name."""
    made = pressure(throttles=False)
    made.report_own(4, on=True)
    assert made.take_changes() == ()
    assert made.own_culprits() == (4,)


def test_a_culprit_is_one_as_long_as_anyone_says_so() -> None:
    """Two stream managers may both have a full buffer for it."""
    made = pressure()
    made.report_own(4, on=True)
    made.report(4, THERE, on=True)
    made.report_own(4, on=False)
    assert made.take_changes() == (SpoutChange(1, 4, True),)
    made.report(4, THERE, on=False)
    assert made.take_changes() == (SpoutChange(1, 4, False),)
    assert made.take_changes() == ()


def test_two_culprits_are_lifted_one_by_one() -> None:
    """A spout goes on only when none of those that it feeds is full."""
    made = pressure()
    made.report_own(3, on=True)
    made.report_own(4, on=True)
    assert made.take_changes() == (SpoutChange(1, 3, True), SpoutChange(1, 4, True))
    made.report_own(3, on=False)
    assert made.take_changes() == (SpoutChange(1, 3, False),)
    assert made.culprits_of(1) == (4,)


def test_what_comes_and_goes_between_two_looks_is_not_told() -> None:
    """A spout is told of states, not of flicker."""
    made = pressure()
    made.report_own(4, on=True)
    made.report_own(4, on=False)
    assert made.take_changes() == ()


def test_an_incarnation_that_is_gone_takes_its_reports_with_it() -> None:
    """It cannot lift them any more; its successor says again what still holds."""
    made = pressure()
    made.report(4, THERE, on=True)
    made.report(6, THERE, on=True)
    made.take_changes()
    made.report(4, Reporter(2, 1), on=True)
    made.forget(THERE)
    assert made.take_changes() == (SpoutChange(5, 6, False),)
    assert made.culprits_of(1) == (4,)


def test_a_culprit_that_leaves_the_plan_is_none_any_more() -> None:
    """Nobody would ever lift it."""
    made = pressure()
    made.report_own(4, on=True)
    made.take_changes()
    made.set_plan(index_of({task: place for task, place in TASKS.items() if task != 4}), throttles=True)
    assert made.take_changes() == (SpoutChange(1, 4, False),)
    assert made.own_culprits() == ()


def test_a_report_before_the_first_plan_holds_from_the_plan_on() -> None:
    """A restarted stream manager hears from its peers before it knows its spouts."""
    made = BackPressure(HERE)
    made.report(4, THERE, on=True)
    assert made.take_changes() == ()
    made.set_plan(index_of(), throttles=True)
    assert made.take_changes() == (SpoutChange(1, 4, True),)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_nobody_is_held_once_all_reporters_are_done(seed: int) -> None:
    """Never stuck: random reports, repeats, restarts and plans; what spouts were told always matches the reports."""
    draw = random.Random(seed)
    made = pressure()
    told: dict[int, set[int]] = {1: set(), 5: set()}
    reporters = [HERE, THERE, Reporter(2, 1), Reporter(3, 0)]

    def look() -> None:
        for change in made.take_changes():
            assert (change.culprit in told[change.task_id]) != change.on, "told twice"
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
