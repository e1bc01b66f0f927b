"""The options of packings that fill containers up to a limit, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heron.planner.amounts import parse_bytes, parse_cores, parse_count, parse_percent
from heron.planner.packing_plan import Resource
from heron.spi.options import decode_options
from heron_packing_kit.capacity import CapacityDefaults

__all__ = ["CapacitySection", "read_capacity_options"]

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class CapacitySection:
    """The schema of the section as written; amounts may have units. The defaults are those of Heron."""

    instance_cpu: float | str = 1.0
    instance_ram: int | str = _GIB
    instance_disk: int | str = _GIB
    container_cpu_padding: float | str = 1.0
    container_ram_padding: int | str = _GIB
    container_disk_padding: int | str = _GIB
    container_padding_percentage: float | str = 10.0
    container_max_instances: int | str = 10


def read_capacity_options(options: Mapping[str, object]) -> CapacityDefaults:
    """Return the defaults in the section ``packing`` of a profile, for `heron_packing_kit.capacity.capacity_of`.

    Amounts are cores, or bytes with or without a unit (`heron.planner.amounts`).

    Raises:
        ConfigError: when a key is unknown or an amount is not acceptable; names the key and the nearest known key.
    """
    section = decode_options(options, CapacitySection, "packing")
    return CapacityDefaults(
        instance=Resource(
            parse_cores(section.instance_cpu, "packing.instance_cpu"),
            parse_bytes(section.instance_ram, "packing.instance_ram"),
            parse_bytes(section.instance_disk, "packing.instance_disk"),
        ),
        padding=Resource(
            parse_cores(section.container_cpu_padding, "packing.container_cpu_padding", minimum=0),
            parse_bytes(section.container_ram_padding, "packing.container_ram_padding", minimum=0),
            parse_bytes(section.container_disk_padding, "packing.container_disk_padding", minimum=0),
        ),
        padding_percentage=parse_percent(section.container_padding_percentage, "packing.container_padding_percentage"),
        max_instances=parse_count(section.container_max_instances, "packing.container_max_instances"),
    )
