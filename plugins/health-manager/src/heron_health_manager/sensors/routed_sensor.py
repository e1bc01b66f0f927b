"""How many tuples were routed to each task. What a task executes under back pressure says nothing about that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from heron.spi.health import Sensor
from heron.spi.health_values import ComponentShape, Measurement, Observation, Subject
from heron_health_manager.sensors.window import Series, Window, labelled_task

__all__ = ["RoutedSensor"]

_FLOWS = 0.5  # of what is executed also comes: otherwise the tasks work off what has come before
_SAME_AGE = 0.9  # of the oldest task: then the totals of all tasks are of the same time


class RoutedSensor(Sensor):
    """The tuples that were routed to each task of a bolt: those that it executed, and those that wait for it.

    They are those per second of the window. While the sources are held up, only a backlog drains, from the busiest
    task for longest, and the window shows nothing about the routes. Then they are those since the tasks started.

    Bytes that wait count as tuples by the mean size of what the component has consumed.
    """

    metrics: ClassVar[frozenset[str] | None] = frozenset(
        {"execute-count", "consumed-bytes", "in-queue-bytes", "outlet-bytes", "task-time-s"}
    )

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        executed, consumed = kept.series("execute-count"), kept.series("consumed-bytes")
        inside, outside = kept.series("in-queue-bytes"), kept.series("outlet-bytes", labelled_task)
        ages = {task: series[-1][1] for task, series in kept.series("task-time-s").items()}
        for component in kept.newest.shape.components if kept.kept and kept.newest else ():
            if component.kind != "bolt":
                continue
            tuples = sum(executed[task][-1][1] for task in component.tasks if task in executed)
            size = sum(consumed[task][-1][1] for task in component.tasks if task in consumed)
            flows = {
                task: _flow(executed.get(task, []), inside[task], dict(outside.get(task, [])), size / tuples)
                for task in component.tasks
                if tuples > 0 and size > 0 and task in inside
            }
            if len(flows) == component.parallelism:
                yield from _routed(component, flows, ages)


@dataclass(frozen=True, slots=True)
class _Flow:
    """Tuples of one task: executed and routed per second of the window, and routed since its start."""

    executed: float
    routed: float
    in_all: float


def _flow(executed: Series, inside: Series, outside: Mapping[float, float], tuple_bytes: float) -> _Flow:
    """The flow of a task since its last restart in the window, while its queue is known."""
    counts = dict(executed)
    moments: list[tuple[float, float, float]] = []
    for at_s, queued in inside:
        count = counts.get(at_s, 0.0)
        if moments and count < moments[-1][1]:
            moments.clear()
        moments.append((at_s, count, (queued + outside.get(at_s, 0.0)) / tuple_bytes))
    (first_s, first, waited), (last_s, last, waits) = moments[0], moments[-1]
    passed_s = last_s - first_s
    done = (last - first) / passed_s if passed_s else 0.0
    grown = (waits - waited) / passed_s if passed_s else 0.0
    return _Flow(done, max(0.0, done + grown), last + waits)


def _routed(component: ComponentShape, flows: Mapping[int, _Flow], ages: Mapping[int, float]) -> Iterator[Measurement]:
    """What flows now, or else all that has come; nothing if the tasks have not run equally long."""
    flowing = sum(each.routed for each in flows.values()) >= _FLOWS * sum(each.executed for each in flows.values()) > 0
    known = [ages[task] for task in component.tasks if task in ages]
    if not flowing and (len(known) < component.parallelism or min(known) < _SAME_AGE * max(known)):
        return
    for task, each in flows.items():
        yield Measurement("routed", Subject(component.name, task), each.routed if flowing else each.in_all)
