"""Metrics that authors define. As in heronpy, a metric or reducer may omit methods."""

from __future__ import annotations

from heron.api import metrics
from heron.api.metrics import (
    AssignableMetrics,
    CountMetric,
    MeanReducedMetric,
    MeanReducer,
    MultiAssignableMetrics,
    MultiCountMetric,
    MultiMeanReducedMetric,
    MultiReducedMetric,
    ReducedMetric,
)

__all__ = [
    "AssignableMetrics",
    "CountMetric",
    "IMetric",
    "IReducer",
    "MeanReducedMetric",
    "MeanReducer",
    "MultiAssignableMetrics",
    "MultiCountMetric",
    "MultiMeanReducedMetric",
    "MultiReducedMetric",
    "ReducedMetric",
]


class IMetric(metrics.IMetric):
    """A value that the engine reads once per period; here it has a default, None."""

    def get_value_and_reset(self) -> object:
        """Return the value of the period that ends now."""
        return None


class IReducer(metrics.IReducer):
    """Folds the values of a period into one value."""

    def init(self) -> None:
        """Reset."""

    def reduce(self, value: float) -> None:
        """Add a value."""

    def extract(self) -> float | None:
        """Return the folded value."""
        return None
