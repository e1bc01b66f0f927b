"""What the topology manager knows: tasks, figures, errors, registrations, and the order of the farewell."""

from __future__ import annotations

import pytest

from heron.ipc.metric_names import (
    EMIT_COUNT,
    EVENT_FIRST_TUPLE,
    EXECUTE_COUNT,
    EXECUTE_LATENCY,
    IN_QUEUE_BYTES,
    OUTLET_BYTES,
)
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import StreamManagerLocation
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, Source
from heron.tmanager.error_list import ErrorList
from heron.tmanager.metrics_cache import MetricsCache
from heron.tmanager.registry import Registration, Registry
from heron.tmanager.stop_sequence import StopSequence
from heron.tmanager.task_table import TaskEvent, TaskNews, TaskState, TaskTable
from heron.tmanager.topology_state import ENDED, TABLE, LifeEvent, LifePhase


def counters(at_s: float, incarnation: int, **counts: float) -> MetricsRecord:
    """A record of task 2 (component count) in container 1."""
    metrics = tuple(
        Metric(name.replace("_", "-"), MetricKind.COUNTER, "tuples", count) for name, count in counts.items()
    )
    return MetricsRecord(Source("wc", 1, "count-2", incarnation, "count", 2), at_s, metrics)


def test_an_end_is_for_ever(packing: PackingPlan) -> None:
    """A process that dies after its task has ended is started again, but has nothing to do."""
    table = TaskTable(packing)
    assert table.take(TaskNews(2, 1, TaskEvent.ENDED))
    assert not table.take(TaskNews(2, 2, TaskEvent.INITIALISED))
    assert not table.take(TaskNews(2, 2, TaskEvent.DIED, "x"))
    assert table.state(2) is TaskState.ENDED


def test_news_of_a_former_incarnation_is_no_news(packing: PackingPlan) -> None:
    """Reports of stream managers and executors cross each other."""
    table = TaskTable(packing)
    table.take(TaskNews(2, 2, TaskEvent.INITIALISED))
    assert not table.take(TaskNews(2, 1, TaskEvent.DIED, "killed", 0))
    assert table.state(2) is TaskState.RUNNING
    assert table.take(TaskNews(2, 1, TaskEvent.ENDED))


def test_a_task_comes_back(packing: PackingPlan) -> None:
    """The states that people see after a kill, with the reason and the count kept."""
    table = TaskTable(packing)
    seen = []
    for news in (
        TaskNews(2, 1, TaskEvent.STARTED, restarts=0),
        TaskNews(2, 1, TaskEvent.INITIALISED),
        TaskNews(2, 1, TaskEvent.STARTED, restarts=0),  # told again to a new leader
        TaskNews(2, 1, TaskEvent.DIED, "killed", 1),
        TaskNews(2, 2, TaskEvent.STARTED, restarts=1),
        TaskNews(2, 2, TaskEvent.INITIALISED),
    ):
        table.take(news)
        seen.append(table.statuses()[1].state)
    assert seen == ["starting", "running", "running", "restarting", "starting", "running"]
    assert (table.statuses()[1].restarts, table.statuses()[1].last_error) == (1, "killed")


def test_unknown_tasks_are_ignored(packing: PackingPlan) -> None:
    """A report of a task that an update has removed."""
    table = TaskTable(packing)
    assert not table.take(TaskNews(99, 1, TaskEvent.ENDED))
    assert table.place(99) == ("", 0)


def test_figures_are_sums_over_incarnations() -> None:
    """What a dead process has counted was counted (statuses are cumulative)."""
    cache = MetricsCache()
    cache.take(counters(1.0, 1, execute_count=100), 1.0)
    cache.take(counters(2.0, 2, execute_count=30), 2.0)
    cache.take(counters(1.5, 1, execute_count=90), 2.5)
    assert cache.figures("bolt", [2, 3], 3.0).executed == 130


def test_labels_of_one_counter_are_added_up() -> None:
    """A task counts by stream; people see the component."""
    record = MetricsRecord(
        Source("wc", 1, "word-1", 1, "word", 1),
        1.0,
        tuple(Metric(EMIT_COUNT, MetricKind.COUNTER, "tuples", 5, {"stream": name}) for name in ("a", "b")),
    )
    cache = MetricsCache()
    cache.take(record, 1.0)
    assert cache.figures("spout", [1], 1.0).emitted == 10


def test_rates_come_from_successive_records_and_fade() -> None:
    """A spout's rate is what it emits, a bolt's what it executes; a process that is gone has none."""
    cache = MetricsCache()
    cache.take(counters(10.0, 1, execute_count=100, emit_count=7), 50.0)
    cache.take(counters(12.0, 1, execute_count=300, emit_count=9), 52.0)
    assert cache.figures("bolt", [2], 52.0).rate_per_s == 100.0
    assert cache.figures("spout", [2], 52.0).rate_per_s == 1.0
    assert cache.figures("bolt", [2], 99.0).rate_per_s == 0.0


