"""What history keeps of observations: increments without spikes, and buckets of three resolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from heron.ipc.documents.status import ComponentStatus, Culprit, LeaderStatus, TaskStatus
from heron_cli.client import MetricsRow, TopologyEntry, TopologyStatus
from heron_service_tracker.history.buckets import OpenBuckets, resolution_for
from heron_service_tracker.history.samples import Increments, Sample
from heron_service_tracker.history.series import MOST_OF_AUTHORS, Series, SeriesGroup
from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.observed.task_figures import COUNTERS, FiguresOfTasks, figures_of_tasks
from heron_service_tracker.watches.observations import Observations

EMITTED = Series("near", "words", "lines", 0, "emit-count")
NOW = 1_700_000_000
MIB = 1024 * 1024
KEY = ("near", "words", "lines", 0, "emit-count")

MakeStatus = Callable[..., TopologyStatus]
MakeEntry = Callable[..., TopologyEntry]


def observed(
    entry: TopologyEntry, status: TopologyStatus, emitted: int, at_s: float, reported_tasks: int = 0
) -> ObservedTopology:
    """An observation with these totals of the spout: its tuples, and the tasks that have reported them."""
    spout = ComponentStatus("lines", "spout", 1, emitted=emitted, reported_tasks=reported_tasks)
    return ObservedTopology("near", entry, at_s, replace(status, components=(spout,)))


def by_series(found: list[Sample]) -> dict[Series, tuple[float, float]]:
    """The total and the weight of each series that has one."""
    return {
        Series(*each.group[:4], metric): (total, each.weight)
        for each in found
        for metric, total in zip(each.group.metrics, each.totals, strict=True)
        if total is not None
    }


def increments_of(found: list[Sample], task_id: int = 0) -> list[tuple[float, float]]:
    """The increment and its seconds, of the emitted tuples."""
    return [seen for series, seen in by_series(found).items() if series == EMITTED._replace(task_id=task_id)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(totals=st.lists(st.integers(0, 10**6), min_size=1, max_size=30), steps=st.lists(st.integers(0, 9), min_size=30))
def test_no_sequence_of_totals_makes_a_negative_rate_or_a_spike(
    make_entry: MakeEntry, make_status: MakeStatus, totals: list[int], steps: list[int]
) -> None:
    """An increment is the difference of two totals that follow each other within the gap, or there is none."""
    increments, at_s, before = Increments(5.0), 100.0, None
    for total, step in zip(totals, steps, strict=False):
        at_s += step
        found = increments_of(increments.samples(observed(make_entry(), make_status(), total, at_s)))
        if before is not None and step and step <= 5 and total >= before:
            assert found == [(total - before, step)]
        else:
            assert found == []
        before = total if step or before is None else before


def own_levels(topology: ObservedTopology, increments: Increments) -> dict[Series, float]:
    """What an observation adds of the metrics that authors register."""
    found = by_series(increments.samples(topology))
    return {series: total for series, (total, _) in found.items() if series.metric.startswith("user/")}


def test_metrics_of_authors_are_kept_by_task_and_as_sums(make_entry: MakeEntry, make_status: MakeStatus) -> None:
    """A metric has one value, or one for each key. A value that is not a number is left out."""
    status = make_status()
    one, other = status.tasks[0], msgspec.structs.replace(status.tasks[0], task_id=99)
    rows = [
        MetricsRow(one.component, task_id, "p", name, "gauge", "1", value)
        for task_id, name, value in (
            (one.task_id, "user/size", -2.5),
            (99, "user/size", 4.0),
            (99, "user/by-word/a", 1.0),
            (99, "user/by-word/b", float("nan")),
        )
    ]
    status = replace(status, tasks=(one, other))
    topology = replace(observed(make_entry(), status, 0, 100.0), figures=figures_of_tasks(rows), figures_at_s=100.0)
    place = ("near", "words", one.component)
    assert own_levels(topology, Increments(30.0)) == {
        Series(*place, one.task_id, "user/size"): -2.5,
        Series(*place, 99, "user/size"): 4.0,
        Series(*place, 0, "user/size"): 1.5,
        Series(*place, 99, "user/by-word/a"): 1.0,
        Series(*place, 0, "user/by-word/a"): 1.0,
    }


def test_a_metric_with_a_value_for_each_key_does_not_fill_the_history(
    make_entry: MakeEntry, make_status: MakeStatus, caplog: pytest.LogCaptureFixture
) -> None:
    """The names that came first stay, and the log says once what is left out."""
    status = make_status()
    task = status.tasks[0]

    def seen(at_s: float, keys: range) -> set[str]:
        rows = [MetricsRow(task.component, task.task_id, "p", f"user/k/{key}", "gauge", "1", 1.0) for key in keys]
        topology = replace(observed(make_entry(), status, 0, at_s), figures=figures_of_tasks(rows), figures_at_s=at_s)
        return {series.metric for series in own_levels(topology, increments) if series.task_id}

    increments = Increments(30.0)
    assert seen(100.0, range(5, 10)) == {f"user/k/{key}" for key in range(5, 10)}
    assert seen(110.0, range(1000)) == {f"user/k/{key}" for key in (*range(27), *range(5, 10))} | seen(
        120.0, range(1000)
    )
    assert len(seen(130.0, range(1000))) == MOST_OF_AUTHORS
    assert len(caplog.messages) == 1
    assert f"the first {MOST_OF_AUTHORS} metrics" in caplog.messages[0]


def test_metrics_of_the_engine_are_kept_by_task_from_their_first_value_on(
    make_entry: MakeEntry, make_status: MakeStatus
) -> None:
    """A counter as its rate; a component has a sum, or the mean of shares. A task that never waits has no series."""
    status = make_status()
    one, other = status.tasks[0], msgspec.structs.replace(status.tasks[0], task_id=99)
    status, increments = replace(status, tasks=(one, other)), Increments(30.0)

    def seen(at_s: float, waits: float) -> dict[Series, float]:
        rows = [
            MetricsRow(one.component, task_id, "p", name, kind, "1", 1e9 if kind == "counter" else value, labels, value)
            for task_id in (one.task_id, 99)
            for name, kind, labels, value in (
                ("cpu-wait-s", "counter", {}, waits),
                ("task-time-s", "counter", {"use": "engine"}, 0.25),
                ("failed-by", "counter", {"reason": "failed"}, 2.0),
                ("failed-by", "counter", {"reason": "expired"}, 3.0),
                ("out-queue-bytes", "gauge", {}, 100.0 + task_id),
                ("hot-key-share", "gauge", {"key": "a customer"}, 0.5),
            )
        ]
        topology = replace(observed(make_entry(), status, 0, at_s), figures=figures_of_tasks(rows), figures_at_s=at_s)
        found = by_series(increments.samples(topology))
        return {series: total for series, (total, _) in found.items() if series.metric.startswith("engine/")}

    def expected(waits: dict[str, float]) -> dict[Series, float]:
        of_task = {"engine/task-time-s/engine": 0.25, "engine/failed-by": 5.0, **waits}
        place = Series("near", "words", one.component, one.task_id, "")
        found = {place._replace(task_id=task, metric=name): of_task[name] for name in of_task for task in (1, 99)}
        sums = {**of_task, "engine/failed-by": 10.0, "engine/out-queue-bytes": 300.0}
        found |= {place._replace(task_id=0, metric=name): value for name, value in sums.items()}
        queue = place._replace(metric="engine/out-queue-bytes")
        return found | {queue: 101.0, queue._replace(task_id=99): 199.0}

    assert one.task_id == 1
    assert seen(100.0, 0.0) == expected({})
    assert seen(110.0, 0.5) == expected({"engine/cpu-wait-s": 0.5})
    assert seen(120.0, 0.0) == expected({"engine/cpu-wait-s": 0.0})


def test_metrics_of_stream_managers_are_kept_by_name_as_those_of_components(
    make_entry: MakeEntry, make_status: MakeStatus
) -> None:
    """They have no task. Labels are added, but for outcomes; a metrics manager has no history."""
    rows = [
        MetricsRow("", 0, process, name, kind, "1", 1e9 if kind == "counter" else value, labels, value)
        for process, name, kind, labels, value in (
            ("stmgr-1", "late-s", "counter", {}, 0.25),
            ("stmgr-1", "resident-bytes", "gauge", {}, 3e7),
            ("stmgr-1", "outlet-bytes", "gauge", {"task": "2"}, 100.0),
            ("stmgr-1", "outlet-bytes", "gauge", {"task": "3"}, 50.0),
            ("stmgr-1", "settled-roots", "counter", {"outcome": "complete"}, 9.0),
            ("stmgr-1", "settled-roots", "counter", {"outcome": "failed"}, 0.0),
            ("stmgr-2", "late-s", "counter", {}, 0.5),
            ("lines", "late-s", "counter", {}, 0.75),
            ("metricsmgr-1", "resident-bytes", "gauge", {}, 2e7),
        )
    ]
    rows.append(MetricsRow("lines", 1, "lines-1", "protocol-violations", "counter", "frames", 1.0, {}, 1.0))
    topology = replace(
        observed(make_entry(), make_status(), 0, 100.0), figures=figures_of_tasks(rows), figures_at_s=100.0
    )
    found = by_series(Increments(30.0).samples(topology))
    assert {
        (each.component, each.task_id, each.metric): total
        for each, (total, _) in found.items()
        if each.metric.startswith("engine/")
    } == {
        ("stmgr-1", 0, "engine/late-s"): 0.25,
        ("stmgr-1", 0, "engine/resident-bytes"): 3e7,
        ("stmgr-1", 0, "engine/outlet-bytes"): 150.0,
        ("stmgr-1", 0, "engine/settled-roots/complete"): 9.0,
        ("stmgr-2", 0, "engine/late-s"): 0.5,
    }


def test_figures_without_a_history_have_no_stream_managers() -> None:
    """Most readings are for pages, and look only at tasks."""
    assert FiguresOfTasks(keeps=False).of_owner("", 0, "stmgr-1") is None


RATE = 100  # tuples a second of one process, at most
LIFE = st.tuples(
    st.lists(st.integers(0, RATE), min_size=3, max_size=3),  # what each of three processes emits in a second
    st.sampled_from(["", "", "", "leader", "restart"]),
    st.lists(st.integers(0, 20), min_size=3, max_size=3),  # seconds until a new leader knows a process
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(seconds=st.lists(LIFE, min_size=2, max_size=40))
@example(seconds=[([99] * 3, "", [0] * 3), ([99] * 3, "leader", [12, 0, 0]), *[([99] * 3, "", [0] * 3)] * 20])
@example(seconds=[([0, 0, 99], "leader", [2, 0, 2]), ([76, 0, 100], "", [0] * 3), ([0, 0, 26], "", [0] * 3)])
def test_no_restart_and_no_new_leader_makes_a_spike(
    make_entry: MakeEntry, make_status: MakeStatus, seconds: list[tuple[list[int], str, list[int]]]
) -> None:
    """A new leader knows one process after the other, so its totals grow faster than any process emits."""
    increments, epoch = Increments(5.0), 1
    lives, former, unknown_s = [0, 0, 0], [0, 0, 0], [0, 0, 0]
    for second, (emitted, event, delays) in enumerate(seconds):
        if event == "leader":
            epoch, former, unknown_s = epoch + 1, [0, 0, 0], list(delays)
        elif event == "restart":
            former[0], lives[0] = former[0] + lives[0], 0
        lives = [life + more for life, more in zip(lives, emitted, strict=True)]
        total = sum(old + life for old, life, left_s in zip(former, lives, unknown_s, strict=True) if left_s <= 0)
        tasks = sum(left_s <= 0 for left_s in unknown_s)
        unknown_s = [left_s - 1 for left_s in unknown_s]
        status = make_status(leader=LeaderStatus(0, 10, "h1", epoch, 1000.0))
        for increment, passed_s in increments_of(
            increments.samples(observed(make_entry(), status, total, 100.0 + second, tasks))
        ):
            assert 0 <= increment / passed_s <= 3 * RATE


def test_levels_of_the_metrics_are_kept_of_components_and_tasks(
    observations: Observations, make_status: MakeStatus
) -> None:
    """Memory is summed, shares are means, and a latency is that of the slowest task."""
    rows = (
        MetricsRow("count", 2, "count-2", "resident-bytes", "gauge", "bytes", 100.0),
        MetricsRow("count", 2, "count-2", "gc-pause-s", "counter", "s", 9.0, {}, 0.1),
        MetricsRow("count", 2, "count-2", "task-time-s", "counter", "s", 9.0, {"use": "user-cpu"}, 0.5),
        MetricsRow("count", 2, "count-2", "execute-latency", "histogram", "s", 9.0, {}, 1.0, 0.1, 0.2),
        MetricsRow("count", 3, "count-3", "resident-bytes", "gauge", "bytes", 200.0),
        MetricsRow("count", 3, "count-3", "task-time-s", "counter", "s", 9.0, {"use": "engine"}, 0.3),
        MetricsRow("count", 3, "count-3", "execute-latency", "histogram", "s", 9.0, {}, 1.0, 0.3, 0.4),
    )
    tasks = (TaskStatus(2, "count", 1, "running", 1, restarts=2), TaskStatus(3, "count", 1, "running", 1, restarts=1))
    status = make_status(tasks=tasks, backpressure=(Culprit(3, "count", 1, 1000.0),))
    topology = replace(observations.topology("near", "words"), status=status, figures=figures_of_tasks(rows))
    found = {
        (series.task_id, series.metric): total
        for series, (total, _) in by_series(Increments(5.0).samples(topology)).items()
        if series.component == "count" and not series.metric.startswith("engine/")
    }
    assert {metric: value for (task_id, metric), value in found.items() if not task_id} == {
        "queue-bytes": 0.0,
        "latency-s": 0.0,
        "back-pressure": 1.0,
        "restarts": 3.0,
        "busy": 0.4,
        "gc-share": 0.1,
        "latency-p50-s": 0.3,
        "latency-p99-s": 0.4,
        "resident-bytes": 300.0,
    }
    assert {metric: value for (task_id, metric), value in found.items() if task_id == 3} == {
        "back-pressure": 1.0,
        "busy": 0.3,
        "latency-p99-s": 0.4,
        "resident-bytes": 200.0,
    }


def test_another_run_of_the_same_name_begins_at_zero(make_entry: MakeEntry, make_status: MakeStatus) -> None:
    """Its totals have nothing to do with those of the former run, also when they are greater."""
    increments = Increments(5.0)
    increments.samples(observed(make_entry(), make_status(), 10, 100.0))
    other = replace(make_entry(), id="words-2")
    assert increments_of(increments.samples(observed(other, make_status(), 1000, 101.0))) == []
    assert increments_of(increments.samples(observed(other, make_status(), 1010, 102.0))) == [(10, 1)]


def test_a_sample_is_in_one_bucket_of_each_resolution() -> None:
    """Tasks have buckets of a minute only: two thousand of them would write as many rows a second."""
    buckets = OpenBuckets()
    component = SeriesGroup("near", "words", "lines", 0, ("emit-count", "ack-count"))
    task = component._replace(task_id=1)
    buckets.add([Sample(component, (10.0, None), 1.0), Sample(task, (10.0, None), 1.0)], NOW + 59.5)
    assert buckets.take(NOW + 59.9) == {}
    ended = buckets.take(NOW + 60.0)
    assert {(step, start - NOW): set(found) for (step, start), found in ended.items()} == {
        (1, 59): {component},
        (10, 50): {component},
    }
    left = buckets.take(None)
    assert {(step, set(found) == {component, task}) for (step, _), found in left.items()} == {(60, True)}
    assert buckets.take(None) == {}


def test_metrics_that_were_read_once_are_counted_once(make_entry: MakeEntry, make_status: MakeStatus) -> None:
    """They are read more rarely than the status, and their time decides."""
    increments = Increments(30.0)
    found = []
    for at_s, read_at_s, emitted in ((100, 100, 10), (101, 100, 10), (110, 110, 40), (120, 120, 60), (121, 120, 60)):
        row = MetricsRow("lines", 1, "lines-1", "emit-count", "counter", "tuples", float(emitted))
        topology = observed(make_entry(), make_status(), 0, at_s)
        samples = increments.samples(replace(topology, figures=figures_of_tasks([row]), figures_at_s=float(read_at_s)))
        found.append(increments_of(samples, task_id=1))
    assert found == [[], [], [], [(50.0, 20.0)], []]


def test_each_counter_of_a_task_has_an_increment_of_its_own(make_entry: MakeEntry, make_status: MakeStatus) -> None:
    """One that is missing once, or begins again, has none; the others of its task do."""
    increments, found = Increments(30.0), []
    totals = (
        {"emit-count": 10, "ack-count": 5},
        {"emit-count": 30},
        {"emit-count": 20, "ack-count": 9},
        {"ack-count": 12},
    )
    for moment, of_task in enumerate(totals):
        rows = [MetricsRow("lines", 1, "lines-1", name, "counter", "tuples", float(n)) for name, n in of_task.items()]
        at_s = 100.0 + 20 * moment
        topology = replace(observed(make_entry(), make_status(), 0, at_s), figures=figures_of_tasks(rows))
        seen = by_series(increments.samples(replace(topology, figures_at_s=at_s)))
        found.append(
            {each.metric: total for each, (total, _) in seen.items() if each.task_id and each.metric in COUNTERS}
        )
    assert found == [{}, {"emit-count": 20.0}, {}, {"ack-count": 3.0}]


def test_figures_that_fail_for_long_are_not_recorded_again(make_entry: MakeEntry, make_status: MakeStatus) -> None:
    """The status is still read. Old levels are not those of now, and the leader has led all the time."""
    increments = Increments(30.0)
    rows = [MetricsRow("lines", 1, "lines-1", "resident-bytes", "gauge", "bytes", 100.0)]
    levels, rates = [], []
    for second in range(150):
        status = make_status(leader=LeaderStatus(0, 10, "h1", 2, 1000.0))
        topology = observed(make_entry(), status, 10 * second, 100.0 + second)
        samples = increments.samples(replace(topology, figures=figures_of_tasks(rows), figures_at_s=100.0))
        levels += [each for each in by_series(samples) if each.metric == "resident-bytes" and each.task_id]
        rates += increments_of(samples)
        increments.forget_before(100.0 + second - 60.0)
    assert len(levels) == 1
    assert len(rates) == 140  # without the first ten seconds of the leader


@pytest.mark.parametrize(
    ("ago_s", "of_tasks", "step_s"),
    [(60, False, 1), (901, False, 10), (6 * 3600 + 1, False, 60), (60, True, 60), (99 * 86400, False, 60)],
)
def test_the_finest_resolution_that_is_kept_is_read(ago_s: int, of_tasks: bool, step_s: int) -> None:
    """A chart of the last minutes has every second."""
    assert resolution_for(NOW - ago_s, NOW, of_tasks=of_tasks).step_s == step_s


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(steps=st.lists(st.floats(0.5, 25.0), min_size=40, max_size=60), start_s=st.floats(0.0, 120.0))
def test_each_minute_of_a_task_has_what_was_counted_in_it(
    make_entry: MakeEntry, make_status: MakeStatus, steps: list[float], start_s: float
) -> None:
    """Queries add up minutes, so an increment that lies across the border of one is divided."""
    increments, buckets, at_s = Increments(30.0), OpenBuckets(), start_s
    begun_s, ended_s = None, start_s
    for step in [0.0, *steps]:
        at_s += step
        row = MetricsRow("lines", 1, "lines-1", "emit-count", "counter", "tuples", 100.0 * at_s)
        topology = replace(observed(make_entry(), make_status(), 0, at_s), figures=figures_of_tasks([row]))
        samples = increments.samples(replace(topology, figures_at_s=at_s))
        for _, seconds in increments_of(samples, task_id=1):
            begun_s = at_s - seconds if begun_s is None else begun_s
            ended_s = at_s
        buckets.add(samples, NOW // 60 * 60 + at_s)
    assert begun_s is not None
    counted = SeriesGroup("near", "words", "lines", 1, COUNTERS)
    minutes = {
        start - NOW // 60 * 60: of[counted]
        for (step_s, start), of in buckets.take(None).items()
        if step_s == 60 and counted in of
    }
    for minute, bucket in minutes.items():
        seconds = min(minute + 60.0, ended_s) - max(float(minute), begun_s)
        assert bucket.totals[0] == pytest.approx(100.0 * seconds, rel=1e-6, abs=1e-3)
        assert bucket.weights[0] == pytest.approx(seconds, rel=1e-6, abs=1e-5)
        assert bucket.most[0] == pytest.approx(100.0, rel=1e-3)
        assert bucket.weights[1:] == [0.0] * (len(COUNTERS) - 1)
    assert sum(each.weights[0] for each in minutes.values()) == pytest.approx(ended_s - begun_s)
