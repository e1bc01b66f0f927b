"""Rates, sums and quantiles of metrics, and the figures of components."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from heron.ipc.documents.metric_names import (
    EMIT_COUNT,
    EVENT_FIRST_TUPLE,
    EXECUTE_COUNT,
    EXECUTE_LATENCY,
    IN_QUEUE_BYTES,
    OUTLET_BYTES,
)
from heron.ipc.documents.metrics_table import MetricsRow, decode_metrics, encode_metrics
from heron.ipc.documents.status import SinkOutage, Unreached
from heron.spi.metricsink import OF_AUTHORS, Event, Histogram, Metric, MetricKind, MetricsRecord, Source
from heron.tmanager.metrics.metrics_store import MetricsStore, quantile

FRESH_S = 10.0
BOUNDS = (0.1, 0.2, 0.5)


def record(task_id: int, at_s: float, *metrics: Metric, incarnation: int = 1) -> MetricsRecord:
    """A record of a task of component count in container 1."""
    return MetricsRecord(Source("wc", 1, f"count-{task_id}", incarnation, "count", task_id), at_s, metrics)


def counted(count: float) -> Metric:
    return Metric("execute-count", MetricKind.COUNTER, "tuples", count, {"stream": "default"})


def queued(size: float) -> Metric:
    return Metric("in-queue-bytes", MetricKind.GAUGE, "bytes", size)


def timed(*counts: int) -> Metric:
    return Metric("execute-latency", MetricKind.HISTOGRAM, "s", Histogram(BOUNDS, counts, 1.0))


def only(rows: tuple[MetricsRow, ...]) -> MetricsRow:
    assert len(rows) == 1, rows
    return rows[0]


def rows_of(
    store: MetricsStore, component: str, task_id: int, *, by_task: bool, now_s: float, names: Collection[str] = ()
) -> tuple[MetricsRow, ...]:
    """As a command reads them."""
    table = store.table(component, task_id, by_task=by_task, names=names, now_s=now_s)
    return decode_metrics(encode_metrics(table))


@pytest.fixture
def store() -> MetricsStore:
    return MetricsStore(1.0)


def test_a_rate_is_that_between_the_last_two_records(store: MetricsStore) -> None:
    """After one record there is no rate."""
    store.take(record(2, 100.0, counted(10)), 0.0)
    assert only(rows_of(store, "", 0, by_task=True, now_s=0.0)).rate_per_s is None
    store.take(record(2, 101.0, counted(1000)), 1.0)
    store.take(record(2, 103.0, counted(1010)), 3.0)
    row = only(rows_of(store, "", 0, by_task=True, now_s=3.0))
    assert (row.value, row.rate_per_s, row.labels) == (1010.0, 5.0, {"stream": "default"})


def test_only_metrics_of_the_wanted_names_are_returned(store: MetricsStore) -> None:
    """The others cost neither time nor bytes; without names all are returned, with the same rates."""
    store.take(record(2, 100.0, counted(10)), 0.0)
    store.take(record(2, 102.0, counted(30)), 2.0)
    every = rows_of(store, "", 0, by_task=True, now_s=2.0)
    (name,) = {each.name for each in every}
    assert rows_of(store, "", 0, by_task=True, names=(name, "other"), now_s=2.0) == every
    assert rows_of(store, "", 0, by_task=True, names=("other",), now_s=2.0) == ()


def test_of_a_metric_with_a_value_for_each_key_the_first_are_sent(store: MetricsStore) -> None:
    """The tracker reads the metrics of all tasks each second, and each metric costs time."""
    gauges = [Metric(f"user/k/{key}", MetricKind.GAUGE, "1", 7.0) for key in range(1000)]
    store.take(record(2, 100.0, *gauges, counted(10)), 0.0)
    found = rows_of(store, "", 0, by_task=True, names=(OF_AUTHORS, "execute-count"), now_s=1.0)
    assert {each.name for each in found} == {"execute-count", *(f"user/k/{key}" for key in range(33))}
    assert len(rows_of(store, "", 0, by_task=True, now_s=1.0)) == 1001


def test_one_name_selects_the_metrics_of_all_authors(store: MetricsStore) -> None:
    """A reader does not know what an author has registered."""
    gauges = [Metric(name, MetricKind.GAUGE, "1", 7.0) for name in ("user/size", "user/by-word/a", "user-errors")]
    store.take(record(2, 100.0, *gauges, counted(10)), 0.0)
    found = rows_of(store, "", 0, by_task=True, names=(OF_AUTHORS, "user-errors"), now_s=1.0)
    assert [each.name for each in found] == ["user-errors", "user/by-word/a", "user/size"]
    assert [each.name for each in rows_of(store, "", 0, by_task=True, names=("user-errors",), now_s=1.0)] == [
        "user-errors"
    ]


def test_late_and_repeated_records_change_nothing(store: MetricsStore) -> None:
    """The last record of a task can arrive over two paths."""
    store.take(record(2, 100.0, counted(10)), 0.0)
    store.take(record(2, 102.0, counted(30)), 2.0)
    for at_s, count in ((102.0, 30), (101.0, 20)):
        store.take(record(2, at_s, counted(count)), 2.5)
    row = only(rows_of(store, "", 0, by_task=True, now_s=3.0))
    assert (row.value, row.rate_per_s) == (30.0, 10.0)


def test_a_new_incarnation_has_no_rate_at_first(store: MetricsStore) -> None:
    """Its counters start at 0. A late record of the former incarnation is ignored."""
    store.take(record(2, 100.0, counted(10)), 0.0)
    store.take(record(2, 101.0, counted(1), incarnation=2), 1.0)
    store.take(record(2, 102.0, counted(20)), 2.0)
    row = only(rows_of(store, "", 0, by_task=True, now_s=2.0))
    assert (row.value, row.rate_per_s) == (1.0, None)


def test_tasks_of_a_component_are_summed_up(store: MetricsStore) -> None:
    """The sums include counters, gauges and histograms; by task there are no sums."""
    for task_id in (2, 3):
        store.take(record(task_id, 100.0, counted(0), queued(7), timed(0, 0, 0, 0)), 0.0)
        store.take(record(task_id, 102.0, counted(10 * task_id), queued(5), timed(2, 0, 0, 0)), 2.0)
    count, latency, queue = sorted(rows_of(store, "", 0, by_task=False, now_s=2.0), key=lambda row: row.name)
    assert (count.process, count.task_id, count.value, count.rate_per_s) == ("count", 0, 50.0, 25.0)
    assert (latency.value, latency.rate_per_s, latency.p50) == (4.0, 2.0, 0.05)
    assert (queue.value, queue.rate_per_s) == (10.0, None)
    assert [row.task_id for row in rows_of(store, "count", 0, by_task=True, now_s=2.0)] == [2, 2, 2, 3, 3, 3]
    assert {row.task_id for row in rows_of(store, "", 3, by_task=False, now_s=2.0)} == {3}
    assert rows_of(store, "word", 0, by_task=True, now_s=2.0) == ()


def test_the_rows_of_engine_processes_come_last(store: MetricsStore) -> None:
    """Users look for their components first."""
    store.take(MetricsRecord(Source("wc", 1, "stmgr", 1), 100.0, (queued(1),)), 0.0)
    store.take(record(2, 100.0, queued(1)), 0.0)
    assert [row.process for row in rows_of(store, "", 0, by_task=False, now_s=0.0)] == ["count", "stmgr-1"]


def test_a_stale_process_has_totals_only(store: MetricsStore) -> None:
    """Its rates and queue sizes are out of date."""
    store.take(record(2, 100.0, counted(10), queued(7), timed(0, 0, 0, 0)), 0.0)
    store.take(record(2, 101.0, counted(20), queued(7), timed(5, 0, 0, 0)), 1.0)
    rows = rows_of(store, "", 0, by_task=True, now_s=1.0 + FRESH_S)
    assert [(row.name, row.value, row.rate_per_s, row.p50) for row in rows] == [
        ("execute-count", 20.0, None, None),
        ("execute-latency", 5.0, None, None),
    ]


def test_histograms_with_different_buckets_are_not_subtracted(store: MetricsStore) -> None:
    """The author's code may change the buckets between two records."""
    store.take(record(2, 100.0, timed(0, 0, 0, 0)), 0.0)
    other = Metric("execute-latency", MetricKind.HISTOGRAM, "s", Histogram((1.0,), (3, 4), 1.0))
    store.take(record(2, 101.0, other), 1.0)
    row = only(rows_of(store, "", 0, by_task=True, now_s=1.0))
    assert (row.value, row.p50) == (7.0, None)


