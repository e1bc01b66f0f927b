"""How much data was routed to each task. What a task executes under back pressure says nothing about that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from heron.spi.health import Sensor
from heron.spi.health_values import ComponentShape, Measurement, Observation, Subject
from heron_health_manager.sensors.window import Series, Window, labelled_task

__all__ = ["RoutedSensor"]

_FLOWS = 0.5  # of what is consumed also comes: otherwise the tasks work off what has come before
_SAME_AGE = 0.9  # of the oldest task: then the totals of all tasks are of the same time


class RoutedSensor(Sensor):
    """The bytes that were routed to each task of a bolt: those that it has consumed, and those that wait for it.

    They are those per second of the window. While the sources are held up, only a backlog drains, from the slowest
    task for longest, and the window shows nothing about the routes. Then they are those since the tasks started, unless
    key groups have moved between the tasks. A task that was seen only once since its start has no rate either.

    Tuples would not do: a task counts them one by one, and the bytes of a batch when all of it is executed.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset(
        {"consumed-bytes", "in-queue-bytes", "outlet-bytes", "task-time-s"}
    )

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        consumed, inside = kept.series("consumed-bytes"), kept.series("in-queue-bytes")
        outside = kept.series("outlet-bytes", labelled_task)
        ages = {task: series[-1][1] for task, series in kept.series("task-time-s").items()}
        for component in kept.newest.shape.components if kept.kept and kept.newest else ():
            flows = {
                task: _flow(dict(consumed[task]), inside[task], dict(outside.get(task, ())))
                for task in component.tasks
                if task in consumed and task in inside
            }
            if component.kind == "bolt" and len(flows) == component.parallelism:
                yield from _routed(component, flows, ages)


@dataclass(frozen=True, slots=True)
class _Flow:
    """Bytes of one task: routed since its start, and consumed and routed per second if it was seen more than once."""

    in_all: float
    rates: tuple[float, float] | None


def _flow(consumed: Mapping[float, float], inside: Series, outside: Mapping[float, float]) -> _Flow:
    """The flow of a task since its last restart in the window, while its queue is known."""
    moments: list[tuple[float, float, float]] = []
    for at_s, queued in inside:
        done = consumed.get(at_s, 0.0)
        if moments and done < moments[-1][1]:
            moments.clear()
        moments.append((at_s, done, done + queued + outside.get(at_s, 0.0)))
    (first_s, done_before, came_before), (last_s, done, came) = moments[0], moments[-1]
    if last_s <= first_s:
        return _Flow(came, None)
    passed_s = last_s - first_s
    return _Flow(came, ((done - done_before) / passed_s, max(0.0, (came - came_before) / passed_s)))


def _routed(component: ComponentShape, flows: Mapping[int, _Flow], ages: Mapping[int, float]) -> Iterator[Measurement]:
    """What flows now, or else all that has come; nothing if the totals of the tasks do not compare."""
    rates = {task: each.rates for task, each in flows.items() if each.rates is not None}
    goes, comes = (sum(values) for values in zip((0.0, 0.0), *rates.values(), strict=True))
    if len(rates) == len(flows) and comes > 0 and comes >= _FLOWS * goes:
        found = {task: came for task, (_, came) in rates.items()}
    elif _comparable(component, ages):
        found = {task: each.in_all for task, each in flows.items()}
    else:
        return
    for task, value in found.items():
        yield Measurement("routed", Subject(component.name, task), value)


def _comparable(component: ComponentShape, ages: Mapping[int, float]) -> bool:
    """Whether the totals of the tasks are of the same time, and of the same key groups."""
    known = [ages[task] for task in component.tasks if task in ages]
    if component.keys_moved or not known or len(known) != component.parallelism:
        return False
    return min(known) >= _SAME_AGE * max(known)
