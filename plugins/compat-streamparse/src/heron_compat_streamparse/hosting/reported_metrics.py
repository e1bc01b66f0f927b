"""Metrics that a component reports by name, without registering them."""

from __future__ import annotations

from heron.api import TopologyContext
from heron.api.metrics import AssignableMetrics, CountMetric, MultiAssignableMetrics

__all__ = ["ReportedMetrics"]

_PERIOD_S = 10.0


class ReportedMetrics:
    """Metrics that a component reports by name; each is registered at its first value."""

    def __init__(self, context: TopologyContext) -> None:
        self._context = context
        self._gauges: dict[str, AssignableMetrics] = {}
        self._counts: dict[str, CountMetric] = {}
        self._by_key: dict[str, MultiAssignableMetrics] = {}

    def set(self, name: str, value: object) -> None:
        """Report a value: None adds one to a count, a dict has gauges by key, any other value is that of a gauge."""
        if value is None:
            if name not in self._counts:
                self._counts[name] = CountMetric()
                self._context.register_metric(name, self._counts[name], _PERIOD_S)
            self._counts[name].incr()
        elif isinstance(value, dict):
            if name not in self._by_key:
                self._by_key[name] = MultiAssignableMetrics()
                self._context.register_metric(name, self._by_key[name], _PERIOD_S)
            for key, each in value.items():
                self._by_key[name].update(str(key), each)
        elif name in self._gauges:
            self._gauges[name].update(value)
        else:
            self._gauges[name] = AssignableMetrics(value)
            self._context.register_metric(name, self._gauges[name], _PERIOD_S)
