"""Averages over the look-back window, from the observations that belong to the present plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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

_Key = tuple[str, int, str, str]  # component, task, metric, label


class Window:
    """The observations of the look-back window that have the newest plan; those of a plan in change do not count.

    `label` says which of a metric's labels tells its samples apart. Several samples of one key are added up.
    """

    def __init__(self, observations: Sequence[Observation]) -> None:
        newest = observations[-1] if observations else None
        self.newest = newest
        self.kept: tuple[Observation, ...] = ()
        if newest is not None and not newest.shape.changing:
            version = newest.shape.version
            self.kept = tuple(
                each for each in observations if each.shape.version == version and not each.shape.changing
            )

    def rates(self, metric: str, label: str = "") -> dict[tuple[int, str], float]:
        """The mean rate of a counter by task and label, from the moments at which it was measured."""
        return self._means(metric, label, lambda each: each.rate_per_s)

    def gauges(self, metric: str, label: str = "") -> dict[tuple[int, str], float]:
        """The mean of a gauge by task and label."""
        return self._means(metric, label, lambda each: each.value)

    def series(self, metric: str, task_of: Callable[[Sample], int]) -> dict[int, Series]:
        """The values of a gauge over time by task; `task_of` gives the task of a sample, 0 for none."""
        found: dict[int, Series] = {}
        for observation in self.kept:
            sums: dict[int, float] = {}
            for sample in observation.named(metric):
                if task := task_of(sample):
                    sums[task] = sums.get(task, 0.0) + sample.value
            for task, value in sums.items():
                found.setdefault(task, []).append((observation.at_s, value))
        return found

    def processes(self, metric: str, process: str, label: str = "") -> dict[tuple[int, str], float]:
        """The mean rate of a counter by container and label, of the engine's processes of that name."""
        sums = _Means()
        for observation in self.kept:
            for sample in observation.named(metric):
                if sample.process == process and sample.rate_per_s is not None:
                    sums.add((sample.container_id, sample.labels.get(label, "")), sample.rate_per_s)
            sums.end_moment()
        return sums.means()

    def _means(
        self, metric: str, label: str, value_of: Callable[[Sample], float | None]
    ) -> dict[tuple[int, str], float]:
        sums = _Means()
        for observation in self.kept:
            for sample in observation.named(metric):
                if sample.task_id and (value := value_of(sample)) is not None:
                    sums.add((sample.task_id, sample.labels.get(label, "")), value)
            sums.end_moment()
        return sums.means()


class _Means:
    """Adds up the samples of a moment by key, and averages the moments in which a key had any."""

    def __init__(self) -> None:
        self._now: dict[tuple[int, str], float] = {}
        self._totals: dict[tuple[int, str], tuple[float, int]] = {}

    def add(self, key: tuple[int, str], value: float) -> None:
        self._now[key] = self._now.get(key, 0.0) + value

    def end_moment(self) -> None:
        for key, value in self._now.items():
            total, moments = self._totals.get(key, (0.0, 0))
            self._totals[key] = total + value, moments + 1
        self._now = {}

    def means(self) -> dict[tuple[int, str], float]:
        return {key: total / moments for key, (total, moments) in self._totals.items()}


def slope(series: Series) -> float | None:
    """The growth per second of the line with the least squares; None with fewer than two moments."""
    if len(series) < 2:
        return None
    mean_s = sum(at_s for at_s, _ in series) / len(series)
    mean = sum(value for _, value in series) / len(series)
    spread = sum((at_s - mean_s) ** 2 for at_s, _ in series)
    return sum((at_s - mean_s) * (value - mean) for at_s, value in series) / spread if spread else None


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
