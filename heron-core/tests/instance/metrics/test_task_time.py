"""Each second of a task thread has one use, and true rates leave waits out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.instance.metrics.task_time import TaskTime, TimeUse


class Clocks:
    """A clock, and the processor time of the thread."""

    def __init__(self) -> None:
        self.now_s = self.cpu_s = 0.0

    def run(self, wall_s: float, cpu_s: float = 0.0) -> None:
        """Time passes."""
        self.now_s += wall_s
        self.cpu_s += cpu_s


def timed() -> tuple[TaskTime, Clocks]:
    clocks = Clocks()
    return TaskTime(lambda: clocks.now_s, lambda: clocks.cpu_s), clocks


def used(time: TaskTime) -> dict[str, object]:
    """The uses above zero."""
    return {use.value: pytest.approx(value) for use, value in time.uses().items() if value}


def gauges(time: TaskTime, tuples_in: int | None, tuples_out: int) -> dict[str, object]:
    return {each.name: each.value for each in time.metrics(tuples_in, tuples_out) if not each.name.endswith("-s")}


def test_user_code_is_divided_into_running_and_blocked() -> None:
    """A slow service and a slow computation need different remedies."""
    time, clocks = timed()
    time.enter_user()
    clocks.run(3.0, cpu_s=1.0)
    time.leave_user()
    clocks.run(0.5, cpu_s=0.5)
    assert used(time) == {"user-cpu": 1.0, "user-blocked": 2.0, "engine": 0.5}


def test_a_wait_for_room_within_an_emit_is_no_user_code() -> None:
    """A task that is blocked by its consumer is not slow itself."""
    time, clocks = timed()
    time.enter_user()
    clocks.run(4.0, cpu_s=1.0)
    time.waited_for_room_in_emit(2.5)
    time.leave_user()
    assert used(time) == {"user-cpu": 1.0, "user-blocked": 0.5, "room": 2.5}


def test_a_call_that_emits_nothing_waits_for_input() -> None:
    """A spout that polls its source has no useful time then, also if the poll computes."""
    time, clocks = timed()
    time.enter_user()
    clocks.run(1.0, cpu_s=0.25)
    time.leave_user()
    time.emitted_nothing()
    time.emitted_nothing()  # counts once
    assert used(time) == {"input": 1.0}


def test_true_rates_leave_waits_out() -> None:
    """4,000 tuples in 2 of 10 s are 2,000 tuples per useful second."""
    time, clocks = timed()
    time.enter_user()
    clocks.run(2.0, cpu_s=2.0)
    time.leave_user()
    clocks.run(8.0)
    time.waited(TimeUse.INPUT, 8.0)
    rates = gauges(time, 4000, 12000)
    assert rates == {"true-rate-in": 2000.0, "true-rate-out": 6000.0, "selectivity": 3.0}


def test_rates_cover_the_time_since_the_last_call() -> None:
    """Old tuples say nothing about the present pace."""
    time, clocks = timed()
    clocks.run(1.0)
    gauges(time, None, 1000)
    clocks.run(2.0)
    assert gauges(time, None, 1500) == {"true-rate-out": 250.0}
    clocks.run(1.0)
    assert gauges(time, None, 1500) == {}


def test_hardly_any_useful_time_gives_no_rate() -> None:
    """A rate from some microseconds would be noise."""
    time, clocks = timed()
    clocks.run(0.0002)
    assert gauges(time, 10, 10) == {}


def test_a_bolt_has_no_uses_that_only_spouts_have() -> None:
    """The table of metrics has no rows that are always zero."""
    time, _ = timed()
    labels = {each.labels["use"] for each in time.metrics(0, 0) if each.name == "task-time-s"}
    assert labels == {"user-cpu", "user-blocked", "engine", "input", "room", "paused"}
    spout = {each.labels["use"] for each in time.metrics(None, 0) if each.name == "task-time-s"}
    assert spout - labels == {"throttled", "acks"}


steps = st.lists(
    st.tuples(
        st.sampled_from(["user", "wait", "emit", "engine", "poll"]),
        st.floats(0.0, 100.0),
        st.floats(0.0, 1.0),
        st.sampled_from([TimeUse.INPUT, TimeUse.ROOM, TimeUse.ACKS, TimeUse.PAUSED]),
    ),
    max_size=30,
)


@given(steps)
def test_the_uses_sum_up_to_the_age_of_the_task(taken: list[tuple[str, float, float, TimeUse]]) -> None:
    """Nothing is counted twice, and nothing is missing."""
    time, clocks = timed()
    for kind, took_s, share, use in taken:
        if kind in ("user", "emit", "poll"):
            time.enter_user()
        clocks.run(took_s, cpu_s=took_s * share if kind in ("user", "poll") else 0.0)
        if kind == "emit":
            time.waited_for_room_in_emit(took_s * share)
        if kind in ("user", "emit", "poll"):
            time.leave_user()
        if kind == "poll":
            time.emitted_nothing()
        if kind == "wait":
            time.waited(use, took_s)
    uses = time.uses()
    assert sum(uses.values()) == pytest.approx(clocks.now_s)
    assert all(value >= -1e-6 for value in uses.values())
