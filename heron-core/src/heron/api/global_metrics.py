"""Counters that any code of a process may increment without a metric object: ``global_metrics.incr("cache_misses")``.

An instance is a process, so the counters belong to one task; the simulator's tasks share one process and one set of
counters. The counters are state of this module, because the functions are heronpy's and take no object.
"""

from __future__ import annotations

import threading
from typing import Protocol

from heron.api.metrics import IMetric, MultiCountMetric

__all__ = ["MetricsCollector", "incr", "init", "root_name", "safe_incr"]

root_name = "__auto__"


class MetricsCollector(Protocol):
    """Receives the counters; a `TopologyContext` is one."""

    def register_metric(self, name: str, metric: IMetric, time_bucket_in_sec: float) -> None:
        """Read `metric` every `time_bucket_in_sec` seconds, and report it under `name`."""
        ...


class _Registry:
    __slots__ = ("counts", "lock", "registered")

    def __init__(self) -> None:
        self.counts = MultiCountMetric()
        self.lock = threading.Lock()
        self.registered = False


_REGISTRY = _Registry()


def incr(key: str, to_add: int = 1) -> None:
    """Increment the counter of `key`. Call it only from the component's own thread."""
    _REGISTRY.counts.incr(key, to_add)


def safe_incr(key: str, to_add: int = 1) -> None:
    """Increment the counter of `key` from any thread. Every thread must then use this function."""
    with _REGISTRY.lock:
        _REGISTRY.counts.incr(key, to_add)


def init(metrics_collector: MetricsCollector, metrics_bucket: float) -> None:
    """Report the counters under `root_name` every `metrics_bucket` seconds. Only the first call has an effect.

    Components need not call it: an instance does so after `initialize`.
    """
    with _REGISTRY.lock:
        if not _REGISTRY.registered:
            metrics_collector.register_metric(root_name, _REGISTRY.counts, metrics_bucket)
            _REGISTRY.registered = True
