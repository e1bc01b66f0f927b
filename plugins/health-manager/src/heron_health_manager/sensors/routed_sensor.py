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
    task for longest, and the window shows nothing about the routes. Then they are those since the tasks started.

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
    """Bytes of one task: consumed and routed per second of the window, and routed since its start."""

    consumed: float
    routed: float
    in_all: float


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
        return _Flow(0.0, 0.0, came)
    passed_s = last_s - first_s
    return _Flow((done - done_before) / passed_s, max(0.0, (came - came_before) / passed_s), came)


def _routed(component: ComponentShape, flows: Mapping[int, _Flow], ages: Mapping[int, float]) -> Iterator[Measurement]:
    """What flows now, or else all that has come; nothing if the tasks have not run equally long."""
    comes = sum(each.routed for each in flows.values())
    flowing = comes > 0 and comes >= _FLOWS * sum(each.consumed for each in flows.values())
    known = [ages[task] for task in component.tasks if task in ages]
    if not flowing and (len(known) < component.parallelism or min(known) < _SAME_AGE * max(known)):
        return
    for task, each in flows.items():
        yield Measurement("routed", Subject(component.name, task), each.routed if flowing else each.in_all)
