"""The watermark of a task: a model over random schedules, and the cases that its rules name."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import EmitError
from heron.instance.input.watermarks import REPEAT_S, TaskWatermark, WatermarkStep, watermark_sources
from heron.instance.output.event_time import to_microseconds
from heron.ipc.frames.frame import Marker
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, PlanUpdate, UpdatePhase
from heron_testing.builders import bolt, physical_plan, spout, subscription, topology

TASKS = (1, 2, 3, 4)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["active", "active", "active", "active", "idle", "end", "sources", "wait"]),
        st.sampled_from(TASKS),
        st.integers(-3, 12),
        st.frozensets(st.sampled_from(TASKS), min_size=2),
    ),
    min_size=5,
    max_size=40,
)


class Model:
    """What upstream tasks have said; the watermark is computed from the beginning each time."""

    def __init__(self) -> None:
        self.sources = frozenset(TASKS[:3])
        self.times: dict[int, int] = {}
        self.idle: set[int] = set()
        self.ended: set[int] = set()

    def take(self, name: str, task_id: int, time_us: int, sources: frozenset[int]) -> None:
        """An event."""
        if name == "sources":
            self.sources = sources
        elif name == "end":
            self.ended.add(task_id)
        else:
            self.times[task_id] = max(time_us, self.times.get(task_id, -99))
            self.idle = self.idle | {task_id} if name == "idle" else self.idle - {task_id}

    def active(self) -> frozenset[int]:
        """The tasks that hold the watermark back."""
        return self.sources - self.ended - self.idle

    def reached(self) -> int | None:
        """What the upstream tasks allow now; None if they allow nothing new."""
        if self.active():
            return None if self.active() - self.times.keys() else min(self.times[each] for each in self.active())
        return max((self.times[each] for each in self.sources - self.ended), default=None)


@settings(max_examples=150)
@given(EVENTS)
def test_the_watermark_follows_the_model(events: list[tuple[str, int, int, frozenset[int]]]) -> None:
    """It never decreases, it is what the upstream tasks allow, and tasks downstream always know it."""
    model, task, now_s = Model(), TaskWatermark(frozenset(TASKS[:3])), 100.0
    told: tuple[int, Marker] | None = None
    told_at_s = -math.inf
    for name, task_id, number, sources in events:
        if name == "wait":
            now_s += abs(number) * REPEAT_S / 4
            continue
        before = task.time_us
        model.take(name, task_id, number, sources)
        if name == "sources":
            step = task.set_sources(sources, now_s)
        elif name == "end":
            step = task.end(task_id, now_s)
        else:
            step = task.receive(task_id, number, idle=name == "idle", now_s=now_s)
        reached = model.reached()
        expected = before if reached is None else max(reached, reached if before is None else before)
        assert task.time_us == expected
        assert (step is not None and step.has_grown) == (expected != before)
        if step is not None:
            told, told_at_s = (step.time_us, step.marker), now_s
        if task.time_us is not None and model.sources - model.ended:
            assert told == (task.time_us, Marker.WATERMARK if model.active() else Marker.IDLE)
            if name in {"active", "idle"} and task_id in model.sources:
                assert now_s - told_at_s < REPEAT_S


def grown(time_us: int, marker: Marker = Marker.WATERMARK) -> WatermarkStep:
    return WatermarkStep(time_us, True, marker)  # type: ignore[arg-type]  # one of the two kinds


def test_the_smallest_upstream_time_counts_when_each_has_sent_one() -> None:
    """A task that has said nothing may still send tuples of any time."""
    task = TaskWatermark(frozenset({1, 2}))
    assert task.receive(1, 50, idle=False, now_s=0.0) is None
    assert task.receive(2, 30, idle=False, now_s=0.0) == grown(30)
    assert task.receive(2, 80, idle=False, now_s=0.0) == grown(50)
    assert grown(50).time_s == 0.00005


def test_a_task_that_becomes_idle_or_ends_releases_the_watermark() -> None:
    """Tuples of other sources would wait for it in windows for ever."""
    task = TaskWatermark(frozenset({1, 2, 3}))
    for source, time_us in ((1, 50), (2, 30), (3, 20)):
        task.receive(source, time_us, idle=False, now_s=0.0)
    assert task.receive(3, 20, idle=True, now_s=0.0) == grown(30)
    assert task.end(2, 0.0) == grown(50)
    assert task.end(2, 0.0) is None


def test_if_all_are_idle_the_largest_time_counts_and_idle_is_passed_on() -> None:
    """The task holds its own consumers back no more; when it is active again they hear of it."""
    task = TaskWatermark(frozenset({1, 2}))
    task.receive(1, 50, idle=False, now_s=0.0)
    task.receive(2, 30, idle=True, now_s=0.0)
    assert task.receive(1, 50, idle=True, now_s=0.0) == WatermarkStep(50, False, Marker.IDLE)
    assert task.receive(2, 70, idle=True, now_s=0.0) == grown(70, Marker.IDLE)
    assert task.receive(1, 60, idle=False, now_s=0.0) == WatermarkStep(70, False, Marker.WATERMARK)


def test_nothing_follows_the_last_end() -> None:
    """`finish` is called then."""
    task = TaskWatermark(frozenset({1, 2}))
    task.receive(1, 50, idle=True, now_s=0.0)
    assert task.end(2, 0.0) == grown(50, Marker.IDLE)
    assert task.end(1, 0.0) is None


def test_a_restarted_upstream_task_does_not_set_the_time_back() -> None:
    """It reads its source again from an earlier position."""
    task = TaskWatermark(frozenset({1, 2}))
    task.receive(1, 50, idle=False, now_s=0.0)
    task.receive(2, 30, idle=False, now_s=0.0)
    assert task.receive(1, 10, idle=False, now_s=0.0) is None
    assert task.receive(2, 90, idle=False, now_s=0.0) == grown(50)
    assert task.receive(1, 20, idle=False, now_s=0.0) is None


def test_a_repeated_marker_is_passed_on_once_a_second() -> None:
    """A restarted task further downstream hears the time by it; more would be a cost without a use."""
    task = TaskWatermark(frozenset({1}))
    task.receive(1, 50, idle=False, now_s=10.0)
    assert task.receive(1, 50, idle=False, now_s=10.9) is None
    assert task.receive(1, 50, idle=False, now_s=11.0) == WatermarkStep(50, False, Marker.WATERMARK)
    assert task.receive(1, 50, idle=False, now_s=11.9) is None


def test_a_new_upstream_task_holds_back_and_a_former_one_does_not() -> None:
    """The watermark never decreases; the time of a new task counts even if it arrives before the plan."""
    task = TaskWatermark(frozenset({1, 2}))
    task.receive(1, 50, idle=False, now_s=0.0)
    task.receive(2, 30, idle=False, now_s=0.0)
    assert task.set_sources(frozenset({1, 3}), 0.0) is None
    assert task.receive(1, 90, idle=False, now_s=0.0) is None
    assert task.receive(4, 60, idle=False, now_s=5.0) is None
    assert task.set_sources(frozenset({1, 4}), 5.0) == grown(60)


def plan_with(update: PlanUpdate | None) -> PhysicalPlan:
    definition = topology(spout("spout", parallelism=4), bolt("bolt", subscription("spout")))
    return replace(physical_plan(definition), update=update)


def test_a_task_waits_for_no_task_that_an_update_prepares_or_that_does_not_run() -> None:
    """Prepared tasks send nothing before the switch, and the preparation may take minutes."""
    update = PlanUpdate(7, UpdatePhase.PREPARE, "target", added=(4,), removed=(1,), absent=(2,))
    assert watermark_sources(PlanIndex(plan_with(None)), "bolt") == {1, 2, 3, 4}
    assert watermark_sources(PlanIndex(plan_with(update)), "bolt") == {1, 3}
    switch = PlanUpdate(7, UpdatePhase.SWITCH, "target", added=(4,), removed=(1,), absent=(2,))
    assert watermark_sources(PlanIndex(plan_with(switch)), "bolt") == {1, 3, 4}


@pytest.mark.parametrize("time_s", [math.nan, math.inf, -math.inf, 1e13, -1e13, 1e305, 10**400, "1", None, True])
def test_a_time_that_no_marker_can_carry_is_refused(time_s: object) -> None:
    """The author sees the line of the call."""
    with pytest.raises(EmitError, match="is not a finite number of seconds whose microseconds fit 64 bits"):
        to_microseconds(time_s)


@pytest.mark.parametrize(
    ("time_s", "expected"), [(0, 0), (-1.5, -1_500_000), (1_700_000_000.123457, 1_700_000_000_123_457), (0.0000006, 1)]
)
def test_times_are_whole_microseconds(time_s: float, expected: int) -> None:
    """Markers of all languages have this resolution."""
    assert to_microseconds(time_s) == expected
