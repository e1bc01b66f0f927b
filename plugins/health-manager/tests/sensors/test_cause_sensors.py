"""Measurements of single causes: progress, growth of memory, data between containers, hot keys."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heron.spi.health import Sensor
from heron.spi.health_values import (
    ComponentShape,
    Measurements,
    Observation,
    Sample,
    Subject,
    Subscription,
    TopologyShape,
)
from heron_health_manager.sensors.cause_sensors import (
    CallSensor,
    CrossingSensor,
    DebuggerSensor,
    HotKeySensor,
    MemorySensor,
    ProgressSensor,
)

SPOUT = ComponentShape("lines", "spout", {1: 1})
BOLT = ComponentShape("split", "bolt", {2: 1, 3: 2}, (Subscription("lines", "default"),))
SHAPE = TopologyShape("words", (SPOUT, BOLT))
TASK, OTHER = Subject("split", 2), Subject("split", 3)
MB = 1e6


def of_task(name: str, value: float, number: int = 2, **labels: str) -> Sample:
    component = "lines" if number == 1 else "split"
    return Sample(name, value, component, number, 0, f"{component}-{number}", labels)


def of_stmgr(name: str, value: float, container: int, task: int = 2) -> Sample:
    return Sample(name, value, container_id=container, process="stmgr", labels={"task": str(task)})


def of_host(name: str, value: float, container: int) -> Sample:
    return Sample(name, value, container_id=container, process="metricsmgr")


def seen(moments: Sequence[Sequence[Sample]]) -> list[Observation]:
    """One observation per second."""
    return [Observation(float(at), SHAPE, tuple(samples)) for at, samples in enumerate(moments)]


def measured(sensor: Sensor, moments: Sequence[Sequence[Sample]]) -> Measurements:
    return Measurements(SHAPE, sensor.measure(seen(moments)))


def test_a_count_stands_still_since_its_last_change() -> None:
    """Both streams count; the rate that the last record had says nothing."""
    counts = [(10, 1), (20, 1), (20, 2), (20, 2), (20, 2)]
    moments = [
        [of_task("execute-count", one, stream="a"), of_task("execute-count", other, stream="b")]
        for one, other in counts
    ]
    assert measured(ProgressSensor(), moments).value("still-s", TASK) == 2.0


def test_a_task_without_any_count_stands_still_for_the_whole_window() -> None:
    """It has executed nothing yet; a restart begins a new count, which is progress."""
    found = measured(ProgressSensor(), [[of_task("execute-count", value)] for value in (90, 90, 3, 3)])
    assert found.value("still-s", OTHER) == 3.0
    assert found.value("still-s", TASK) == 1.0


def test_bytes_that_came_since_the_last_progress_are_counted() -> None:
    """A stopped process reports nothing, and its stream manager counts what it sends; absent means none."""
    under_way = [50, None, None, 300, 700]
    moments = [
        [of_task("execute-count", min(at, 2)), *([of_stmgr("unconfirmed-bytes", sent, 1)] if sent else [])]
        for at, sent in enumerate(under_way)
    ]
    assert measured(ProgressSensor(), moments).value("came-bytes", TASK) == 700.0


def test_a_call_that_works_on_one_batch_gets_nothing_more() -> None:
    """Its batch is not consumed, but no other data came: a long call is not a stuck task."""
    moments = [[of_task("execute-count", 5), of_stmgr("unconfirmed-bytes", 400, 1)] for _ in range(5)]
    assert measured(ProgressSensor(), moments).value("came-bytes", TASK) == 0.0


@pytest.mark.parametrize(
    ("sizes", "trend"),
    [
        (range(100, 112), MB),
        ([100] * 6 + list(range(100, 106)), 0.0),
        (list(range(100, 106)) + [105] * 6, 0.0),
        (range(112, 100, -1), 0.0),
        ([100, 110, 120], 0.0),
    ],
)
def test_memory_grows_if_it_grows_in_both_halves_of_the_window(sizes: Sequence[int], trend: float) -> None:
    """A window that fills, a cache, and the start of a task are not a leak; neither are a few observations."""
    found = measured(MemorySensor(), [[of_task("resident-bytes", size * MB)] for size in sizes])
    assert found.value("memory-trend", TASK) == pytest.approx(trend)
    assert found.value("memory-bytes", TASK) == sizes[-1] * MB


def test_free_memory_is_the_least_of_what_limit_and_host_leave() -> None:
    """A container without a limit has what its host has."""
    hosts = [of_host("host-memory-available-bytes", 900.0, container) for container in (1, 2)]
    limit = [of_host("container-memory-bytes", 80.0, 1), of_host("container-memory-limit-bytes", 100.0, 1)]
    found = measured(MemorySensor(), [[*hosts, *limit]])
    assert found.value("memory-free-bytes", Subject(container_id=1)) == 20.0
    assert found.value("memory-free-bytes", Subject(container_id=2)) == 900.0


def test_bytes_wait_near_or_far() -> None:
    """Task 2 is in container 1. A burst of one moment does not count."""
    far = [of_stmgr("outlet-bytes", waiting, 2) for waiting in (500.0, 600.0, 700.0)]
    near = [
        [of_stmgr("outlet-bytes", 10.0, 1), of_task("in-queue-bytes", 5.0), of_stmgr("outlet-bytes", burst, 1, task=3)]
        for burst in (0.0, 9e9, 0.0)
    ]
    found = measured(CrossingSensor(), [[one, *others] for one, others in zip(far, near, strict=True)])
    assert found.value("far-bytes", TASK, "2") == 600.0
    assert found.value("near-bytes", TASK) == 15.0
    assert found.value("far-bytes", OTHER, "1") == 0.0


def lived(counts: Sequence[float], blocked_s: Sequence[float], age_s: float) -> list[list[Sample]]:
    """Totals of a task that was `age_s` seconds old at the beginning of the window, of which it waited the rest."""
    return [
        [
            of_task("execute-count", count),
            of_task("task-time-s", blocked, use="user-blocked"),
            of_task("task-time-s", age_s + at - blocked, use="input"),
        ]
        for at, (count, blocked) in enumerate(zip(counts, blocked_s, strict=True))
    ]


def test_calls_are_compared_with_the_life_before_the_window() -> None:
    """100 tuples took 2 s, and the next 30 take 1.8 s: three times as long for each."""
    found = measured(CallSensor(), lived((100, 110, 130), (2.0, 2.6, 3.8), 20.0))
    assert found.value("blocked-times", TASK) == pytest.approx(3.0)


@pytest.mark.parametrize(
    "moments",
    [
        lived((100, 130), (2.0, 3.8), 9.0),
        lived((0, 30), (0.0, 3.8), 20.0),
        lived((100, 100), (2.0, 3.8), 20.0),
        lived((100, 5), (2.0, 0.1), 20.0),
    ],
    ids=["too young", "nothing before", "nothing now", "restarted"],
)
def test_calls_without_a_past_are_not_measured(moments: list[list[Sample]]) -> None:
    """A guess would call a start, or a restart, a slow service."""
    assert measured(CallSensor(), moments).value("blocked-times", TASK) is None


def test_the_newest_hot_key_and_group_have_their_names() -> None:
    """A key that was hot at the beginning of the window is not named."""
    old = [of_task("hot-key-share", 0.9, key="yesterday")]
    new = [of_task("hot-key-share", 0.6, key="today"), of_task("hot-group-share", 0.7, group="12")]
    found = measured(HotKeySensor(), [old, new])
    assert [(each.subject, each.detail, each.value) for each in found.of("hot-key-share")] == [(TASK, "today", 0.6)]
    assert found.value("hot-group-share", TASK, "12") == 0.7


def test_a_debugger_within_the_window_counts_with_its_newest_time() -> None:
    """Also after it was detached: the other measurements are of the whole window."""
    moments = [[of_task("debugged-s", 3.0, by="pdb")], [of_task("debugged-s", 4.0, by="pdb")], []]
    (found,) = measured(DebuggerSensor(), moments).of("debugged-s")
    assert (found.subject, found.detail, found.value) == (TASK, "pdb", 4.0)


SENSORS = (CallSensor(), CrossingSensor(), DebuggerSensor(), HotKeySensor(), MemorySensor(), ProgressSensor())


@pytest.mark.parametrize("sensor", SENSORS)
def test_nothing_is_measured_of_nothing(sensor: Sensor) -> None:
    """The window is empty, or a plan is changing."""
    assert list(sensor.measure([])) == []
    changing = TopologyShape("words", (SPOUT, BOLT), changing=True)
    assert list(sensor.measure([Observation(0.0, changing, (of_task("resident-bytes", MB),))])) == []
