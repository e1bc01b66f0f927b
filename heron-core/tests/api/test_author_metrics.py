"""Metrics, global metrics, state and the serializer."""

from __future__ import annotations

import threading

import pytest

from heron.api import (
    AssignableMetrics,
    CountMetric,
    HashMapState,
    IMetric,
    MeanReducedMetric,
    MeanReducer,
    MultiAssignableMetrics,
    MultiCountMetric,
    MultiMeanReducedMetric,
    ReducedMetric,
    default_serializer,
    global_metrics,
)
from heron.errors import SerializationError, UsageError


def test_a_count_starts_again_after_each_reading() -> None:
    """The engine adds up the readings."""
    metric = CountMetric()
    metric.incr()
    metric.incr(to_add=4)
    assert [metric.get_value_and_reset(), metric.get_value_and_reset()] == [5, 0]


def test_a_key_that_was_counted_once_stays_in_the_readings() -> None:
    """A missing key would look like a dead task."""
    metric = MultiCountMetric()
    metric.add_key("quiet")
    metric.incr("busy", 3)
    assert metric.get_value_and_reset() == {"quiet": 0, "busy": 3}
    assert metric.get_value_and_reset() == {"quiet": 0, "busy": 0}


def test_a_mean_covers_one_period_and_is_none_without_values() -> None:
    """0 would look like a measurement."""
    metric = MeanReducedMetric()
    metric.update(1)
    metric.update(4)
    assert [metric.get_value_and_reset(), metric.get_value_and_reset()] == [2.5, None]
    by_key = MultiMeanReducedMetric()
    by_key.add_key("quiet")
    by_key.update("busy", 3)
    assert by_key.get_value_and_reset() == {"quiet": None, "busy": 3.0}


def test_a_mistake_in_a_reducer_is_shown_as_it_is() -> None:
    """Only an object without `init` is no reducer."""

    class Unfinished(MeanReducer):
        def init(self) -> None:
            self.total = self.start  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="start"):
        ReducedMetric(Unfinished)
    with pytest.raises(UsageError, match="is not a reducer"):
        ReducedMetric(dict)  # type: ignore[arg-type]


def test_an_assigned_value_stays_until_it_is_replaced() -> None:
    """It is a gauge."""
    metric = AssignableMetrics(1)
    metric.update("two")
    assert [metric.get_value_and_reset(), metric.get_value_and_reset()] == ["two", "two"]
    by_key = MultiAssignableMetrics()
    by_key.update("a", 1)
    by_key.update("a", 2)
    assert by_key.get_value_and_reset() == {"a": 2}


class Registered:
    """Records the registered metrics."""

    def __init__(self) -> None:
        self.metrics: list[tuple[str, IMetric, float]] = []

    def register_metric(self, name: str, metric: IMetric, time_bucket_in_sec: float) -> None:
        self.metrics.append((name, metric, time_bucket_in_sec))


def test_global_metrics_are_registered_once_and_counted_from_any_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any code of a process may count without a metric object."""
    monkeypatch.setattr(
        global_metrics, "_REGISTRY", global_metrics._Registry()
    )  # an earlier test may have registered it
    first, second = Registered(), Registered()
    global_metrics.init(first, 60)
    global_metrics.init(second, 60)
    ((name, metric, period),) = first.metrics
    assert (name, period, second.metrics) == ("__auto__", 60, [])

    threads = [threading.Thread(target=lambda: global_metrics.safe_incr("cache", 2)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    global_metrics.incr("cache")
    assert metric.get_value_and_reset() == {"cache": 9}


def test_a_state_returns_none_for_an_absent_key() -> None:
    """heronpy does the same."""
    state = HashMapState()
    state.put("a", 1)
    assert (state.get("a"), state.get("b"), list(state.enumerate())) == (1, None, [(0, "a")])
    state.clear()
    assert state.get("a") is None


def test_the_serializer_restores_values_and_names_the_type_of_others() -> None:
    """The author must see which value is wrong."""
    value = {"a": (1, 2.5, b"x", None)}
    assert default_serializer.deserialize(default_serializer.serialize(value)) == value
    with pytest.raises(SerializationError, match="value of type lock cannot be pickled"):
        default_serializer.serialize(threading.Lock())
    with pytest.raises(SerializationError, match="7 bytes cannot be unpickled"):
        default_serializer.deserialize(b"garbage")
