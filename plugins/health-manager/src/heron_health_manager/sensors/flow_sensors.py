"""The sensors of sources, queues and restarts. `docs/health.md` lists their measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, stdev
from typing import ClassVar

from heron.spi.health import Sensor
from heron.spi.health_values import Measurement, Observation, Subject
from heron_health_manager.sensors.window import OBSTRUCTED, Window, by_task, growth, labelled_task, slope, tasks_of

__all__ = ["QueueSensor", "RestartSensor", "SourceSensor"]

_LEAST_SHARE = 0.001  # of unobstructed time: below it the rate in it is noise


class SourceSensor(Sensor):
    """The rate that each source would have if nothing held its spout up.

    With a backlog that the spout reports, this is the rate at which the source grows, and what drains the backlog in
    `drain_s`. What came within the window is what was emitted and the change of the backlog, both from the first moment
    to the last. The rate at the first moment is of the time before it, such as a burst that has ended; another line
    through the backlog would not fit the mean rate. Without a backlog it is the sum of its tasks' rates in the time in
    which each of them was not held up.

    A window may have one burst less than usual: `source-error` is the standard error of the rate.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset({"emit-count", "task-time-s", "backlog"})

    def __init__(self, drain_s: float) -> None:
        self._drain_s = drain_s

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        went, uses = by_task(kept.rates("emit-count", "")), kept.rates("task-time-s", "use")
        backlogs, later = kept.series("backlog"), by_task(Window(kept.kept[1:]).rates("emit-count", ""))
        for component in kept.newest.shape.components if kept.kept and kept.newest else ():
            if component.kind != "spout":
                continue
            subject, series = Subject(component.name), [backlogs[task] for task in component.tasks if task in backlogs]
            rates = [went[task] for task in component.tasks if task in went]
            if not rates:
                continue
            yield Measurement("source-rate", subject, sum(rates))
            yield Measurement("source-error", subject, _relative_error(kept.totals("emit-count", component.tasks)))
            acks = [uses.get((task, "acks"), 0.0) for task in component.tasks if task in went]
            yield Measurement("acks-share", subject, sum(acks) / len(acks))
            if series:
                waiting = sum(each[-1][1] for each in series)
                trend = sum(growth(each) or 0.0 for each in series)
                yield Measurement("backlog", subject, waiting)
                yield Measurement("backlog-trend", subject, trend)
                emitted = sum(later.get(task, went[task]) for task in component.tasks if task in went)
                target = max(0.0, emitted + trend) + waiting / self._drain_s
                yield from _target(subject, sum(rates), target)
                continue
            tasks = [task for task in component.tasks if task in went]
            free = {task: 1.0 - sum(uses.get((task, use), 0.0) for use in OBSTRUCTED) for task in tasks}
            full = [went[task] / share for task, share in free.items() if share >= _LEAST_SHARE]
            if full:  # a task that is held up all the time counts as the mean of the others
                yield from _target(subject, sum(rates), sum(full) / len(full) * len(tasks))


def _relative_error(rates: Sequence[float]) -> float:
    """The standard error of the mean of these rates, as a share of it; 0 where nothing was emitted."""
    mean = fmean(rates) if rates else 0.0
    return stdev(rates) / math.sqrt(len(rates)) / mean if len(rates) > 1 and mean > 0 else 0.0


def _target(subject: Subject, rate: float, target: float) -> Iterator[Measurement]:
    """The target, and the share of it that the source emits: 1 if nothing is wanted."""
    yield Measurement("target-rate", subject, target)
    yield Measurement("served-share", subject, min(1.0, rate / target) if target > 0 else 1.0)


class QueueSensor(Sensor):
    """The bytes that wait for each task, in the task and in its stream manager, their growth, and back pressure.

    A component causes back pressure for as long as its worst task.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset({"in-queue-bytes", "outlet-bytes", "backpressure-s"})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        inside = kept.series("in-queue-bytes")
        outside = kept.series("outlet-bytes", labelled_task)
        culprits, pressing = [each.culprits for each in kept.kept], _pressing(kept)
        worst: dict[str, float] = {}
        for component, task in tasks_of(kept):
            subject = Subject(component.name, task)
            both = [each[task] for each in (inside, outside) if task in each]
            if both:
                yield Measurement("queue-bytes", subject, sum(series[-1][1] for series in both))
            trends = [trend for series in both if (trend := slope(series)) is not None]
            if trends:
                yield Measurement("queue-trend", subject, sum(trends))
            share = pressing.get(task, sum(task in each for each in culprits) / len(culprits))
            worst[component.name] = max(share, worst.get(component.name, 0.0))
            yield Measurement("pressure-share", subject, min(1.0, share))
        for name, share in worst.items():
            yield Measurement("most-pressure-share", Subject(name), min(1.0, share))


def _pressing(window: Window) -> dict[int, float]:
    """The share of time for which each task has been a culprit, in the stream manager that saw most of it."""
    found: dict[int, float] = {}
    for (_, label), share in window.processes("backpressure-s", "stmgr", "task").items():
        if label.isdigit():
            found[int(label)] = max(share, found.get(int(label), 0.0))
    return found


class RestartSensor(Sensor):
    """How often each task was restarted within the window, and in the last 10 min: the back-off may be as long."""

    metrics: ClassVar[frozenset[str] | None] = frozenset()

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        if not window:
            return
        first, newest = window[0], window[-1]
        for component in newest.shape.components:
            for task in component.tasks:
                before, now = first.restarts.get(task), newest.restarts.get(task)
                if before is not None and now is not None:
                    subject, within = Subject(component.name, task), max(0, now - before)
                    yield Measurement("restarts", subject, within)
                    yield Measurement("recent-restarts", subject, max(within, newest.recent_restarts.get(task, 0)))
