"""The packing plan assigns instances to containers, with their resources. `check_packing` has the rules of plans."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

import msgspec
from xxhash import xxh3_64_hexdigest

from heron.api.api_constants import TOPOLOGY_TMANAGER_STANDBYS
from heron.errors import PackingError, UsageError, known, nearest

__all__ = [
    "CPU_ROUNDING",
    "NO_RESOURCE",
    "ContainerPlan",
    "InstancePlan",
    "PackingPlan",
    "Resource",
    "check_packing",
    "check_standbys",
    "fingerprint",
    "standby_containers",
]

CPU_ROUNDING: Final = 1e-9
"""Rounding of sums of cores: an excess below this value is not an excess."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Resources of a machine: cores, bytes of memory, bytes of disk."""

    cpu: float
    ram_bytes: int
    disk_bytes: int

    def __add__(self, other: Resource) -> Resource:
        return Resource(self.cpu + other.cpu, self.ram_bytes + other.ram_bytes, self.disk_bytes + other.disk_bytes)

    def __sub__(self, other: Resource) -> Resource:
        return Resource(self.cpu - other.cpu, self.ram_bytes - other.ram_bytes, self.disk_bytes - other.disk_bytes)

    def amounts(self) -> tuple[float, int, int]:
        """Cores, bytes of memory, bytes of disk."""
        return self.cpu, self.ram_bytes, self.disk_bytes


NO_RESOURCE: Final = Resource(0.0, 0, 0)


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """One task: its component, its id (from 1, unique in the topology, never reused), its index (from 0).

    `package` is the URI of the package with its code; "" is that of the submission. Packings leave it empty.
    """

    component: str
    task_id: int
    component_index: int
    resource: Resource
    package: str = ""


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """One container. Ids start at 1: container 0, with the topology manager, is not in the plan."""

    container_id: int
    instances: tuple[InstancePlan, ...]
    required: Resource


@dataclass(frozen=True, slots=True)
class PackingPlan:
    """Every container and its instances.

    `last_task_id` is the highest task id that the topology has ever used, also for an instance that has left the plan;
    0 means the highest id in the plan.
    """

    id: str
    containers: tuple[ContainerPlan, ...]
    last_task_id: int = 0

    def instances(self) -> Iterator[tuple[int, InstancePlan]]:
        """Every instance with the id of its container, in plan order."""
        for container in self.containers:
            for instance in container.instances:
                yield container.container_id, instance

    def next_task_id(self) -> int:
        """The task id for the next new instance."""
        return max(self.last_task_id, *(instance.task_id for _, instance in self.instances()), 0) + 1

    def parallelism(self) -> dict[str, int]:
        """The number of instances of each component in the plan, in plan order."""
        counts: dict[str, int] = {}
        for _, instance in self.instances():
            counts[instance.component] = counts.get(instance.component, 0) + 1
        return counts

    def container(self, container_id: int) -> ContainerPlan:
        """The container with that id; KeyError if there is none."""
        for container in self.containers:
            if container.container_id == container_id:
                return container
        raise KeyError(container_id)


def check_packing(plan: PackingPlan, parallelism: Mapping[str, int], leaving: Collection[int] = ()) -> None:
    """Checks that the plan has each instance once: unique ids, indexes 0 … n-1 per component, no empty container.

    `parallelism` is the required number of instances of every component. Tasks that are `leaving` are not counted: an
    update may replace them by tasks with the same index.

    Raises:
        PackingError: when a rule is broken; names the container, component or task.
    """
    _check_containers(plan)
    indexes: dict[str, list[int]] = {component: [] for component in parallelism}
    placed: dict[int, int] = {}
    for container_id, instance in plan.instances():
        where = f"container {container_id}, task {instance.task_id}"
        if instance.component not in indexes:
            near = nearest(instance.component, indexes)
            _refuse(plan, f"{where}: unknown component {instance.component!r}{near}; known: {known(indexes)}")
        if instance.task_id < 1:
            _refuse(plan, f"{where}: task ids start at 1")
        if instance.task_id in placed:
            _refuse(plan, f"{where}: the task is also in container {placed[instance.task_id]}")
        placed[instance.task_id] = container_id
        if instance.task_id not in leaving:
            indexes[instance.component].append(instance.component_index)
    for component, found in indexes.items():
        wanted = parallelism[component]
        if sorted(found) != list(range(wanted)):
            _refuse(
                plan,
                f"component {component!r}: has the indexes {_shortened(sorted(found))}, "
                f"not each of 0 to {wanted - 1} once",
            )


def fingerprint(containers: tuple[ContainerPlan, ...], last_task_id: int) -> str:
    """The id of a packing plan with this content: 16 hexadecimal digits. Equal contents have equal ids."""
    return xxh3_64_hexdigest(msgspec.json.encode([containers, last_task_id], order="deterministic"))


def standby_containers(packing: PackingPlan, standbys: int) -> tuple[int, ...]:
    """The containers with a standby topology manager: the first ones after container 0, which has its own."""
    return tuple(sorted(container.container_id for container in packing.containers)[:standbys])


def check_standbys(topology: str, packing: PackingPlan, standbys: int) -> None:
    """Checks that each standby gets its own container. Two standbys in one container would end together.

    Raises:
        UsageError: when there are too few containers.
    """
    limit = len(packing.containers)
    if standbys > limit:
        have = f"{limit} container{'' if limit == 1 else 's'}"
        msg = (
            f"topology {topology!r}: {TOPOLOGY_TMANAGER_STANDBYS}: {standbys} standby topology managers need as many "
            f"containers besides container 0, and the packing plan has {have}; set it to {limit} at most, or use more "
            "containers"
        )
        raise UsageError(msg)


def _check_containers(plan: PackingPlan) -> None:
    seen: set[int] = set()
    for container in plan.containers:
        if container.container_id < 1:
            _refuse(plan, f"container {container.container_id}: ids of containers start at 1")
        if container.container_id in seen:
            _refuse(plan, f"container {container.container_id}: is in the plan twice")
        if not container.instances:
            _refuse(plan, f"container {container.container_id}: is empty")
        seen.add(container.container_id)


def _shortened(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "") or "none"


def _refuse(plan: PackingPlan, message: str) -> NoReturn:
    text = f"packing plan {plan.id!r}: {message}"
    raise PackingError(text)
