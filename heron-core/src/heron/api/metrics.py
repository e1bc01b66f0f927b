"""Metrics that authors define. `TopologyContext.register_metric` registers them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from heron.author_text import short_text
from heron.errors import UsageError

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


class IMetric(ABC):
    """A value that the engine reads once per period, from the component's thread."""

    @abstractmethod
    def get_value_and_reset(self) -> object:
        """Return the value of the period that ends now: a number, ``{key: number}``, or None for no value."""


class CountMetric(IMetric):
    """A count that begins at 0 in each period."""

    def __init__(self) -> None:
        self.value = 0

    def incr(self, to_add: int = 1) -> None:
        """Add `to_add` to the count."""
        self.value += to_add

    def get_value_and_reset(self) -> int:
        """Return the count of this period, and reset it to 0."""
        value, self.value = self.value, 0
        return value


class MultiCountMetric(IMetric):
    """One count for each key. After its first use, a key is reported in every period."""

    def __init__(self) -> None:
        self.value: dict[str, CountMetric] = {}

    def add_key(self, key: str) -> None:
        """Report `key` from now on, even while its count is 0."""
        self.incr(key, to_add=0)

    def incr(self, key: str, to_add: int = 1) -> None:
        """Add `to_add` to the count of `key`."""
        if key not in self.value:
            self.value[key] = CountMetric()
        self.value[key].incr(to_add)

    def get_value_and_reset(self) -> dict[str, int]:
        """Return the counts of this period by key, and reset them to 0."""
        return {key: count.get_value_and_reset() for key, count in self.value.items()}


class IReducer(ABC):
    """Folds the values of a period into one value."""

    @abstractmethod
    def init(self) -> None:
        """Reset. Called before the first value of each period."""

    @abstractmethod
    def reduce(self, value: float) -> None:
        """Add a value."""

    @abstractmethod
    def extract(self) -> float | None:
        """Return the folded value, or None when the period had no value."""


class MeanReducer(IReducer):
    """The arithmetic mean."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.count = 0

    def init(self) -> None:
        """Reset."""
        self.sum = 0.0
        self.count = 0

    def reduce(self, value: float) -> None:
        """Add a value."""
        self.sum += float(value)
        self.count += 1

    def extract(self) -> float | None:
        """Return the mean, or None when the period had no value."""
        return self.sum / self.count if self.count else None


class ReducedMetric(IMetric):
    """Values that a reducer folds. The argument is the class of the reducer.

    Raises:
        UsageError: when an object of the class has no method `init`.
    """

    def __init__(self, reducer_cls: type[IReducer]) -> None:
        self.reducer = reducer_cls()
        if not callable(getattr(self.reducer, "init", None)):
            msg = f"ReducedMetric: {short_text(self.reducer)} is not a reducer; give a class derived from IReducer"
            raise UsageError(msg)
        self.reducer.init()

    def update(self, value: float) -> None:
        """Add a value."""
        self.reducer.reduce(value)

    def get_value_and_reset(self) -> float | None:
        """Return the folded value of this period, and reset the reducer."""
        value = self.reducer.extract()
        self.reducer.init()
        return value


class MultiReducedMetric(IMetric):
    """One reduced value for each key. The argument is the class of the reducer."""

    def __init__(self, reducer: type[IReducer]) -> None:
        self.value: dict[str, ReducedMetric] = {}
        self.reducer = reducer

    def update(self, key: str, value: float) -> None:
        """Add a value for `key`."""
        self.add_key(key)
        self.value[key].update(value)

    def add_key(self, key: str) -> None:
        """Report `key` from now on, as None while it has no value."""
        if key not in self.value:
            self.value[key] = ReducedMetric(self.reducer)

    def get_value_and_reset(self) -> dict[str, float | None]:
        """Return the folded values of this period by key, and reset the reducers."""
        return {key: metric.get_value_and_reset() for key, metric in self.value.items()}


class AssignableMetrics(IMetric):
    """A gauge: a value that stays until `update` replaces it. Reading does not reset it."""

    def __init__(self, init_val: object) -> None:
        self.value = init_val

    def update(self, value: object) -> None:
        """Replace the value."""
        self.value = value

    def get_value_and_reset(self) -> object:
        """Return the present value."""
        return self.value


class MultiAssignableMetrics(IMetric):
    """One gauge for each key."""

    def __init__(self) -> None:
        self.map: dict[str, AssignableMetrics] = {}

    def update(self, key: str, value: object) -> None:
        """Replace the value of `key`."""
        if key in self.map:
            self.map[key].update(value)
        else:
            self.map[key] = AssignableMetrics(value)

    def get_value_and_reset(self) -> dict[str, object]:
        """Return the present values by key."""
        return {key: metric.get_value_and_reset() for key, metric in self.map.items()}


def MeanReducedMetric() -> ReducedMetric:  # a factory that heronpy names like a class
    """Return a metric of the mean of each period."""
    return ReducedMetric(MeanReducer)


def MultiMeanReducedMetric() -> MultiReducedMetric:  # a factory that heronpy names like a class
    """Return a metric of the mean of each key in each period."""
    return MultiReducedMetric(MeanReducer)
