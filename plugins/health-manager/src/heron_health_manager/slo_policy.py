"""The policy ``slo``: objectives met at the least cost, instead of thresholds; other causes as in `ds2`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Self

import msgspec

from heron.spi.health import Detector, Diagnoser, HealthPolicy, Resolver, Sensor
from heron.spi.health_values import Measurement, Observation, Rhythm
from heron.spi.options import decode_options
from heron_health_manager.diagnosing.detectors import DETECTORS
from heron_health_manager.diagnosing.diagnosers import CAUSES
from heron_health_manager.diagnosing.resolvers import RESOLVERS
from heron_health_manager.objectives.grammar import joint_objectives, parse_objectives
from heron_health_manager.objectives.slo_findings import ObjectiveDiagnoser, ObjectiveResolver
from heron_health_manager.objectives.slo_model import Costs
from heron_health_manager.sensors.flow_sensors import SourceSensor
from heron_health_manager.sensors.sensors import SENSORS
from heron_health_manager.sizing.policy_options import SizingOptions

__all__ = ["SloOptions", "SloPolicy"]


class SloOptions(SizingOptions, frozen=True):
    """The section of the policy; `heron_health_manager.objectives.grammar` has the form of the objectives."""

    objectives: tuple[str, ...] = ()
    container_cost: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    task_cost: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    wanted_utilisation: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.85  # a queue of a full task has no end

    def __post_init__(self) -> None:
        """Check the options together."""
        super().__post_init__()
        parse_objectives(self.objectives)


class _ObjectiveSourceSensor(SourceSensor):
    """The rates that sources need so that a backlog is drained in time, if an objective says so."""

    def __init__(self, objectives: tuple[str, ...]) -> None:
        super().__init__(math.inf)
        self._lines = objectives

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        of_topology = window[-1].shape.objectives if window else ()
        drain_s = joint_objectives(self._lines, of_topology).drain_s
        return SourceSensor(drain_s or math.inf).measure(window)


class SloPolicy(HealthPolicy):
    """Chooses the cheapest plan that meets all objectives in the model, and says why if there is none."""

    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = SloOptions

    def __init__(self, options: SloOptions) -> None:
        self._options = options
        terms = (options.objectives, options.utilisation(), Costs(options.container_cost, options.task_cost))
        self._diagnoser = ObjectiveDiagnoser(*terms)
        self._resolver = ObjectiveResolver(*terms)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """`Driver.open`."""
        return cls(decode_options(options, SloOptions, "health"))

    def rhythm(self) -> Rhythm:
        """`HealthPolicy.rhythm`."""
        return self._options.rhythm()

    def sensors(self) -> Sequence[Sensor]:
        """`HealthPolicy.sensors`."""
        return _ObjectiveSourceSensor(self._options.objectives), *SENSORS

    def detectors(self) -> Sequence[Detector]:
        """`HealthPolicy.detectors`."""
        return DETECTORS

    def diagnosers(self) -> Sequence[Diagnoser]:
        """`HealthPolicy.diagnosers`."""
        return *CAUSES, self._diagnoser

    def resolvers(self) -> Sequence[Resolver]:
        """`HealthPolicy.resolvers`."""
        return self._resolver, *RESOLVERS
