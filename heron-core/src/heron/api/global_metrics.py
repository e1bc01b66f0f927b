"""Counters that any code of a process may raise without holding a metric:
``global_metrics.incr("cache_misses")``.

This is the one place of the API with state of the module, because the functions are heronpy's and take no
object to keep it in. An instance is a process, so "global" is one task; tasks that a simulator runs in one
process share it.
"""

from __future__ import annotations

import threading
from typing import Protocol

from heron.api.metrics import IMetric, MultiCountMetric

__all__ = ["MetricsCollector", "incr", "init", "root_name", "safe_incr"]

root_name = "__auto__"


class MetricsCollector(Protocol):
    """Where the counters are reported; a `TopologyContext` is one."""

    def register_metric(self, name: str, metric: IMetric, time_bucket_in_sec: float) -> None:
        """Has `metric` read every so many seconds."""
        ...


class _Registry:
    __slots__ = ("counts", "lock", "registered")

    def __init__(self) -> None:
        self.counts = MultiCountMetric()
        self.lock = threading.Lock()
        self.registered = False


_REGISTRY = _Registry()


def incr(key: str, to_add: int = 1) -> None:
    """Raises the counter of `key`; from the component's own thread."""
    _REGISTRY.counts.incr(key, to_add)


def safe_incr(key: str, to_add: int = 1) -> None:
    """Raises the counter of `key`; from any thread, as long as every thread uses this function."""
    with _REGISTRY.lock:
        _REGISTRY.counts.incr(key, to_add)


def init(metrics_collector: MetricsCollector, metrics_bucket: float) -> None:
    """Has the counters reported under `root_name` every `metrics_bucket` seconds; the first call counts.

    An instance calls it after the component's `initialize`, so that a component need not.
    """
    with _REGISTRY.lock:
        if not _REGISTRY.registered:
            metrics_collector.register_metric(root_name, _REGISTRY.counts, metrics_bucket)
            _REGISTRY.registered = True
