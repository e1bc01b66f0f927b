"""The policy ``ds2``: the size by DS2's arithmetic, and every other cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Self

import msgspec

from heron.spi.health import Detector, Diagnoser, HealthPolicy, Resolver, Sensor
from heron.spi.health_values import Rhythm
from heron.spi.options import decode_options
from heron_health_manager.detectors import DETECTORS
from heron_health_manager.diagnosers import CAUSES
from heron_health_manager.flow_sensors import SourceSensor
from heron_health_manager.provisioning import Provisioning, UpdateResolver
from heron_health_manager.resolvers import RESOLVERS
from heron_health_manager.sensors import SENSORS
from heron_health_manager.sizing import Utilisation

__all__ = ["Ds2Options", "Ds2Policy"]


class Ds2Options(msgspec.Struct, frozen=True):
    """The section of the policy."""

    period_s: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    look_back_s: Annotated[float, msgspec.Meta(gt=0)] = 15.0
    wanted_utilisation: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.85
    most_utilisation: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.97
    drain_s: Annotated[float, msgspec.Meta(gt=0)] = 600.0

    def __post_init__(self) -> None:
        """Check what two options have to do with each other."""
        Utilisation(self.wanted_utilisation, self.most_utilisation)
        Rhythm(self.period_s, self.look_back_s)


class Ds2Policy(HealthPolicy):
    """Sizes all components in one plan by their true rates; restarts, rebalances and advises."""

    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = Ds2Options

    def __init__(self, options: Ds2Options) -> None:
        self._options = options
        self._utilisation = Utilisation(options.wanted_utilisation, options.most_utilisation)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """`Driver.open`."""
        return cls(decode_options(options, Ds2Options, "health"))

    def rhythm(self) -> Rhythm:
        """`HealthPolicy.rhythm`."""
        return Rhythm(self._options.period_s, self._options.look_back_s)

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
