"""What was routed to a task is told from what it executes: they differ while a backlog drains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from heron.spi.health_values import (
    ComponentShape,
    Measurements,
    Observation,
    Sample,
    Subject,
    Subscription,
    TopologyShape,
)
from heron_health_manager.sensors.routed_sensor import RoutedSensor
from heron_health_manager.sensors.task_sensors import TaskSensor

SHAPE = TopologyShape(
    "words",
    (
        ComponentShape("source", "spout", {1: 1}),
        ComponentShape("work", "bolt", {2: 1, 3: 1}, (Subscription("source", "default"),)),
    ),
)
SLOW, OTHER = Subject("work", 2), Subject("work", 3)
BYTES = 10.0  # of a tuple
LABELS = {"component": "source", "stream": "default"}

Moment = tuple[float, float | None, float]
"""Of one task: the tuples that it has consumed, and those in its queue (None: not known) and in its outlet."""


def seen(
    tasks: Mapping[int, Sequence[Moment]], ages: Mapping[int, float] | None = None, shape: TopologyShape = SHAPE
) -> Measurements:
    """What is measured of one observation per second; in tuples."""
    observations = []
    for at in range(len(tasks[2])):
        samples: list[Sample] = []
        for task, moments in tasks.items():
            executed, queued, outside = moments[at]
            age_s = (ages or {}).get(task, 100.0) + at

            def sample(name: str, value: float, labels: Mapping[str, str], task: int = task) -> Sample:
                return Sample(name, value, "work", task, 0, f"work-{task}", labels)

            samples += [
                sample("consumed-bytes", executed * BYTES, {}),
                sample("task-time-s", age_s, {"use": "input"}),
                Sample("outlet-bytes", outside * BYTES, "", 0, 1, "stmgr", {"task": str(task)}),
            ]
            if queued is not None:
                samples.append(sample("in-queue-bytes", queued * BYTES, {}))
        observations.append(Observation(float(at), shape, tuple(samples)))
    found = RoutedSensor().measure(observations)
    return Measurements(SHAPE, (structs.replace(each, value=each.value / BYTES) for each in found))


def routed(measurements: Measurements) -> tuple[float | None, float | None]:
    return measurements.value("routed", SLOW), measurements.value("routed", OTHER)


def test_what_waits_was_routed_too() -> None:
    """Each task gets 100 tuples/s; one executes 40 of them, and the others wait in its queue and its outlet."""
    slow = [(40.0 * at, 10.0, 60.0 * at) for at in range(5)]
    other = [(100.0 * at, 0.0, 0.0) for at in range(5)]
    assert routed(seen({2: slow, 3: other})) == pytest.approx((100.0, 100.0))


def test_a_backlog_that_drains_was_routed_before() -> None:
    """A task that was stopped executes 300 tuples/s, and gets 100."""
    drains = [(1000.0 + 300.0 * at, 0.0, 2000.0 - 200.0 * at) for at in range(5)]
    other = [(3000.0 + 100.0 * at, 0.0, 0.0) for at in range(5)]
    assert routed(seen({2: drains, 3: other})) == pytest.approx((100.0, 100.0))


def test_behind_held_sources_all_counts_since_the_start() -> None:
    """Nothing comes: one task works off what it has, the other one is idle. Both have got 5,000 tuples."""
    slow = [(1000.0 + 10.0 * at, 0.0, 4000.0 - 10.0 * at) for at in range(5)]
    idle = [(5000.0, 0.0, 0.0)] * 5
    assert routed(seen({2: slow, 3: idle})) == pytest.approx((5000.0, 5000.0))


def test_behind_held_sources_tasks_of_different_age_show_nothing() -> None:
    """The total of a task that was restarted does not compare with that of the others."""
    slow = [(1000.0 + 10.0 * at, 0.0, 4000.0 - 10.0 * at) for at in range(5)]
    idle = [(50000.0, 0.0, 0.0)] * 5
    assert routed(seen({2: slow, 3: idle}, {2: 10.0})) == (None, None)


def test_a_restart_in_the_newest_observation_shows_nothing() -> None:
    """The new process was seen once, so it has no rate: the other task is not skewed against it."""
    restarted = [*((100.0 * at, 0.0, 0.0) for at in range(4)), (5.0, 0.0, 0.0)]
    other = [(100.0 * at, 0.0, 0.0) for at in range(5)]
    assert routed(seen({2: restarted, 3: other}, {2: -4.0})) == (None, None)


def test_totals_of_key_groups_that_have_moved_show_nothing() -> None:
    """A rebalance has ended the skew of tasks that are equally old, and the sources are held."""
    source, work = SHAPE.components
    shape = replace(SHAPE, components=(source, replace(work, keys_moved=True)))
    drains = [(9000.0 + 10.0 * at, 0.0, 4000.0 - 10.0 * at) for at in range(5)]
    idle = [(5000.0, 0.0, 0.0)] * 5
    assert routed(seen({2: drains, 3: idle})) == pytest.approx((13000.0, 5000.0))
    assert routed(seen({2: drains, 3: idle}, shape=shape)) == (None, None)
    flows = [(9000.0 + 100.0 * at, 0.0, 0.0) for at in range(5)]
    assert routed(seen({2: flows, 3: flows}, shape=shape)) == pytest.approx((100.0, 100.0))


def test_a_batch_in_work_waits_until_all_of_it_is_executed() -> None:
    """The only change is that one task has consumed a batch: nothing has come, and both have got 5,000 tuples."""
    slow = [(0.0, 5000.0, 0.0), (0.0, 5000.0, 0.0), (1000.0, 4000.0, 0.0)]
    assert routed(seen({2: slow, 3: [(5000.0, 0.0, 0.0)] * 3})) == pytest.approx((5000.0, 5000.0))


def test_a_restart_begins_a_new_count() -> None:
    """Before it the queue of the process that died is not known."""
    restarted = [(900.0, 0.0, 0.0), (1000.0, None, 100.0), (0.0, 0.0, 200.0), (200.0, 0.0, 100.0), (400.0, 0.0, 0.0)]
    other = [(1000.0 + 100.0 * at, 0.0, 0.0) for at in range(5)]
    assert routed(seen({2: restarted, 3: other})) == pytest.approx((100.0, 100.0))


def test_real_skew_stays_skew() -> None:
    """A task that gets three times as much, and is too slow for it."""
    hot = [(150.0 * at, 0.0, 150.0 * at) for at in range(5)]
    other = [(100.0 * at, 0.0, 0.0) for at in range(5)]
    assert routed(seen({2: hot, 3: other})) == pytest.approx((300.0, 100.0))


def test_a_task_whose_queue_is_not_known_leaves_the_component_out() -> None:
    """A mean without one of the tasks would be that of others."""
    assert routed(seen({2: [(0.0, None, 0.0)] * 3, 3: [(100.0, 0.0, 0.0)] * 3})) == (None, None)


def test_an_idle_task_has_the_speed_of_its_life() -> None:
    """Its siblings are compared with it; its waits for a processor do not count."""
    uses = {"user-cpu": 2.0, "engine": 1.0, "input": 50.0}
    samples = [
        Sample("execute-count", 5000.0, "work", 3, 0, "work-3", LABELS, 0.0),
        Sample("cpu-wait-s", 1.0, "work", 3, 0, "work-3", {}, 0.0),
        Sample("execute-latency", 5000.0, "work", 3, 0, "work-3", {}, 0.0, 0.02),
        *(Sample("task-time-s", value, "work", 3, 0, "work-3", {"use": use}, 0.0) for use, value in uses.items()),
    ]
    window = [Observation(float(at), SHAPE, tuple(samples)) for at in range(3)]
    found = Measurements(SHAPE, TaskSensor().measure(window))
    assert found.value("life-rate", OTHER) == pytest.approx(2500.0)
    assert found.value("true-rate", OTHER) is None
    assert found.value("execute-p99-s", OTHER) == pytest.approx(0.02)


def test_a_component_whose_tasks_have_not_started_shows_nothing() -> None:
    """No container with tasks has started, because a cluster has no room: no process is in the observation."""
    source, work = SHAPE.components
    shape = replace(SHAPE, components=(source, replace(work, tasks={})))
    assert routed(seen({2: [], 3: []}, shape=shape)) == (None, None)
    observations = [Observation(float(at), shape, ()) for at in range(5)]
    assert list(RoutedSensor().measure(observations)) == []
