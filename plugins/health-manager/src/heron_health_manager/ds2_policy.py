"""The policy ``ds2``: the size by DS2's arithmetic, and every other cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Self

import msgspec

from heron.spi.health import Detector, Diagnoser, HealthPolicy, Resolver, Sensor
from heron.spi.health_values import Rhythm
from heron.spi.options import decode_options
from heron_health_manager.diagnosing.detectors import DETECTORS
from heron_health_manager.diagnosing.diagnosers import CAUSES
from heron_health_manager.diagnosing.resolvers import RESOLVERS
from heron_health_manager.sensors.flow_sensors import SourceSensor
from heron_health_manager.sensors.sensors import SENSORS
from heron_health_manager.sizing.policy_options import SizingOptions
from heron_health_manager.sizing.provisioning import Provisioning, UpdateResolver

__all__ = ["Ds2Options", "Ds2Policy"]


class Ds2Options(SizingOptions, frozen=True):
    """The section of the policy."""

    drain_s: Annotated[float, msgspec.Meta(gt=0)] = 600.0


class Ds2Policy(HealthPolicy):
    """Sizes all components in one plan by their true rates; restarts, rebalances and advises."""

    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = Ds2Options

    def __init__(self, options: Ds2Options) -> None:
        self._options = options
        self._utilisation = options.utilisation()

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """`Driver.open`."""
        return cls(decode_options(options, Ds2Options, "health"))

    def rhythm(self) -> Rhythm:
        """`HealthPolicy.rhythm`."""
        return self._options.rhythm()

    def sensors(self) -> Sequence[Sensor]:
        """`HealthPolicy.sensors`."""
        source = SourceSensor(self._options.drain_s)
        return source, *SENSORS

    def detectors(self) -> Sequence[Detector]:
        """`HealthPolicy.detectors`."""
        return DETECTORS

    def diagnosers(self) -> Sequence[Diagnoser]:
        """`HealthPolicy.diagnosers`."""
        return *CAUSES, Provisioning(self._utilisation)

    def resolvers(self) -> Sequence[Resolver]:
        """`HealthPolicy.resolvers`."""
        return UpdateResolver(self._utilisation), *RESOLVERS
