"""The sensors of tasks and of their streams. `docs/health.md` lists their measurements."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from heron.spi.health import Sensor
from heron.spi.health_values import Measurement, Observation, Sample, Subject
from heron_health_manager.sensors.window import OBSTRUCTED, Window, by_task, labels_of, tasks_of

__all__ = ["BatchSensor", "StreamSensor", "TaskSensor"]

_USEFUL = ("user-cpu", "user-blocked", "engine")
_LEAST_USEFUL_S = 0.01
_MOST_WAIT = 0.9  # of the time for a processor: what is left would say nothing about the task


class TaskSensor(Sensor):
    """Where the time of each task goes, its rates, and its true rate: tuples per second of useful time.

    A task that waits for a processor is not slow itself, so the true rate leaves these waits out. They are those of the
    whole time of the task, and count in proportion to its useful time. `life-rate` is the true rate of a bolt's task
    since its start, and `execute-p99-s` the median of what 99 % of its tuples take at most in each export period.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset(
        {"task-time-s", "cpu-wait-s", "gc-pause-s", "execute-count", "emit-count", "execute-latency"}
    )

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        uses, tuples = labels_of(kept.rates("task-time-s", "use")), _Tuples(kept)
        waits, pauses = kept.rates("cpu-wait-s"), kept.rates("gc-pause-s")
        lives, longest = _lives(kept), _longest(kept)
        for component, task in tasks_of(kept):
            if (of_task := uses.get(task)) is None:
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
                "paused-share": of_task.get("paused", 0.0),
                "obstructed-share": sum(of_task.get(use, 0.0) for use in OBSTRUCTED),
            }
            for name, share in shares.items():
                yield Measurement(name, subject, share)
            yield from _rates(subject, tuples, component.kind, useful * (1.0 - min(wait, _MOST_WAIT)))
            if component.kind == "bolt" and task in lives:
                yield Measurement("life-rate", subject, lives[task])
            if task in longest:
                yield Measurement("execute-p99-s", subject, longest[task])


class _Tuples:
    """Tuples per second of each task, over all streams."""

    def __init__(self, window: Window) -> None:
        self.came = by_task(window.rates("execute-count", ""))
        self.went = by_task(window.rates("emit-count", ""))


def _rates(subject: Subject, tuples: _Tuples, kind: str, useful: float) -> Iterator[Measurement]:
    came, went = tuples.came.get(subject.task_id), tuples.went.get(subject.task_id)
    if came is not None:
        yield Measurement("rate-in", subject, came)
    if went is not None:
        yield Measurement("rate-out", subject, went)
    done = went if kind == "spout" else came
    if done and useful > 0:
        yield Measurement("true-rate", subject, done / useful)


def _lives(window: Window) -> dict[int, float]:
    """Tuples per second of useful time since the start of each task, without tasks that have hardly done anything."""
    executed, useful = window.ends("execute-count"), window.ends("task-time-s", _useful_task)
    waited = window.ends("cpu-wait-s")
    found = {}
    for task, (_, tuples) in executed.items():
        (_, useful_s), (_, waited_s) = useful.get(task, (0.0, 0.0)), waited.get(task, (0.0, 0.0))
        useful_s = max(useful_s - waited_s, useful_s * (1.0 - _MOST_WAIT))
        if tuples and useful_s >= _LEAST_USEFUL_S:
            found[task] = tuples / useful_s
    return found


def _longest(window: Window) -> dict[int, float]:
    """The median of the 99th percentiles of the time for a tuple, by task."""
    found: dict[int, list[float]] = {}
    for observation in window.kept:
        for each in observation.named("execute-latency"):
            if each.task_id and each.p99 is not None:
                found.setdefault(each.task_id, []).append(each.p99)
    return {task: statistics.median(longest) for task, longest in found.items()}


def _useful_task(sample: Sample) -> int:
    """The task of a sample of its useful time; 0 for another use."""
    return sample.task_id if sample.labels.get("use") in _USEFUL else 0


class StreamSensor(Sensor):
    """The tuples that a component emits on each stream for each tuple that it executes; a spout: that it emits."""

    metrics: ClassVar[frozenset[str] | None] = frozenset({"execute-count", "emit-count"})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        came, went = by_task(kept.rates("execute-count", "")), labels_of(kept.rates("emit-count", "stream"))
        for component in kept.newest.shape.components if kept.kept and kept.newest else ():
            streams: dict[str, float] = {}
            for task in component.tasks:
                for stream, rate in went.get(task, {}).items():
                    streams[stream] = streams.get(stream, 0.0) + rate
            done = sum(streams.values())
            if component.kind == "bolt":
                done = sum(came.get(task, 0.0) for task in component.tasks)
            if done > 0:
                for stream, rate in streams.items():
                    yield Measurement("ratio", Subject(component.name), rate / done, stream)


class BatchSensor(Sensor):
    """The tuples in a batch that a task receives, and the share of its time that the engine needs for them."""

    metrics: ClassVar[frozenset[str] | None] = frozenset({"execute-count", "execute-batch-count", "task-time-s"})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        came, batches = by_task(kept.rates("execute-count")), by_task(kept.rates("execute-batch-count"))
        uses = kept.rates("task-time-s", "use")
        for component, task in tasks_of(kept):
            subject = Subject(component.name, task)
            if batches.get(task):
                yield Measurement("rows-per-batch", subject, came.get(task, 0.0) / batches[task])
            if (engine := uses.get((task, "engine"))) is not None:
                yield Measurement("engine-share", subject, engine)
