"""The driver's section of a profile: the default resources of an instance, and the padding for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import msgspec

from heron.planner.amounts import parse_bytes, parse_cores
from heron.spi.options import decode_options

__all__ = ["RoundRobinOptions", "RoundRobinSection"]

_GIB = 1 << 30


class RoundRobinSection(msgspec.Struct, frozen=True):
    """The section of the profile; amounts may have units."""

    instance_cpu: float | str = 1.0
    instance_ram: int | str = _GIB
    instance_disk: int | str = _GIB
    stmgr_ram: int | str = _GIB
    metricsmgr_ram: int | str = _GIB
    container_cpu_padding: float | str = 1.0
    container_disk_padding: int | str = 12 * _GIB


@dataclass(frozen=True, slots=True)
class RoundRobinOptions:
    """The section in cores and bytes. The defaults are Heron's."""

    instance_cpu: float
    instance_ram_bytes: int
    instance_disk_bytes: int
    stmgr_ram_bytes: int
    metricsmgr_ram_bytes: int
    container_cpu_padding: float
    container_disk_padding_bytes: int

    @classmethod
    def read(cls, options: Mapping[str, object]) -> Self:
        """Read the section ``packing``.

        Raises:
            ConfigError: when a key is unknown or an amount is not acceptable.
        """
        section = decode_options(options, RoundRobinSection, "packing")
        return cls(
            instance_cpu=parse_cores(section.instance_cpu, "packing.instance_cpu"),
            instance_ram_bytes=parse_bytes(section.instance_ram, "packing.instance_ram"),
            instance_disk_bytes=parse_bytes(section.instance_disk, "packing.instance_disk"),
            stmgr_ram_bytes=parse_bytes(section.stmgr_ram, "packing.stmgr_ram", minimum=0),
            metricsmgr_ram_bytes=parse_bytes(section.metricsmgr_ram, "packing.metricsmgr_ram", minimum=0),
            container_cpu_padding=parse_cores(
                section.container_cpu_padding, "packing.container_cpu_padding", minimum=0
            ),
            container_disk_padding_bytes=parse_bytes(
                section.container_disk_padding, "packing.container_disk_padding", minimum=0
            ),
        )
