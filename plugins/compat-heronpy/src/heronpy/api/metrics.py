"""An author's own metrics. As in heronpy, a metric or reducer may leave out what it has no use for."""

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
    """A value that is read once per period."""

    def get_value_and_reset(self) -> object:
        """The value of the period that ends now."""
        return None


class IReducer(metrics.IReducer):
    """Folds the values of a period into one."""

    def init(self) -> None:
        """Forgets everything."""

    def reduce(self, value: float) -> None:
        """Takes in a value."""

    def extract(self) -> float | None:
        """The folded value."""
        return None