def test_quantiles_are_interpolated_within_a_bucket() -> None:
    """Entries above the last bound count as equal to it."""
    assert quantile(BOUNDS, (0, 0, 0, 0), 0.5) is None
    assert quantile(BOUNDS, (4, 0, 0, 0), 0.5) == pytest.approx(0.05)
    assert quantile(BOUNDS, (0, 10, 0, 0), 0.99) == pytest.approx(0.199)
    assert quantile(BOUNDS, (1, 0, 1, 0), 0.5) == pytest.approx(0.1)
    assert quantile(BOUNDS, (0, 0, 0, 3), 0.5) == 0.5


def test_only_present_outages_of_sinks_are_reported(store: MetricsStore) -> None:
    """An outage that is over, or that a stale metrics manager reported, is not one."""

    def managed(container_id: int, outage_s: float) -> MetricsRecord:
        labels = {"sink": "graphite", "reason": "flush: connection refused"}
        metric = Metric("sink-outage-s", MetricKind.GAUGE, "s", outage_s, labels)
        return MetricsRecord(Source("wc", container_id, "metricsmgr", 1), 100.0, (metric,))

    store.take(managed(1, 2.5), 0.0)
    store.take(managed(2, 0.0), 0.0)
    assert store.outages(1.0) == (SinkOutage("graphite", 1, 2.5, "flush: connection refused"),)
    assert store.outages(FRESH_S + 1.0) == ()


