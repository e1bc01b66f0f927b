"""Sensors that show single causes: progress, growth of memory, data between containers, hot keys, and debuggers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

from heron.spi.health import Sensor
from heron.spi.health_values import Measurement, Observation, Sample, Subject
from heron_health_manager.sensors.window import Series, Window, container_gauges, labelled_task, slope, tasks_of

__all__ = [
    "LEAST_MOMENTS",
    "CallSensor",
    "CrossingSensor",
    "DebuggerSensor",
    "HotKeySensor",
    "MemorySensor",
    "ProgressSensor",
]

_COUNTS = {"spout": "emit-count", "bolt": "execute-count"}
_BLOCKED = "user-blocked"
_LEAST_LIFE_S = 10.0
_HALF = 3  # observations: a growth in both halves of fewer says little
LEAST_MOMENTS = 2 * _HALF
"""The observations without which a growth of memory is not seen."""


class ProgressSensor(Sensor):
    """For how long the count of each task has not grown, and how many bytes came for it in that time.

    The count is that of the tuples that a bolt executes or a spout emits. Its total says so at once, while the rate of
    a process that reports nothing more stays its last one for some periods. The bytes are counted by the stream
    manager: they show that a task has work, even if its process is stopped.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset({"execute-count", "emit-count", "unconfirmed-bytes"})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        totals = {kind: kept.series(name) for kind, name in _COUNTS.items()}
        under_way = kept.series("unconfirmed-bytes", labelled_task)
        for component, task in tasks_of(kept):
            start_s, newest_s, subject = kept.kept[0].at_s, kept.kept[-1].at_s, Subject(component.name, task)
            since_s = _last_change_s(totals[component.kind].get(task, []), start_s)
            yield Measurement("still-s", subject, newest_s - since_s)
            sent = dict(under_way.get(task, []))  # left out where it is 0
            yield Measurement("came-bytes", subject, max(0.0, sent.get(newest_s, 0.0) - sent.get(since_s, 0.0)))


def _last_change_s(series: Series, otherwise_s: float) -> float:
    """When the newest value that differs from the one before was seen. The search begins at the end: most differ."""
    for (at_s, now), (_, before) in pairwise(reversed(series)):
        if now != before:
            return at_s
    return otherwise_s


class MemorySensor(Sensor):
    """The memory of each task's process, and its growth: the smaller one of both halves of the window, at least 0.

    One large allocation is no growth: it is in one half only.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset(
        {"resident-bytes", "host-memory-available-bytes", "container-memory-bytes", "container-memory-limit-bytes"}
    )

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        resident = kept.series("resident-bytes")
        for component, task in tasks_of(kept):
            if series := resident.get(task, []):
                subject, half = Subject(component.name, task), len(series) // 2
                slopes = [slope(each) or 0.0 for each in (series[:half], series[half:])]
                yield Measurement("memory-bytes", subject, series[-1][1])
                yield Measurement("memory-trend", subject, max(0.0, min(slopes)) if half >= _HALF else 0.0)
        if kept.kept:
            yield from _free(kept.kept[-1])


def _free(newest: Observation) -> Iterator[Measurement]:
    """The memory that is left for each container: below its limit, or on its host."""
    names = "host-memory-available-bytes", "container-memory-bytes", "container-memory-limit-bytes"
    gauges = list(container_gauges(newest, *names))
    for container in newest.shape.containers():
        available, used, limit = (each.get(container) for each in gauges)
        left = [limit - used] if used is not None and limit is not None else []
        if left or available is not None:
            free = min([*left, *([available] if available is not None else [])])
            yield Measurement("memory-free-bytes", Subject(container_id=container), max(0.0, free))


class CrossingSensor(Sensor):
    """The bytes for each task that wait in other containers, and those that wait in its own.

    The median over the window: data that only passes, or a burst, fills a queue less than half of the time.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset({"in-queue-bytes", "outlet-bytes"})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        owners = {task: component for component, task in tasks_of(kept)}
        near: dict[int, list[float]] = {task: [0.0] * len(kept.kept) for task in owners}
        far: dict[tuple[int, int], list[float]] = {}
        for moment, observation in enumerate(kept.kept):
            for sample in observation.named("in-queue-bytes"):
                if sample.task_id in owners:
                    near[sample.task_id][moment] += sample.value
            for sample in observation.named("outlet-bytes"):
                if (task := labelled_task(sample)) in owners:
                    if sample.container_id == owners[task].tasks[task]:
                        near[task][moment] += sample.value
                    else:
                        place = task, sample.container_id
                        far.setdefault(place, [0.0] * len(kept.kept))[moment] += sample.value
        for task, component in owners.items():
            yield Measurement("near-bytes", Subject(component.name, task), statistics.median(near[task]))
        for (task, container), waiting in far.items():
            yield Measurement("far-bytes", Subject(owners[task].name, task), statistics.median(waiting), str(container))


class HotKeySensor(Sensor):
    """The largest share of a task's input that has one key, or keys of one group; `detail` is the key or the group."""

    metrics: ClassVar[frozenset[str] | None] = frozenset({"hot-key-share", "hot-group-share"})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        for name, label in (("hot-key-share", "key"), ("hot-group-share", "group")):
            for sample in kept.kept[-1].named(name) if kept.kept else ():
                if sample.task_id:
                    yield Measurement(
                        name, Subject(sample.component, sample.task_id), sample.value, sample.labels[label]
                    )


class DebuggerSensor(Sensor):
    """For how long a debugger has been attached to a task; `detail` is the debugger.

    A debugger that was detached within the window has made the other measurements too. A process that it stops reports
    nothing more, and keeps its last total.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset({"debugged-s"})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window).kept
        newest = {each.task_id: each for observation in kept for each in observation.named("debugged-s")}
        for task, sample in newest.items():
            yield Measurement("debugged-s", Subject(sample.component, task), sample.value, sample.labels.get("by", ""))


class CallSensor(Sensor):
    """How long a task is blocked in its code for each tuple: in the window, as a multiple of its life before.

    The totals of a task at the beginning of the window are those of its life before. If that is shorter than 10 s,
    there is no measurement.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset({"execute-count", "task-time-s"})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        counts, ages = kept.ends("execute-count"), kept.ends("task-time-s")
        blocked = kept.ends("task-time-s", _blocked_task)
        for component, task in tasks_of(kept):
            (count, count_now), (age_s, _), (total_s, total_now_s) = (
                each.get(task, (0.0, 0.0)) for each in (counts, ages, blocked)
            )
            if component.kind == "bolt" and age_s >= _LEAST_LIFE_S and total_s > 0 and count_now > count > 0:
                times = (total_now_s - total_s) / (count_now - count) / (total_s / count)
                yield Measurement("blocked-times", Subject(component.name, task), max(0.0, times))


def _blocked_task(sample: Sample) -> int:
    """The task of a sample of the time for which it was blocked; 0 for another use."""
    return sample.task_id if sample.labels.get("use") == _BLOCKED else 0
