"""An author's own metrics, registered with `TopologyContext.register_metric`."""

from __future__ import annotations

from abc import ABC, abstractmethod

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
    """A value that is read once per period, from the component's thread."""

    @abstractmethod
    def get_value_and_reset(self) -> object:
        """The value of the period that ends now: a number, ``{key: number}``, or None when there is none."""


class CountMetric(IMetric):
    """Counts up from zero in each period."""

    def __init__(self) -> None:
        self.value = 0

    def incr(self, to_add: int = 1) -> None:
        """Adds to the count."""
        self.value += to_add

    def get_value_and_reset(self) -> int:
        """The count of this period."""
        value, self.value = self.value, 0
        return value


class MultiCountMetric(IMetric):
    """One count per key; a key that was seen once is reported in every later period."""

    def __init__(self) -> None:
        self.value: dict[str, CountMetric] = {}

    def add_key(self, key: str) -> None:
        """Reports `key` from now on, even while it is zero."""
        self.incr(key, to_add=0)

    def incr(self, key: str, to_add: int = 1) -> None:
        """Adds to the count of `key`."""
        if key not in self.value:
            self.value[key] = CountMetric()
        self.value[key].incr(to_add)

    def get_value_and_reset(self) -> dict[str, int]:
        """The counts of this period by key."""
        return {key: count.get_value_and_reset() for key, count in self.value.items()}


class IReducer(ABC):
    """Folds the values of a period into one."""

    @abstractmethod
    def init(self) -> None:
        """Forgets everything; called before the first value of each period."""

    @abstractmethod
    def reduce(self, value: float) -> None:
        """Takes in a value."""

    @abstractmethod
    def extract(self) -> float | None:
        """The folded value, or None when there was none."""


class MeanReducer(IReducer):
    """The arithmetic mean."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.count = 0

    def init(self) -> None:
        """Forgets everything."""
        self.sum = 0.0
        self.count = 0

    def reduce(self, value: float) -> None:
        """Takes in a value."""
        self.sum += float(value)
        self.count += 1

    def extract(self) -> float | None:
        """The mean, or None of no values."""
        return self.sum / self.count if self.count else None


class ReducedMetric(IMetric):
    """Values folded by a reducer; takes the reducer's class."""

    def __init__(self, reducer_cls: type[IReducer]) -> None:
        self.reducer = reducer_cls()
        self.reducer.init()

    def update(self, value: float) -> None:
        """Takes in a value."""
        self.reducer.reduce(value)

    def get_value_and_reset(self) -> float | None:
        """The folded value of this period."""
        value = self.reducer.extract()
        self.reducer.init()
        return value


class MultiReducedMetric(IMetric):
    """One reduced value per key; takes the reducer's class."""

    def __init__(self, reducer: type[IReducer]) -> None:
        self.value: dict[str, ReducedMetric] = {}
        self.reducer = reducer

    def update(self, key: str, value: float) -> None:
        """Takes in a value for `key`."""
        self.add_key(key)
        self.value[key].update(value)

    def add_key(self, key: str) -> None:
        """Reports `key` from now on, as None while it has no value."""
        if key not in self.value:
            self.value[key] = ReducedMetric(self.reducer)

    def get_value_and_reset(self) -> dict[str, float | None]:
        """The folded values of this period by key."""
        return {key: metric.get_value_and_reset() for key, metric in self.value.items()}


class AssignableMetrics(IMetric):
    """A value that stands until it is replaced; reading does not reset it."""

    def __init__(self, init_val: object) -> None:
        self.value = init_val

    def update(self, value: object) -> None:
        """Replaces the value."""
        self.value = value

    def get_value_and_reset(self) -> object:
        """The value as it stands."""
        return self.value


class MultiAssignableMetrics(IMetric):
    """One assignable value per key."""

    def __init__(self) -> None:
        self.map: dict[str, AssignableMetrics] = {}

    def update(self, key: str, value: object) -> None:
        """Replaces the value of `key`."""
        if key in self.map:
            self.map[key].update(value)
        else:
            self.map[key] = AssignableMetrics(value)

    def get_value_and_reset(self) -> dict[str, object]:
        """The values as they stand by key."""
        return {key: metric.get_value_and_reset() for key, metric in self.map.items()}


def MeanReducedMetric() -> ReducedMetric:  # a factory that heronpy names like a class
    """A mean per period."""
    return ReducedMetric(MeanReducer)


def MultiMeanReducedMetric() -> MultiReducedMetric:  # a factory that heronpy names like a class
    """A mean per key and period."""
    return MultiReducedMetric(MeanReducer)
