"""The sensors of tasks, sources and queues. `docs/health.md` lists their measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from heron.spi.health import Sensor
from heron.spi.health_values import ComponentShape, Measurement, Observation, Sample, Subject
from heron_health_manager.window import Window, slope

__all__ = ["QueueSensor", "RestartSensor", "SourceSensor", "StreamSensor", "TaskSensor"]

_USEFUL = ("user-cpu", "user-blocked", "engine")
_OBSTRUCTED = ("room", "throttled", "acks")
_MOST_WAIT = 0.9  # of the time for a processor: what is left would say nothing about the task
_LEAST_SHARE = 0.001  # of unobstructed time: below it the rate in it is noise


class TaskSensor(Sensor):
    """Where the time of each task goes, its rates, and its true rate: tuples per second of useful time.

    A task that waits for a processor is not slow itself, so the true rate leaves these waits out. They are those of the
    whole time of the task, and count in proportion to its useful time.
    """

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window(window)
        uses, tuples = kept.rates("task-time-s", "use"), _Tuples(kept)
        waits, pauses = kept.rates("cpu-wait-s"), kept.rates("gc-pause-s")
        for component, task in _tasks(kept):
            of_task = {use: share for (owner, use), share in uses.items() if owner == task}
            if not of_task:
                continue
            subject = Subject(component.name, task)
            useful = sum(of_task.get(use, 0.0) for use in _USEFUL)
            wait = waits.get((task, ""), 0.0)
            shares = {
                "useful-share": useful,
                "user-cpu-share": of_task.get("user-cpu", 0.0),
                "blocked-share": max(0.0, of_task.get("user-blocked", 0.0) - wait),
                "cpu-wait-share": wait,
                "gc-share": pauses.get((task, ""), 0.0),
                "input-share": of_task.get("input", 0.0),
                "obstructed-share": sum(of_task.get(use, 0.0) for use in _OBSTRUCTED),
            }
            for name, share in shares.items():
                yield Measurement(name, subject, share)
            yield from _rates(subject, tuples, component.kind, useful * (1.0 - min(wait, _MOST_WAIT)))


class _Tuples:
    """Tuples per second of each task, over all streams."""

    def __init__(self, window: Window) -> None:
        self.came = _by_task(window.rates("execute-count", ""))
        self.went = _by_task(window.rates("emit-count", ""))


def _by_task(rates: dict[tuple[int, str], float]) -> dict[int, float]:
    return {task: rate for (task, _), rate in rates.items()}


def _rates(subject: Subject, tuples: _Tuples, kind: str, useful: float) -> Iterator[Measurement]:
    came, went = tuples.came.get(subject.task_id), tuples.went.get(subject.task_id)
    if came is not None:
        yield Measurement("rate-in", subject, came)
    if went is not None:
        yield Measurement("rate-out", subject, went)
    done = went if kind == "spout" else came
    if done and useful > 0:
        yield Measurement("true-rate", subject, done / useful)


class StreamSensor(Sensor):
    """The tuples that a component emits on each stream for each tuple that it executes; a spout: that it emits."""

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window(window)
        came, went = kept.rates("execute-count", ""), kept.rates("emit-count", "stream")
        for component in kept.newest.shape.components if kept.kept and kept.newest else ():
            streams: dict[str, float] = {}
            for (task, stream), rate in went.items():
                if task in component.tasks:
                    streams[stream] = streams.get(stream, 0.0) + rate
            done = sum(streams.values())
            if component.kind == "bolt":
                done = sum(rate for (task, _), rate in came.items() if task in component.tasks)
            if done > 0:
                for stream, rate in streams.items():
                    yield Measurement("ratio", Subject(component.name), rate / done, stream)


class SourceSensor(Sensor):
    """The rate that each source would have if nothing held its spout up.

    With a backlog that the spout reports, this is the rate at which the source grows, and what drains the backlog in
    `drain_s`. Without one it is the spout's rate in the time in which it was not held up.
    """

    def __init__(self, drain_s: float) -> None:
        self._drain_s = drain_s

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window(window)
        went, uses = _by_task(kept.rates("emit-count", "")), kept.rates("task-time-s", "use")
        backlogs = kept.series("backlog", lambda each: each.task_id)
        for component in kept.newest.shape.components if kept.kept and kept.newest else ():
            if component.kind != "spout":
                continue
            subject, series = Subject(component.name), [backlogs[task] for task in component.tasks if task in backlogs]
            rates = [went[task] for task in component.tasks if task in went]
            if not rates:
                continue
            yield Measurement("source-rate", subject, sum(rates))
            if series:
                waiting = sum(each[-1][1] for each in series)
                trend = sum(slope(each) or 0.0 for each in series)
                yield Measurement("backlog", subject, waiting)
                yield Measurement("backlog-trend", subject, trend)
                yield Measurement("target-rate", subject, max(0.0, sum(rates) + trend) + waiting / self._drain_s)
                continue
            held = [sum(uses.get((task, use), 0.0) for use in _OBSTRUCTED) for task in component.tasks if task in went]
            free = 1.0 - sum(held) / len(held)
            if free >= _LEAST_SHARE:
                yield Measurement("target-rate", subject, sum(rates) / free)


class QueueSensor(Sensor):
    """The bytes that wait for each task, in the task and in its stream manager, and their growth."""

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window(window)
        inside = kept.series("in-queue-bytes", lambda each: each.task_id)
        outside = kept.series("outlet-bytes", _labelled)
        culprits, pressing = [each.culprits for each in kept.kept], _pressing(kept)
        for component, task in _tasks(kept):
            subject = Subject(component.name, task)
            both = [each[task] for each in (inside, outside) if task in each]
            if both:
                yield Measurement("queue-bytes", subject, sum(series[-1][1] for series in both))
            trends = [trend for series in both if (trend := slope(series)) is not None]
            if trends:
                yield Measurement("queue-trend", subject, sum(trends))
            if task in pressing:
                yield Measurement("pressure-share", subject, min(1.0, pressing[task]))
            elif culprits:
                yield Measurement("pressure-share", subject, sum(task in each for each in culprits) / len(culprits))


def _pressing(window: Window) -> dict[int, float]:
    """The share of time for which each task has been a culprit, in the stream manager that saw most of it."""
    found: dict[int, float] = {}
    for (_, label), share in window.processes("backpressure-s", "stmgr", "task").items():
        if label.isdigit():
            found[int(label)] = max(share, found.get(int(label), 0.0))
    return found


class RestartSensor(Sensor):
    """How often each task was restarted within the window."""

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        if not window:
            return
        first, newest = window[0], window[-1]
        for component in newest.shape.components:
            for task in component.tasks:
                before, now = first.restarts.get(task), newest.restarts.get(task)
                if before is not None and now is not None:
                    yield Measurement("restarts", Subject(component.name, task), max(0, now - before))


def _tasks(window: Window) -> Iterator[tuple[ComponentShape, int]]:
    if window.newest is not None and window.kept:
        for component in window.newest.shape.components:
            for task in component.tasks:
                yield component, task


def _labelled(sample: Sample) -> int:
    label = sample.labels.get("task", "")
    return int(label) if label.isdigit() else 0
