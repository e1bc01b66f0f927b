"""The configuration of a pipeline, with the names of heronpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from heron.api import TopologyReliabilityMode, api_constants
from heron.api.names import is_a
from heron.author_text import short_text
from heron.errors import ConfigError

__all__ = ["Config", "Resources"]


class _Delivery(IntEnum):
    ATMOST_ONCE = 1
    ATLEAST_ONCE = 2
    EFFECTIVELY_ONCE = 3


_BYTES = {"mb": 1024**2, "gb": 1024**3}


@dataclass(slots=True)
class Resources:
    """The cores and bytes of memory of a container."""

    cpu: float = 0.0
    ram: int = 0

    def set_cpu(self, cpu: float) -> Resources:
        """Set the number of cores."""
        self.cpu = cpu
        return self

    def get_cpu(self) -> float:
        """Return the number of cores."""
        return self.cpu

    def set_ram(self, ram: int) -> Resources:
        """Set the memory in bytes."""
        self.ram = ram
        return self

    def set_ram_in_mb(self, ram: float) -> Resources:
        """Set the memory in MiB."""
        return self.set_ram(round(ram * _BYTES["mb"]))

    def set_ram_in_gb(self, ram: float) -> Resources:
        """Set the memory in GiB."""
        return self.set_ram(round(ram * _BYTES["gb"]))

    def get_ram(self) -> int:
        """Return the memory in bytes."""
        return self.ram


@dataclass(slots=True)
class Config:
    """How a pipeline runs.

    Args:
        config: keys of the topology's configuration, such as ``topology.stmgrs``, and the author's own.
    """

    ATMOST_ONCE: ClassVar[int] = 1
    ATLEAST_ONCE: ClassVar[int] = 2
    EFFECTIVELY_ONCE: ClassVar[int] = 3

    config: Mapping[str, object] | None = None
    _values: dict[str, object] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._values.update(self.config or {})

    def set_delivery_semantics(self, semantics: int) -> Config:
        """Set the delivery: `ATMOST_ONCE` (the default), `ATLEAST_ONCE` or `EFFECTIVELY_ONCE`.

        Raises:
            ConfigError: when it is none of these.
        """
        try:
            name = _Delivery(semantics if is_a(semantics, int) else 0).name
        except ValueError:
            msg = (
                f"delivery semantics {short_text(semantics, 60)}: give Config.ATMOST_ONCE, ATLEAST_ONCE or "
                "EFFECTIVELY_ONCE"
            )
            raise ConfigError(msg) from None
        self._values[api_constants.TOPOLOGY_RELIABILITY_MODE] = TopologyReliabilityMode[name]
        return self

    def set_num_containers(self, number: int) -> Config:
        """Set the number of containers."""
        self._values[api_constants.TOPOLOGY_STMGRS] = number
        return self

    def set_container_resources(self, resources: Resources) -> Config:
        """Set the cores and memory of each container; 0 leaves the default."""
        if resources.cpu:
            self._values[api_constants.TOPOLOGY_CONTAINER_CPU_REQUESTED] = resources.cpu
        if resources.ram:
            self._values[api_constants.TOPOLOGY_CONTAINER_RAM_REQUESTED] = resources.ram
        return self

    def set_user_config(self, key: str, value: object) -> Config:
        """Set a key of the author's own; the value must be JSON."""
        self._values[key] = value
        return self

    def values(self) -> dict[str, object]:
        """Return the configuration of the topology."""
        return dict(self._values)
