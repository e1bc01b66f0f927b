"""The policy ``queues``: a component whose tasks all have long queues gets twice as many tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Self

import msgspec

from heron.spi.health import Detector, Diagnoser, HealthPolicy, Resolver, Sensor
from heron.spi.health_values import (
    Action,
    ActionKind,
    Diagnosis,
    Expectation,
    Measurement,
    Measurements,
    Observation,
    Rhythm,
    Subject,
    Symptom,
)
from heron.spi.options import decode_options

_QUEUE, _LONG, _SMALL = "in-queue-bytes", "long-queue", "too-few-tasks"


class QueueOptions(msgspec.Struct, frozen=True):
    period_s: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    queue_bytes: Annotated[int, msgspec.Meta(ge=1)] = 50_000


class QueueSensor(Sensor):
    metrics: ClassVar[frozenset[str] | None] = frozenset({_QUEUE})

    def measure(self, window: Sequence[Observation]) -> Iterator[Measurement]:
        if not window:
            return
        newest = window[-1]
        tasks = {(each.name, task) for each in newest.shape.components for task in each.tasks}
        for sample in newest.named(_QUEUE):
            if (sample.component, sample.task_id) in tasks and math.isfinite(sample.value):
                yield Measurement(_QUEUE, Subject(sample.component, sample.task_id), sample.value)


class QueueDetector(Detector):
    def __init__(self, queue_bytes: int) -> None:
        self._queue_bytes = queue_bytes

    def detect(self, measurements: Measurements) -> Iterator[Symptom]:
        for each in measurements.of(_QUEUE):
            if each.value > self._queue_bytes:
                yield Symptom(_LONG, each.subject, each.value, float(self._queue_bytes))


class QueueDiagnoser(Diagnoser):
    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        long = {each.subject: each for each in symptoms if each.name == _LONG}
        for component in measurements.shape.components:
            tasks = [Subject(component.name, task) for task in component.tasks]
            if component.inputs and all(task in long for task in tasks):
                shortest = min(long[task].value for task in tasks)
                text = f"each of {len(tasks)} tasks of {component.name} has {shortest:.0f} bytes or more in its queue"
                yield Diagnosis(_SMALL, Subject(component.name), 0.7, (text,))


class DoublingResolver(Resolver):
    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        if diagnosis.name != _SMALL:
            return None
        component = measurements.shape.component(diagnosis.subject.component)
        now = component.parallelism
        wanted = 2 * now if component.most is None else min(2 * now, component.most)
        if wanted <= now:
            return None
        return Action(
            ActionKind.UPDATE,
            f"double the tasks of {component.name}: {now} -> {wanted}",
            f"heron update {measurements.shape.name} --component-parallelism {component.name}:{wanted}",
            parallelism={component.name: wanted},
            before={component.name: now},
            expected=Expectation(_QUEUE, Subject(component.name), at_most=0.0),
        )


class QueuePolicy(HealthPolicy):
    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = QueueOptions

    def __init__(self, options: QueueOptions) -> None:
        self._options = options

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, QueueOptions, "health"))

    def rhythm(self) -> Rhythm:
        return Rhythm(self._options.period_s, 3 * self._options.period_s)

    def sensors(self) -> Sequence[Sensor]:
        return (QueueSensor(),)

    def detectors(self) -> Sequence[Detector]:
        return (QueueDetector(self._options.queue_bytes),)

    def diagnosers(self) -> Sequence[Diagnoser]:
        return (QueueDiagnoser(),)

    def resolvers(self) -> Sequence[Resolver]:
        return (DoublingResolver(),)
