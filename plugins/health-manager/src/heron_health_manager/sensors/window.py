"""Averages over the look-back window, from the observations that belong to the present plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import overload

from heron.spi.health_values import ComponentShape, Observation, Sample

__all__ = [
    "OBSTRUCTED",
    "Series",
    "Window",
    "by_task",
    "container_gauges",
    "growth",
    "labelled_task",
    "labels_of",
    "slope",
    "tasks_of",
]

OBSTRUCTED = ("room", "throttled", "acks")
"""The uses of a task's time in which something holds it up."""

Series = list[tuple[float, float]]
"""Times (monotonic seconds) and values, oldest first."""


class Window(Sequence[Observation]):
    """The look-back window. Only its observations of the newest plan count, and none of a plan in change.

    `label` says which of a metric's labels tells its samples apart. Several samples of one key are added up. What one
    sensor of a round has asked for is kept for the others, and sums of an observation for later rounds: so `task_of` is
    a function of a module, which is the same in each round.
    """

    def __init__(self, observations: Sequence[Observation]) -> None:
        self._observations = observations
        newest = observations[-1] if observations else None
        self.newest = newest
        self.kept: tuple[Observation, ...] = ()
        if newest is not None and not newest.shape.changing:
            version = newest.shape.version
            self.kept = tuple(
                each for each in observations if each.shape.version == version and not each.shape.changing
            )
        self._known: dict[tuple[str, str], dict[tuple[int, str], float]] = {}

    @classmethod
    def over(cls, observations: Sequence[Observation]) -> Window:
        """That window, or a new one over plain observations."""
        return observations if isinstance(observations, Window) else cls(observations)

    @overload
    def __getitem__(self, index: int) -> Observation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Observation]: ...
    def __getitem__(self, index: int | slice) -> Observation | Sequence[Observation]:
        return self._observations[index]

    def __len__(self) -> int:
        return len(self._observations)

    def rates(self, metric: str, label: str = "") -> dict[tuple[int, str], float]:
        """The mean rate of a counter by task and label, from the moments at which it was measured."""
        if (metric, label) not in self._known:
            self._known[metric, label] = self._means(metric, label)
        return self._known[metric, label]

    def totals(self, metric: str, tasks: Collection[int]) -> list[float]:
        """The rate of a counter in each observation that has it, summed up over tasks and labels."""
        found = []
        for observation in self.kept:
            rates = [each.rate_per_s for each in observation.named(metric) if each.task_id in tasks]
            known = [each for each in rates if each is not None]
            if known:
                found.append(sum(known))
        return found

    def series(self, metric: str, task_of: Callable[[Sample], int] | None = None) -> dict[int, Series]:
        """The values of a gauge over time by task; `task_of` gives the task of another process's sample, 0 for none."""
        found: dict[int, Series] = {}
        for observation in self.kept:
            for task, value in _values(observation, metric, task_of).items():
                found.setdefault(task, []).append((observation.at_s, value))
        return found

    def ends(self, metric: str, task_of: Callable[[Sample], int] | None = None) -> dict[int, tuple[float, float]]:
        """The first and the last value of a gauge by task; only tasks that have both."""
        if not self.kept:
            return {}
        first, last = (_values(each, metric, task_of) for each in (self.kept[0], self.kept[-1]))
        return {task: (value, last[task]) for task, value in first.items() if task in last}

    def processes(self, metric: str, process: str, label: str = "") -> dict[tuple[int, str], float]:
        """The mean rate of a counter by container and label, of the engine's processes of that name."""
        return self._means(metric, label, process)

    def _means(self, metric: str, label: str, process: str = "") -> dict[tuple[int, str], float]:
        """The rates of each observation, averaged over those in which a key had any."""
        found: dict[tuple[int, str], list[float]] = {}
        for observation in self.kept:
            for key, rate in _rates(observation, metric, label, process).items():
                rates = found.get(key)
                if rates is None:
                    found[key] = [rate]
                else:
                    rates.append(rate)
        return {key: sum(rates) / len(rates) for key, rates in found.items()}


def _rates(observation: Observation, metric: str, label: str, process: str) -> dict[tuple[int, str], float]:
    """The rates of a counter by task, or with `process` by container, and by label."""

    def compute() -> dict[tuple[int, str], float]:
        # Of all that a round does this takes the most time: the loop calls nothing that it can do itself.
        sums: dict[tuple[int, str], float] = {}
        for each in observation.named(metric):
            rate = each.rate_per_s
            owner = (each.container_id if each.process == process else 0) if process else each.task_id
            if rate is None or not owner:
                continue
            key = owner, each.labels.get(label, "")
            before = sums.get(key)
            sums[key] = rate if before is None else before + rate
        return sums

    return observation.kept(("rates", metric, label, process), compute)


def _values(observation: Observation, metric: str, task_of: Callable[[Sample], int] | None) -> dict[int, float]:
    """The values of a gauge by task."""

    def compute() -> dict[int, float]:
        sums: dict[int, float] = {}
        for sample in observation.named(metric):
            if task := sample.task_id if task_of is None else task_of(sample):
                sums[task] = sums.get(task, 0.0) + sample.value
        return sums

    return observation.kept(("values", metric, task_of), compute)


def slope(series: Series) -> float | None:
    """The growth per second of the line with the least squares; None with fewer than two moments."""
    count = len(series)
    if count < 2:
        return None
    start_s = series[0][0]  # sums of small numbers lose no digits
    sum_s = sum_value = sum_squares = sum_products = 0.0
    for at_s, value in series:
        passed_s = at_s - start_s
        sum_s += passed_s
        sum_value += value
        sum_squares += passed_s * passed_s
        sum_products += passed_s * value
    spread = sum_squares - sum_s * sum_s / count
    return (sum_products - sum_s * sum_value / count) / spread if spread else None


def growth(series: Series) -> float | None:
    """The growth per second from the first moment to the last; None with fewer than two moments."""
    if len(series) < 2:
        return None
    (first_s, first), (last_s, last) = series[0], series[-1]
    return (last - first) / (last_s - first_s)


def labelled_task(sample: Sample) -> int:
    """The task of a stream manager's sample, from its label; 0 for none."""
    label = sample.labels.get("task", "")
    return int(label) if label.isdigit() else 0


def labels_of(rates: dict[tuple[int, str], float]) -> dict[int, dict[str, float]]:
    """The rates by label, of each task or container."""
    found: dict[int, dict[str, float]] = {}
    for (owner, label), rate in rates.items():
        found.setdefault(owner, {})[label] = rate
    return found


def by_task(rates: dict[tuple[int, str], float]) -> dict[int, float]:
    """The rates of a counter whose labels were added up."""
    return {task: rate for (task, _), rate in rates.items()}


def container_gauges(observation: Observation, *names: str) -> Iterator[dict[int, float]]:
    """The values of gauges by container, one mapping for each name, as metrics managers report them."""
    for name in names:
        samples = observation.named(name)
        yield {each.container_id: each.value for each in samples if each.process == "metricsmgr"}


def tasks_of(window: Window) -> Iterator[tuple[ComponentShape, int]]:
    """The tasks of the newest plan with their components; none where no observation counts."""
    if window.newest is not None and window.kept:
        for component in window.newest.shape.components:
            for task in component.tasks:
                yield component, task
