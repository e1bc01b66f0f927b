"""Measurements from metrics: shares and rates of the present plan, sums over streams, trends, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

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
from heron_health_manager.sensors.flow_sensors import QueueSensor, RestartSensor, SourceSensor
from heron_health_manager.sensors.host_sensor import HostSensor
from heron_health_manager.sensors.task_sensors import StreamSensor, TaskSensor
from heron_health_manager.sensors.window import slope

SPOUT = ComponentShape("lines", "spout", {1: 1})
BOLT = ComponentShape("split", "bolt", {2: 1, 3: 2}, (Subscription("lines", "default"),))
SHAPE = TopologyShape("words", (SPOUT, BOLT))
TASK = Subject("split", 2)


def task(name: str, rate_per_s: float | None, number: int = 2, value: float = 1e6, **labels: str) -> Sample:
    component = "lines" if number == 1 else "split"
    return Sample(name, value, component, number, 1, f"{component}-{number}", labels, rate_per_s)


def gauge(name: str, value: float, number: int = 2, **labels: str) -> Sample:
    return task(name, None, number, value, **labels)


def process(
    name: str, process: str, container: int, rate_per_s: float | None, value: float = 0.0, **labels: str
) -> Sample:
    return Sample(name, value, container_id=container, process=process, labels=labels, rate_per_s=rate_per_s)


def seen(*moments: Sequence[Sample], shape: TopologyShape = SHAPE) -> list[Observation]:
    """One observation per second."""
    return [Observation(float(at), shape, tuple(samples)) for at, samples in enumerate(moments)]


def measured(sensor: Sensor, window: Sequence[Observation]) -> Measurements:
    return Measurements(SHAPE, sensor.measure(window))


def uses(number: int = 2, **shares: float) -> list[Sample]:
    return [task("task-time-s", share, number, use=use.replace("_", "-")) for use, share in shares.items()]


def test_the_true_rate_is_tuples_per_second_of_useful_time() -> None:
    """Two streams come in: 300 tuples/s in 0.6 s of each second, of which a twentieth passed without a processor."""
    samples = [
        *uses(user_cpu=0.3, user_blocked=0.2, engine=0.1, input=0.4),
        task("execute-count", 200.0, component="lines", stream="default"),
        task("execute-count", 100.0, component="lines", stream="other"),
        task("emit-count", 50.0, stream="default"),
        task("cpu-wait-s", 0.05),
    ]
    found = measured(TaskSensor(), seen(samples))
    assert found.value("true-rate", TASK) == pytest.approx(300 / (0.6 * 0.95))
    assert found.value("rate-in", TASK) == pytest.approx(300.0)
    assert found.value("useful-share", TASK) == pytest.approx(0.6)
    assert found.value("blocked-share", TASK) == pytest.approx(0.15), "without the wait for a processor"
    assert found.value("true-rate", Subject("split", 3)) is None


def test_rates_are_means_over_the_moments_that_have_them() -> None:
    """A record that came late leaves a gap, not a zero."""
    window = seen(
        [*uses(user_cpu=1.0), task("execute-count", 100.0)], [], [*uses(user_cpu=0.5), task("execute-count", 80.0)]
    )
    found = measured(TaskSensor(), window)
    assert found.value("rate-in", TASK) == pytest.approx(90.0)
    assert found.value("useful-share", TASK) == pytest.approx(0.75)
    assert found.value("true-rate", TASK) == pytest.approx(120.0)


@pytest.mark.parametrize("sensor", [TaskSensor(), StreamSensor(), SourceSensor(600.0), QueueSensor()])
def test_other_plans_and_plans_in_change_do_not_count(sensor: Sensor) -> None:
    """Rates of another parallelism would size the topology wrongly."""
    samples = [
        *uses(user_cpu=1.0),
        *uses(1, user_cpu=0.1, throttled=0.5),
        task("execute-count", 100.0),
        task("emit-count", 100.0, 1, stream="default"),
        gauge("in-queue-bytes", 5.0),
    ]
    (old,) = seen(samples)
    newest = replace(old, shape=replace(SHAPE, version=2), samples=())
    changing = replace(old, shape=replace(SHAPE, changing=True))
    assert list(sensor.measure([old]))
    names = {each.name for each in sensor.measure([old, newest])}
    assert names <= {"pressure-share", "most-pressure-share"}
    assert list(sensor.measure([old, changing])) == []


def test_ratios_are_those_of_the_whole_component() -> None:
    """Tasks with few tuples say little, so tuples are added up before they are divided."""
    samples = [
        task("execute-count", 100.0, 2),
        task("execute-count", 300.0, 3),
        task("emit-count", 400.0, 2, stream="default"),
        task("emit-count", 400.0, 3, stream="default"),
        task("emit-count", 40.0, 3, stream="errors"),
        task("emit-count", 30.0, 1, stream="default"),
        task("emit-count", 10.0, 1, stream="other"),
    ]
    found = measured(StreamSensor(), seen(samples))
    assert found.value("ratio", Subject("split"), "default") == pytest.approx(2.0)
    assert found.value("ratio", Subject("split"), "errors") == pytest.approx(0.1)
    assert found.value("ratio", Subject("lines"), "default") == pytest.approx(0.75)


def test_the_target_of_a_source_leaves_out_the_time_in_which_it_is_held() -> None:
    """100 tuples/s in the quarter of the time in which nothing holds the spout are 400."""
    held = uses(1, user_cpu=0.05, throttled=0.5, room=0.15, acks=0.1, input=0.2)
    found = measured(SourceSensor(600.0), seen([*held, task("emit-count", 100.0, 1, stream="default")]))
    assert found.value("target-rate", Subject("lines")) == pytest.approx(400.0)
    assert found.value("source-rate", Subject("lines")) == pytest.approx(100.0)


def test_a_source_with_bursts_has_a_mean_with_an_error() -> None:
    """Rates of 0 and 200 in turn are 100 tuples/s, give or take 50 in four observations (115 / 2 = 58)."""
    moments = [[*uses(1), task("emit-count", rate, 1, stream="default")] for rate in (200.0, 0.0, 200.0, 0.0)]
    found = measured(SourceSensor(600.0), seen(*moments))
    assert found.value("source-rate", Subject("lines")) == pytest.approx(100.0)
    assert found.value("source-error", Subject("lines")) == pytest.approx(0.577, abs=0.001)
    assert measured(SourceSensor(600.0), seen(moments[0])).value("source-error", Subject("lines")) == 0.0
    assert measured(SourceSensor(600.0), seen(moments[1], moments[1])).value("source-error", Subject("lines")) == 0.0


def test_a_source_that_is_held_all_the_time_has_no_known_target() -> None:
    """A guess would be a division of noise by noise."""
    held = [*uses(1, throttled=0.9999), task("emit-count", 0.1, 1, stream="default")]
    assert measured(SourceSensor(600.0), seen(held)).value("target-rate", Subject("lines")) is None


def test_each_task_of_a_source_has_its_own_rate_when_it_is_free() -> None:
    """One is free with 100 tuples/s; another one has 50 in a quarter of its time; a third is held up all the time."""
    shape = replace(SHAPE, components=(replace(SPOUT, tasks={1: 1, 4: 1, 5: 2}), BOLT))

    def of_task(number: int, rate: float, held: float) -> list[Sample]:
        both = [*uses(1, throttled=held), task("emit-count", rate, 1, stream="default")]
        return [structs.replace(each, task_id=number) for each in both]

    def target(*samples: Sample) -> float | None:
        return measured(SourceSensor(600.0), seen(samples, shape=shape)).value("target-rate", Subject("lines"))

    two = [*of_task(1, 100.0, 0.0), *of_task(4, 50.0, 0.75)]
    assert target(*two) == pytest.approx(100.0 + 200.0)
    assert target(*two, *of_task(5, 25.0, 0.5)) == pytest.approx(100.0 + 200.0 + 50.0)
    assert target(*two, *of_task(5, 0.0, 1.0)) == pytest.approx(100.0 + 200.0 + 150.0)


def test_a_backlog_gives_the_target_by_its_growth() -> None:
    """It emits 100/s and the backlog grows by 50/s: 150/s arrive; 1,200 that wait are drained in 60 s by 20/s more."""
    window = seen(
        *([task("emit-count", 100.0, 1, stream="default"), gauge("backlog", 1000 + 50.0 * at, 1)] for at in range(5))
    )
    found = measured(SourceSensor(60.0), window)
    assert found.value("backlog", Subject("lines")) == 1200.0
    assert found.value("backlog-trend", Subject("lines")) == pytest.approx(50.0)
    assert found.value("target-rate", Subject("lines")) == pytest.approx(170.0)


def test_a_source_that_stalls_within_the_window_keeps_its_target() -> None:
    """It emits 100/s for two seconds, then nothing, and 100/s more wait: a line through the backlog would add more."""
    emitted = [100.0, 100.0, 0.0, 0.0, 0.0]
    window = seen(
        *(
            [task("emit-count", rate, 1, stream="default"), gauge("backlog", 125.0 * max(0, at - 1), 1)]
            for at, rate in enumerate(emitted)
        )
    )
    found = measured(SourceSensor(1e9), window)
    assert found.value("backlog-trend", Subject("lines")) == pytest.approx(375.0 / 4)
    assert found.value("target-rate", Subject("lines")) == pytest.approx(25.0 + 375.0 / 4)


def test_a_burst_before_the_window_does_not_count() -> None:
    """A backlog has drained: 700/s until the first moment, and then the 100/s that come."""
    window = seen(
        *([task("emit-count", rate, 1, stream="default"), gauge("backlog", 0.0, 1)] for rate in (700.0, 100.0, 100.0))
    )
    found = measured(SourceSensor(60.0), window)
    assert found.value("target-rate", Subject("lines")) == pytest.approx(100.0)
    only = measured(SourceSensor(60.0), window[:1])
    assert only.value("target-rate", Subject("lines")) == pytest.approx(700.0)


def test_queues_are_those_in_the_task_and_before_it() -> None:
    """The bytes in the outlet of another stream manager wait for the same task."""
    window = [
        [gauge("in-queue-bytes", 100.0 * at), process("outlet-bytes", "stmgr", 1, None, 10.0 * at, task="2")]
        for at in range(4)
    ]
    found = measured(QueueSensor(), seen(*window))
    assert found.value("queue-bytes", TASK) == 330.0
    assert found.value("queue-trend", TASK) == pytest.approx(110.0)
    pressed = [replace(each, culprits=frozenset({2}) if each.at_s > 0 else frozenset()) for each in seen(*window)]
    assert measured(QueueSensor(), pressed).value("pressure-share", TASK) == 0.75


def test_back_pressure_is_counted_where_the_stream_managers_count_it() -> None:
    """A look once per second misses most of it; two stream managers may see the same task."""
    samples = [
        process("backpressure-s", "stmgr", container, share, task="2") for container, share in ((1, 0.1), (2, 0.4))
    ]
    window = [replace(each, culprits=frozenset({2, 3})) for each in seen(samples, samples)]
    found = measured(QueueSensor(), window)
    assert found.value("pressure-share", TASK) == pytest.approx(0.4)
    assert found.value("pressure-share", Subject("split", 3)) == 1.0


def test_restarts_are_those_within_the_window() -> None:
    """A crash loop of yesterday is over."""
    window = [replace(each, restarts={2: 7 + 2 * int(each.at_s)}) for each in seen([], [], [])]
    found = measured(RestartSensor(), window)
    assert found.value("restarts", TASK) == found.value("recent-restarts", TASK) == 4
    assert found.value("restarts", Subject("split", 3)) is None


def test_hosts_have_shares_of_their_processors_and_memory() -> None:
    """The rates of the modes add up to the number of processors."""
    modes = {"busy": 1.5, "steal": 0.2, "iowait": 0.1, "idle": 0.2}
    samples = [process("host-cpu-s", "metricsmgr", 1, rate, mode=mode) for mode, rate in modes.items()]
    samples += [
        process("host-cpu-pressure-s", "metricsmgr", 1, 0.7),
        process("late-s", "stmgr", 2, 0.4),
        process("container-memory-bytes", "metricsmgr", 2, None, 90.0),
        process("container-memory-limit-bytes", "metricsmgr", 2, None, 100.0),
    ]
    (observation,) = seen(samples)
    found = measured(HostSensor(), [replace(observation, silent={2: 4.0, 9: 1.0})])
    first, second = Subject(container_id=1), Subject(container_id=2)
    assert found.value("host-busy-share", first) == pytest.approx(0.75)
    assert found.value("host-steal-share", first) == pytest.approx(0.1)
    assert found.value("host-pressure-share", first) == 0.7
    assert found.value("stmgr-late-share", second) == 0.4
    assert found.value("memory-share", second) == pytest.approx(0.9)
    assert [(str(each.subject), each.value) for each in found.of("silent-s")] == [("container 2", 4.0)]


def test_a_stream_manager_is_not_slow_for_lack_of_a_processor() -> None:
    """Its timer is late on a busy host, too; the waits of its tasks for a processor are not its own."""
    late = [process("late-s", "stmgr", container, 0.7) for container in (1, 2)]
    waits = [process("cpu-wait-s", "stmgr", 1, 0.6), process("cpu-wait-s", "count-3", 2, 0.9)]
    found = measured(HostSensor(), seen([*late, *waits]))
    assert found.value("stmgr-late-share", Subject(container_id=1)) == pytest.approx(0.1)
    assert found.value("stmgr-late-share", Subject(container_id=2)) == 0.7
    more = measured(HostSensor(), seen([late[0], process("cpu-wait-s", "stmgr", 1, 0.8)]))
    assert more.value("stmgr-late-share", Subject(container_id=1)) == 0.0


@given(st.floats(-1e3, 1e3), st.floats(-1e6, 1e6), st.integers(2, 30), st.floats(0.1, 60.0))
def test_the_slope_of_a_line_is_its_growth(growth: float, start: float, moments: int, period_s: float) -> None:
    """For any period and start."""
    found = slope([(at * period_s, start + growth * at * period_s) for at in range(moments)])
    assert found == pytest.approx(growth, abs=1e-6 + 1e-6 * abs(start))


@pytest.mark.parametrize("series", [[], [(1.0, 5.0)], [(1.0, 5.0), (1.0, 7.0)]])
def test_one_moment_has_no_slope(series: list[tuple[float, float]]) -> None:
    """A clock that did not move, or moved back to the same second, gives none either."""
    assert slope(series) is None


@given(rates=st.lists(st.floats(0.0, 1e6), min_size=4, max_size=12))
def test_windows_that_share_observations_measure_what_others_do(rates: list[float]) -> None:
    """An observation keeps its sums from round to round; they depend on nothing else of a window."""
    moments = [[*uses(user_cpu=0.5), task("execute-count", rate), task("emit-count", rate, 1)] for rate in rates]
    shared = seen(*moments)
    for end in range(2, len(rates) + 1):
        window = slice(max(0, end - 3), end)
        for sensor in (TaskSensor(), SourceSensor(30.0), QueueSensor()):
            assert list(sensor.measure(shared[window])) == list(sensor.measure(seen(*moments)[window]))