def test_unreached_stream_managers_come_from_the_reports_of_their_peers(store: MetricsStore) -> None:
    """Each side of a broken link names the other. Reports of a stale stream manager do not count."""

    def reported(container_id: int, peer: int, silent_s: float) -> MetricsRecord:
        metric = Metric("peer-silent-s", MetricKind.GAUGE, "s", silent_s, {"peer": str(peer)})
        return MetricsRecord(Source("wc", container_id, "stmgr", 1), 100.0, (metric,))

    store.take(reported(2, 1, 4.0), 0.0)
    store.take(reported(1, 2, 5.0), FRESH_S)
    assert store.unreached(1.0 + FRESH_S) == (Unreached(2, 1, 5.0),)


def counters(at_s: float, incarnation: int, **counts: float) -> MetricsRecord:
    """A record of task 2 (component count) in container 1."""
    metrics = tuple(
        Metric(name.replace("_", "-"), MetricKind.COUNTER, "tuples", count) for name, count in counts.items()
    )
    return MetricsRecord(Source("wc", 1, "count-2", incarnation, "count", 2), at_s, metrics)


def test_figures_are_sums_over_incarnations(store: MetricsStore) -> None:
    """The counts of a dead process remain in the status."""
    store.take(counters(1.0, 1, execute_count=100), 1.0)
    store.take(counters(2.0, 2, execute_count=30), 2.0)
    store.take(counters(1.5, 1, execute_count=90), 2.5)
    assert store.figures("bolt", [2, 3], 3.0).executed == 130
    assert store.figures("bolt", [2, 3], 3.0).tasks == 1  # task 3 has not reported


def test_labels_of_one_counter_are_added_up(store: MetricsStore) -> None:
    """A task counts per stream; the status shows the sum."""
    record = MetricsRecord(
        Source("wc", 1, "word-1", 1, "word", 1),
        1.0,
        tuple(Metric(EMIT_COUNT, MetricKind.COUNTER, "tuples", 5, {"stream": name}) for name in ("a", "b")),
    )
    store.take(record, 1.0)
    assert store.figures("spout", [1], 1.0).emitted == 10


def test_the_rate_of_a_component_is_that_of_its_kind(store: MetricsStore) -> None:
    """The rate of a spout counts emits, that of a bolt counts executes. A stale process has none."""
    store.take(counters(10.0, 1, execute_count=100, emit_count=7), 50.0)
    store.take(counters(12.0, 1, execute_count=300, emit_count=9), 52.0)
    assert store.figures("bolt", [2], 52.0).rate_per_s == 100.0
    assert store.figures("spout", [2], 52.0).rate_per_s == 1.0
    assert store.figures("bolt", [2], 99.0).rate_per_s == 0.0


def test_the_waiting_bytes_of_a_component_include_all_queues(store: MetricsStore) -> None:
    """Bytes wait in the queues of its instances and in the stream managers of all containers."""
    gauge = MetricKind.GAUGE
    own = Metric(IN_QUEUE_BYTES, gauge, "bytes", 10)
    outlets = tuple(Metric(OUTLET_BYTES, gauge, "bytes", size, {"task": task}) for task, size in (("2", 5), ("1", 9)))
    store.take(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), 1.0, (own,)), 1.0)
    store.take(MetricsRecord(Source("wc", 2, "stmgr", 1), 1.0, outlets), 1.0)
    assert store.figures("bolt", [2], 2.0).queue_bytes == 15
    assert store.figures("bolt", [2], 60.0).queue_bytes == 0


def test_latency_is_the_mean_of_all_entries(store: MetricsStore) -> None:
    """Histograms are added up."""
    histogram = Histogram((0.1, 1.0), (3, 1, 0), 2.0)
    metric = Metric(EXECUTE_LATENCY, MetricKind.HISTOGRAM, "s", histogram)
    store.take(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), 1.0, (metric,)), 1.0)
    assert store.figures("bolt", [2], 1.0).latency_s == 0.5


def test_the_first_tuple_is_the_earliest_of_all(store: MetricsStore) -> None:
    """Each bolt task reports its first tuple."""
    for at_s in (20.0, 10.0, 30.0):
        event = Event("e", EVENT_FIRST_TUPLE, at_s, "task-2")
        store.take(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), at_s, (), (event,)), at_s)
    assert store.first_tuple_at_s == 10.0


def test_an_unknown_metric_changes_nothing(store: MetricsStore) -> None:
    """Metrics of users can have any name."""
    store.take(counters(1.0, 1, my_metric=5, execute_count=1), 1.0)
    assert store.figures("bolt", [2], 1.0).executed == 1
    assert EXECUTE_COUNT == "execute-count"