def test_what_waits_for_a_component_is_counted_wherever_it_waits() -> None:
    """In its instances' own queues, and in stream managers of any container."""
    gauge = MetricKind.GAUGE
    cache = MetricsCache()
    own = Metric(IN_QUEUE_BYTES, gauge, "bytes", 10)
    outlets = tuple(Metric(OUTLET_BYTES, gauge, "bytes", size, {"task": task}) for task, size in (("2", 5), ("1", 9)))
    cache.take(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), 1.0, (own,)), 1.0)
    cache.take(MetricsRecord(Source("wc", 2, "stmgr", 1), 1.0, outlets), 1.0)
    assert cache.figures("bolt", [2], 2.0).queue_bytes == 15
    assert cache.figures("bolt", [2], 60.0).queue_bytes == 0


def test_latency_is_the_mean_of_all_entries() -> None:
    """Histograms merge by addition."""
    cache = MetricsCache()
    histogram = Histogram((0.1, 1.0), (3, 1, 0), 2.0)
    metric = Metric(EXECUTE_LATENCY, MetricKind.HISTOGRAM, "s", histogram)
    cache.take(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), 1.0, (metric,)), 1.0)
    assert cache.figures("bolt", [2], 1.0).latency_s == 0.5


def test_the_first_tuple_is_the_earliest_of_all() -> None:
    """Each bolt task has a first; the topology's is the first of those."""
    cache = MetricsCache()
    for at_s in (20.0, 10.0, 30.0):
        event = Event("e", EVENT_FIRST_TUPLE, at_s, "task-2")
        cache.take(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), at_s, (), (event,)), at_s)
    assert cache.first_tuple_at_s == 10.0


def test_an_unknown_metric_changes_nothing() -> None:
    """Users' own metrics have any name."""
    cache = MetricsCache()
    cache.take(counters(1.0, 1, my_metric=5, execute_count=1), 1.0)
    assert cache.figures("bolt", [2], 1.0).executed == 1
    assert EXECUTE_COUNT == "execute-count"


def test_each_error_is_kept_once_and_the_newest_fifty() -> None:
    """A failing task must not push everything else out."""
    errors = ErrorList()
    assert errors.add("first")
    assert not errors.add("first")
    assert not errors.add("")
    for number in range(50):
        errors.add(f"error {number}")
    assert len(errors.texts()) == 50
    assert "first" not in errors.texts()


def test_registrations_are_told_apart() -> None:
    """Only a change is a reason for a new plan."""
    registry = Registry(silence_s=10.0)
    first = StreamManagerLocation(1, 5, "a", "h", 1)
    second = StreamManagerLocation(1, 6, "b", "h", 2)
    wanted = [
        (first, Registration.NEW),
        (first, Registration.SAME),
        (second, Registration.CHANGED),
        (first, Registration.STALE),
    ]
    assert [registry.register(each, 0.0) for each, _ in wanted] == [kind for _, kind in wanted]
    assert registry.locations() == {1: second}


def test_a_silence_that_ends_can_begin_again() -> None:
    """Each silence is told once, and so is its end."""
    registry = Registry(silence_s=10.0)
    registry.register(StreamManagerLocation(1, 5, "a", "h", 1), 0.0)
    assert registry.newly_silent(10.0) == (1,)
    assert registry.newly_silent(11.0) == ()
    assert registry.heard(1, 12.0)
    assert not registry.heard(1, 13.0)
    assert registry.newly_silent(23.0) == (1,)
    assert not registry.heard(9, 0.0)


@pytest.mark.parametrize("own", [0, 1, 2])
def test_the_leaders_own_container_is_told_last(own: int) -> None:
    """Its executor ends the topology manager: before, everybody else must know."""
    first, second = sorted({0, 1, 2} - {own})
    sequence = StopSequence((0, 1, 2), own, 0.0)
    assert sequence.due((0, 1, 2), 0.0) == {first, second}
    sequence.confirmed(first)
    assert sequence.due((0, 1, 2), 0.1) == frozenset()
    sequence.confirmed(second)
    assert sequence.due((0, 1, 2), 0.2) == {own}
    assert sequence.due((0, 1, 2), 0.3) == frozenset()


def test_nobody_is_waited_for_too_long_and_who_comes_later_is_told() -> None:
    """A container that is just being started again."""
    sequence = StopSequence((0, 1, 2), 0, 0.0)
    assert sequence.due((0, 1), 0.0) == {1}
    assert sequence.due((0, 1), 2.0) == {0}
    sequence.connected(2)
    sequence.connected(1)
    assert sequence.due((0, 1, 2), 2.1) == {1, 2}


@pytest.mark.parametrize("phase", LifePhase)
def test_nothing_leaves_an_end(phase: LifePhase) -> None:
    """Finished, failed and killed are final; every other phase can fail and be killed."""
    events = {event for state, event in TABLE if state is phase}
    assert events == set() if phase in ENDED else {LifeEvent.FAILED, LifeEvent.KILLED} <= events
