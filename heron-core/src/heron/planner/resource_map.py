"""The resource keys of a topology, for every packing.

    topology.component.cpumap, .rammap, .diskmap    "component:amount,component:amount" (or a JSON object)
    topology.container.cpu, .ram, .disk             the size of each container
    topology.container.max.cpu.hint, .max.ram.hint, .max.disk.hint      the maximum size of a container
    topology.container.max.instances                the maximum number of instances in a container
    topology.container.cpu.padding, .ram.padding    the part of each container that is reserved for the engine
    topology.container.padding.percentage           the minimum padding, in percent of the container
    topology.stmgr.ram, topology.metricsmgr.ram     the parts of the padding of memory, if it is not set itself
    topology.stmgrs                                 the number of containers

Amounts of cpu are cores; amounts of memory and disk are bytes, as a number or with a unit of `heron.planner.amounts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Final, TypeVar

from heron.api.definition import TopologyDefinition
from heron.errors import ConfigError, known, nearest
from heron.planner.amounts import parse_bytes, parse_cores, parse_count, parse_percent

__all__ = ["CONTAINERS", "Limits", "ResourceMap", "parse_component_map", "read_resource_map"]

CONTAINERS: Final = "topology.stmgrs"
_MAP_KEYS: Final = "topology.component.{}map"
_CONTAINER_KEYS: Final = "topology.container.{}"
_HINT_KEYS: Final = "topology.container.max.{}.hint"
_PADDING_KEYS: Final = "topology.container.{}.padding"
_PADDING_PERCENTAGE: Final = "topology.container.padding.percentage"
_MAX_INSTANCES: Final = "topology.container.max.instances"
_STMGR_RAM: Final = "topology.stmgr.ram"
_METRICSMGR_RAM: Final = "topology.metricsmgr.ram"

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Limits:
    """An amount of each resource; None if the topology does not set it."""

    cpu: float | None
    ram_bytes: int | None
    disk_bytes: int | None

    def amounts(self) -> tuple[float | None, int | None, int | None]:
        """Cores, bytes of memory, bytes of disk."""
        return self.cpu, self.ram_bytes, self.disk_bytes


@dataclass(frozen=True, slots=True)
class ResourceMap:
    """The values of the resource keys. A component that a map omits has the packing's default.

    `container` is the size of a container, `hint` its maximum size, and `padding` the part reserved for the engine.
    `stmgr_ram_bytes` and `metricsmgr_ram_bytes` are parts of the padding. `padding_percentage` and `max_instances` are
    for packings that fill containers up to a limit.
    """

    containers: int
    cpu: Mapping[str, float]
    ram_bytes: Mapping[str, int]
    disk_bytes: Mapping[str, int]
    container: Limits
    hint: Limits
    padding: Limits
    stmgr_ram_bytes: int | None
    metricsmgr_ram_bytes: int | None
    padding_percentage: float | None
    max_instances: int | None

    def limits(self) -> Limits:
        """The maximum size of a container: `container` if it is set, otherwise `hint`."""
        return Limits(
            self.hint.cpu if self.container.cpu is None else self.container.cpu,
            self.hint.ram_bytes if self.container.ram_bytes is None else self.container.ram_bytes,
            self.hint.disk_bytes if self.container.disk_bytes is None else self.container.disk_bytes,
        )


def read_resource_map(definition: TopologyDefinition) -> ResourceMap:
    """Reads the resource map of a topology.

    Raises:
        ConfigError: when a value is not a positive amount, or a map names an unknown component or a component twice.
    """
    config = definition.config
    components = {component.name for component in definition.components}

    def shares(resource: str, parse: Callable[[object, str], N]) -> dict[str, N]:
        key = _MAP_KEYS.format(resource)
        return parse_component_map(config.get(key, ""), key, components, parse)

    return ResourceMap(
        containers=parse_count(config.get(CONTAINERS, 1), CONTAINERS),
        cpu=shares("cpu", parse_cores),
        ram_bytes=shares("ram", parse_bytes),
        disk_bytes=shares("disk", parse_bytes),
        container=_limits(config, _CONTAINER_KEYS),
        hint=_limits(config, _HINT_KEYS),
        padding=_limits(config, _PADDING_KEYS, _padding_cores, _padding_bytes),
        stmgr_ram_bytes=_optional(config, _STMGR_RAM, _padding_bytes),
        metricsmgr_ram_bytes=_optional(config, _METRICSMGR_RAM, _padding_bytes),
        padding_percentage=_optional(config, _PADDING_PERCENTAGE, parse_percent),
        max_instances=_optional(config, _MAX_INSTANCES, parse_count),
    )


def parse_component_map(
    value: object, key: str, components: Set[str], parse: Callable[[object, str], N]
) -> dict[str, N]:
    """Reads ``"a:1,b:2"`` or ``{"a": 1, "b": 2}`` as amounts by component; `parse` reads each amount.

    Raises:
        ConfigError: when the value has another form, or names an unknown component or a component twice.
    """
    amounts: dict[str, N] = {}
    for component, amount in _entries(value, key):
        if component not in components:
            near = nearest(component, components)
            msg = f"{key}: there is no component {component!r}{near}; known: {known(components)}"
            raise ConfigError(msg)
        if component in amounts:
            msg = f"{key}: component {component!r} is named twice; keep one"
            raise ConfigError(msg)
        amounts[component] = parse(amount, f"{key}: component {component!r}")
    return amounts


def _entries(value: object, key: str) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(str(component), amount) for component, amount in value.items()]
    if not isinstance(value, str):
        msg = f"{key}: {value!r} is neither a string nor an object; write 'component:amount,component:amount'"
        raise ConfigError(msg)
    entries: list[tuple[str, object]] = []
    for part in value.split(",") if value.strip() else ():
        component, colon, amount = part.partition(":")
        if not colon:
            msg = f"{key}: {part.strip()!r} is not of the form 'component:amount'"
            raise ConfigError(msg)
        entries.append((component.strip(), amount.strip()))
    return entries


def _limits(
    config: Mapping[str, object],
    pattern: str,
    cores: Callable[[object, str], float] = parse_cores,
    amount: Callable[[object, str], int] = parse_bytes,
) -> Limits:
    return Limits(
        _optional(config, pattern.format("cpu"), cores),
        _optional(config, pattern.format("ram"), amount),
        _optional(config, pattern.format("disk"), amount),
    )


def _padding_cores(value: object, place: str) -> float:
    return parse_cores(value, place, minimum=0)


def _padding_bytes(value: object, place: str) -> int:
    return parse_bytes(value, place, minimum=0)


def _optional(config: Mapping[str, object], key: str, parse: Callable[[object, str], N]) -> N | None:
    value = config.get(key)
    return None if value is None else parse(value, key)
