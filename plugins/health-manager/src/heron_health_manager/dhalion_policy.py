"""The policy ``dhalion``: one component at a time, by back pressure and queues. For comparison with ``ds2``.

Source: Dhalion (Floratou et al., VLDB 2017), and Heron's ``DynamicResourceAllocationPolicy`` and
``AutoRestartBackpressureContainerPolicy``. A component that causes back pressure for a share s of the time becomes
larger by the factor 1 + min(4, s / (1 - s)). Without any back pressure, a component whose queues are empty becomes
smaller by a fixed factor. Dhalion leaves that factor open; 0.8 is a choice of this policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Self

import msgspec

from heron.spi.health import Detector, Diagnoser, HealthPolicy, Resolver, Sensor
from heron.spi.health_values import (
    Action,
    ActionKind,
    ComponentShape,
    Diagnosis,
    Expectation,
    Measurements,
    Rhythm,
    Subject,
    Symptom,
)
from heron.spi.options import decode_options
from heron_health_manager.diagnosing.detectors import SkewDetector, ThresholdDetector, symptoms_of
from heron_health_manager.diagnosing.resolvers import RestartResolver
from heron_health_manager.sensors.flow_sensors import QueueSensor, SourceSensor
from heron_health_manager.sensors.routed_sensor import RoutedSensor
from heron_health_manager.sensors.task_sensors import TaskSensor
from heron_health_manager.sizing.policy_options import RhythmOptions
from heron_health_manager.sizing.provisioning import OVER, UNDER

__all__ = ["DhalionOptions", "DhalionPolicy"]

_NOISE = 0.02  # Heron's noise filter: 20 ms of back pressure per second
_RATE_SKEW = 1.5
_QUEUE_SKEW = 20.0
_LARGEST_STEP = 4.0
_SURE = 0.8


class DhalionOptions(RhythmOptions, frozen=True):
    """The section of the policy."""

    scale_down_factor: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.8
    empty_queue_bytes: Annotated[int, msgspec.Meta(ge=0)] = 1000


class _Dhalion(Diagnoser):
    """Heron's diagnosers: skew of rates and of queues tells data skew, a slow task and too few tasks apart."""

    def __init__(self, options: DhalionOptions) -> None:
        self._options = options

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        pressing, skewed = symptoms_of(symptoms, "back-pressure"), symptoms_of(symptoms, "input-skew")
        for component in measurements.shape.components:
            tasks = [Subject(component.name, task) for task in component.tasks]
            culprits = [each for each in tasks if each in pressing]
            if culprits:
                share = max(pressing[each].value for each in culprits)
                full = _full(component, measurements)
                if full is None:
                    text = f"{component.name} causes back pressure {share:.0%} of the time, and its tasks are alike"
                    yield Diagnosis(UNDER, Subject(component.name), _SURE, (text,))
                else:
                    name = "data-skew" if full in skewed else "slow-task"
                    text = f"{full} causes back pressure {share:.0%} of the time, and its queue is the longest"
                    yield Diagnosis(name, full, _SURE, (text,))
            elif not pressing and component.inputs and self._is_idle(component, measurements):
                text = f"the queues of {component.name} are empty, and nothing causes back pressure"
                yield Diagnosis(OVER, Subject(component.name), _SURE, (text,))

    def _is_idle(self, component: ComponentShape, measurements: Measurements) -> bool:
        queues = measurements.of_tasks("queue-bytes", component.name)
        measured = len(queues) == component.parallelism > component.least
        return measured and max(queues.values()) <= self._options.empty_queue_bytes


def _full(component: ComponentShape, measurements: Measurements) -> Subject | None:
    """The task whose queue is far longer than the shortest one of its component; None if they are alike."""
    queues = measurements.of_tasks("queue-bytes", component.name)
    if not queues:
        return None
    task = max(queues, key=lambda each: (queues[each], each))
    return Subject(component.name, task) if queues[task] > _QUEUE_SKEW * max(1.0, min(queues.values())) else None


class _ScaleResolver(Resolver):
    """Changes one component: up by its share of back pressure, down by a fixed factor."""

    def __init__(self, options: DhalionOptions) -> None:
        self._options = options

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        if diagnosis.name not in (UNDER, OVER):
            return None
        component, shape = measurements.shape.component(diagnosis.subject.component), measurements.shape
        now = component.parallelism
        if diagnosis.name == UNDER:
            share = max(measurements.of_tasks("pressure-share", component.name).values(), default=0.0)
            factor = 1 + min(_LARGEST_STEP, share / (1 - share) if share < 1 else _LARGEST_STEP)
            wanted = math.ceil(now * factor)
        else:
            wanted = min(now - 1, math.floor(now * self._options.scale_down_factor))
        tasks = max(component.least, wanted if component.most is None else min(wanted, component.most))
        if tasks == now:
            return None
        return Action(
            ActionKind.UPDATE,
            f"change the number of tasks: {component.name} {now} -> {tasks}",
            f"heron update {shape.name} --component-parallelism {component.name}:{tasks}",
            parallelism={component.name: tasks},
            before={component.name: now},
            expected=Expectation("most-pressure-share", Subject(component.name), at_most=_NOISE),
        )


class DhalionPolicy(HealthPolicy):
    """Sizes one component at a time by back pressure, as Heron's health manager; restarts slow tasks."""

    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = DhalionOptions

    def __init__(self, options: DhalionOptions) -> None:
        self._options = options

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """`Driver.open`."""
        return cls(decode_options(options, DhalionOptions, "health"))

    def rhythm(self) -> Rhythm:
        """`HealthPolicy.rhythm`."""
        return self._options.rhythm()

    def sensors(self) -> Sequence[Sensor]:
        """`HealthPolicy.sensors`."""
        return TaskSensor(), QueueSensor(), RoutedSensor(), SourceSensor(drain_s=600.0)

    def detectors(self) -> Sequence[Detector]:
        """`HealthPolicy.detectors`."""
        return ThresholdDetector("back-pressure", "pressure-share", _NOISE), SkewDetector(_RATE_SKEW)

    def diagnosers(self) -> Sequence[Diagnoser]:
        """`HealthPolicy.diagnosers`."""
        return (_Dhalion(self._options),)

    def resolvers(self) -> Sequence[Resolver]:
        """`HealthPolicy.resolvers`."""
        return _ScaleResolver(self._options), RestartResolver()
