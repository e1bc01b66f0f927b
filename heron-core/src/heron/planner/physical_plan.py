"""The physical plan: the packing plan, the topology, and the current addresses of the stream managers.

A plan is a frozen value. Its version grows by one at each change. Data carries the version of the plan that routed it.
`PlanIndex` computes the look-ups of routing once per plan instead of once per batch.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from heron.api.definition import TopologyDefinition
from heron.errors import PackingError
from heron.planner.code_change import CodeChange
from heron.planner.key_group import key_groups_of
from heron.planner.key_owners import KeyOwners, even_owners
from heron.planner.packing_plan import PackingPlan, check_packing
from heron.planner.regions import regions_of

__all__ = [
    "ENDED_STATES",
    "CheckpointPlan",
    "HandledLosses",
    "PhysicalPlan",
    "PlanIndex",
    "PlanUpdate",
    "RegionRestore",
    "StreamManagerLocation",
    "TaskPlan",
    "TopologyState",
    "UpdatePhase",
    "at_parallelism_of",
    "physical_plan",
]


class TopologyState(enum.Enum):
    """The states of a topology that people see."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"


ENDED_STATES = frozenset((TopologyState.FINISHED, TopologyState.FAILED, TopologyState.KILLED))
"""A plan in one of these states is the last plan of its topology."""


@dataclass(frozen=True, slots=True)
class StreamManagerLocation:
    """The address at which an incarnation of a container's stream manager listens to its peers.

    `server_key` is the public key of the server there. While keys rotate, `next_endpoint` is the port of the new ones.
    """

    container_id: int
    incarnation: int
    endpoint: str
    host: str
    pid: int
    server_key: str = ""
    next_endpoint: str = ""
    next_server_key: str = ""

    def endpoints(self) -> dict[str, str]:
        """The endpoints by the server's public key, in the order of the sets of keys."""
        following = {self.next_server_key: self.next_endpoint} if self.next_endpoint else {}
        return {self.server_key: self.endpoint, **following}


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """One task and its container."""

    task_id: int
    component: str
    component_index: int
    container_id: int


class UpdatePhase(enum.Enum):
    """The phase of an update.

    `PREPARE`: new tasks start, and data still takes the old routes. `SWITCH`: data takes the new routes, and old tasks
    process what is left for them.
    """

    PREPARE = "prepare"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class PlanUpdate:
    """An update under way: both the tasks that it adds and those that it removes are members of the plan.

    `number` is the version of the plan that began the update; no two updates of a topology have the same. `target` is
    the id of the packing plan that was asked for. `key_owners` are the new owners of key groups, for each component
    whose owners change. `absent` are tasks that do not run and are not restarted: nobody waits for their markers.
    """

    number: int
    phase: UpdatePhase
    target: str
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    key_owners: dict[str, KeyOwners] = field(default_factory=dict)
    absent: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HandledLosses:
    """How many losses of data an incarnation of a stream manager had reported at the last restore."""

    container_id: int
    incarnation: int
    losses: int


@dataclass(frozen=True, slots=True)
class RegionRestore:
    """A restore of one region (`heron.planner.regions`) after the last restore of the whole topology."""

    region: str
    restores: int
    source: str
    since: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """The checkpoints of a topology, as every process has to carry them out.

    `number` is the newest checkpoint that was ordered, and `complete` the newest that is complete; the number of an
    abandoned checkpoint is not used again. `restores` counts the restores. `source` is the id of the checkpoint that
    the last restore, or the start, loads; "" is the empty state. `since` is the version of the plan that ordered the
    last restore: segments with an older version are from before it; 0 until a plan orders it. `losses` were the reason.
    `regions` are restored later than all others; the number of a restore is unique in the topology. `undivided` are the
    components with operator state in `complete`: their tasks cannot change.
    """

    number: int = 0
    complete: int = 0
    restores: int = 0
    source: str = ""
    since: int = 0
    losses: tuple[HandledLosses, ...] = ()
    regions: tuple[RegionRestore, ...] = ()
    undivided: tuple[str, ...] = ()

    def all_restores(self) -> int:
        """How many restores there were, of the whole topology or of a region."""
        return max((each.restores for each in self.regions), default=self.restores)

    def ordered_by(self, version: int) -> CheckpointPlan:
        """The restores that no plan has ordered yet are ordered by the plan with this version."""
        regions = tuple(replace(each, since=each.since or version) for each in self.regions)
        return replace(self, since=self.since or (version if self.restores else 0), regions=regions)

    def of_region(self, region: str) -> CheckpointPlan:
        """What the components of a region have to carry out."""
        for each in self.regions:
            if each.region == region:
                return replace(self, restores=each.restores, source=each.source, since=each.since, regions=())
        return replace(self, regions=()) if self.regions else self


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """The tasks and their containers. `version` grows by one at each change; `epoch` is the epoch of the leader.

    `tasks` are all members, also those that an update adds or removes. `key_owners` are the owners of the key groups of
    each component that an update has changed; for other components `even_owners` says who they are. Only a topology
    that takes checkpoints has `checkpoints`. `package` is the URI of the package of all tasks, "" for that of the
    submission; those that run the new code of a `code` change have another.
    """

    version: int
    epoch: int
    topology_id: str
    topology: TopologyDefinition
    state: TopologyState
    tasks: tuple[TaskPlan, ...]
    stmgrs: tuple[StreamManagerLocation, ...]
    key_owners: dict[str, KeyOwners] = field(default_factory=dict)
    update: PlanUpdate | None = None
    checkpoints: CheckpointPlan | None = None
    package: str = ""
    code: CodeChange | None = None

    def topology_of(self, task_id: int) -> TopologyDefinition:
        """The topology as the code of a task defines it; its streams and groupings are those of all tasks."""
        return self.code.topology if self.code is not None and task_id in self.code.tasks else self.topology

    def precedes(self, other: PhysicalPlan) -> bool:
        """Whether the other is newer. A leader that cannot read the former plan starts with version 1 again."""
        return (self.epoch, self.version) < (other.epoch, other.version)

    def checkpoints_of(self, component: str) -> CheckpointPlan | None:
        """What the tasks of a component have to carry out; None if the topology takes no checkpoints."""
        if self.checkpoints is None or not self.checkpoints.regions:
            return self.checkpoints
        return self.checkpoints.of_region(regions_of(self.topology)[component])


class PlanIndex:
    """The look-ups of routing in one physical plan.

    Members may send and receive. The tasks that data is routed to are fewer while an update is under way. A `viewer` is
    the task that uses the look-ups: a task that the update adds has the new routes from the beginning, because it sends
    nothing before the phase `SWITCH`.
    """

    __slots__ = (
        "_downstream",
        "_has_new_routes",
        "_key_owners",
        "_members",
        "_routed",
        "_sources",
        "_unrouted",
        "_upstream",
        "containers",
        "plan",
        "tasks",
    )

    def __init__(self, plan: PhysicalPlan, viewer: int = 0) -> None:
        self.plan = plan
        self.tasks: Mapping[int, TaskPlan] = MappingProxyType({task.task_id: task for task in plan.tasks})
        self.containers: Mapping[int, StreamManagerLocation] = MappingProxyType(
            {stmgr.container_id: stmgr for stmgr in plan.stmgrs}
        )
        self._members = _by_component(plan.tasks)

        update = plan.update
        self._has_new_routes = update is not None and (update.phase is UpdatePhase.SWITCH or viewer in update.added)
        self._unrouted = _unrouted(update, has_new_routes=self._has_new_routes)
        self._routed = _without(self._members, self._unrouted)
        self._key_owners: dict[str, tuple[int, ...]] = {}

        self._sources = {
            component.name: frozenset(each.component for each in component.inputs)
            for component in plan.topology.components
        }
        self._upstream = _upstream(self._sources, self._members)
        self._downstream = _downstream(self._sources, self._members)

    def tasks_of(self, component: str) -> tuple[int, ...]:
        """The task ids of a component to which data is routed, by component index; empty if it has none."""
        return self._routed.get(component, ())

    def members_of(self, component: str) -> tuple[int, ...]:
        """All task ids of a component, by component index; empty if it has none."""
        return self._members.get(component, ())

    def key_owners(self, component: str) -> tuple[int, ...]:
        """The task that owns each key group of a component, by group; computed at the first call.

        Raises:
            TopologyError: when the topology's number of key groups is not valid.
        """
        owners = self._key_owners.get(component)
        if owners is None:
            owners = self._key_owners[component] = self._owners_of(component)
        return owners

    def owned_groups(self, task_id: int) -> frozenset[int]:
        """The key groups that a task owns."""
        owners = self.key_owners(self.tasks[task_id].component)
        return frozenset(group for group, owner in enumerate(owners) if owner == task_id)

    def upstream_tasks(self, component: str) -> frozenset[int]:
        """The members that may send to a task of this component; KeyError if there is no such component."""
        return self._upstream[component]

    def ancestors(self, component: str) -> frozenset[int]:
        """The members whose data reaches this component, directly or through others; KeyError as above."""
        found: set[str] = set()
        waiting = list(self._sources[component])
        while waiting:
            source = waiting.pop()
            if source not in found:
                found.add(source)
                waiting.extend(self._sources[source])
        return frozenset(task_id for source in found for task_id in self.members_of(source))

    def downstream_tasks(self, component: str) -> tuple[int, ...]:
        """The members that a task of this component may send to, ascending; KeyError as above."""
        return self._downstream[component]

    def receiving_tasks(self, component: str) -> tuple[int, ...]:
        """Those of the downstream tasks that data is routed to, ascending; KeyError as above."""
        return tuple(task_id for task_id in self._downstream[component] if task_id not in self._unrouted)

    def former_tasks(self, task_ids: Iterable[int]) -> tuple[int, ...]:
        """Those of these tasks that data was routed to before the update under way; all of them without an update."""
        added = self.plan.update.added if self.plan.update is not None else ()
        return tuple(task_id for task_id in task_ids if task_id not in added)

    def _owners_of(self, component: str) -> tuple[int, ...]:
        update = self.plan.update
        if update is not None and self._has_new_routes and component in update.key_owners:
            return update.key_owners[component].table()
        if component in self.plan.key_owners:
            return self.plan.key_owners[component].table()
        return even_owners(key_groups_of(self.plan.topology), self.tasks_of(component))


def _unrouted(update: PlanUpdate | None, *, has_new_routes: bool) -> frozenset[int]:
    """The members that data is not routed to: those that the update removes, or those that it adds."""
    if update is None:
        return frozenset()
    return frozenset(update.removed if has_new_routes else update.added)


def _by_component(tasks: Iterable[TaskPlan]) -> dict[str, tuple[int, ...]]:
    """The task ids of each component, by component index."""
    members: dict[str, list[int]] = {}
    for task in sorted(tasks, key=lambda task: (task.component_index, task.task_id)):
        members.setdefault(task.component, []).append(task.task_id)
    return {component: tuple(task_ids) for component, task_ids in members.items()}


def _without(members: dict[str, tuple[int, ...]], task_ids: frozenset[int]) -> dict[str, tuple[int, ...]]:
    if not task_ids:
        return members
    return {name: tuple(each for each in own if each not in task_ids) for name, own in members.items()}


def _upstream(
    sources_of: Mapping[str, frozenset[str]], members: Mapping[str, tuple[int, ...]]
) -> dict[str, frozenset[int]]:
    """The members of the sources of each component."""
    return {
        name: frozenset(task_id for source in sources for task_id in members.get(source, ()))
        for name, sources in sources_of.items()
    }


def _downstream(
    sources_of: Mapping[str, frozenset[str]], members: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The members of the consumers of each component, ascending."""
    found: dict[str, set[int]] = {name: set() for name in sources_of}
    for name, sources in sources_of.items():
        for source in sources:
            found[source].update(members.get(name, ()))
    return {name: tuple(sorted(task_ids)) for name, task_ids in found.items()}


def physical_plan(  # noqa: PLR0913  # one for each part of the plan
    packing: PackingPlan,
    definition: TopologyDefinition,
    stmgrs: Iterable[StreamManagerLocation],
    *,
    version: int,
    epoch: int,
    topology_id: str,
    state: TopologyState,
    leaving: Collection[int] = (),
) -> PhysicalPlan:
    """The plan with tasks in order of id and stream managers in order of container.

    Its topology has the parallelism of the packing plan, which an update changes. `stmgrs` may lack stream managers
    that are not connected now. `leaving` are the tasks that an update removes.

    Raises:
        PackingError: when the packing plan breaks its rules or is the plan of another topology, or when it lacks the
            container of a stream manager.
    """
    topology = at_parallelism_of(packing, definition)
    counts = Counter(each.component for _, each in packing.instances() if each.task_id not in leaving)
    check_packing(packing, {each.name: counts[each.name] for each in topology.components}, leaving)
    located = {stmgr.container_id: stmgr for stmgr in stmgrs}
    packed = {container.container_id for container in packing.containers}
    for container_id in located:
        if container_id not in packed:
            msg = f"packing plan {packing.id!r}: has no container {container_id}, whose stream manager registered"
            raise PackingError(msg)
    tasks = sorted(
        (
            TaskPlan(instance.task_id, instance.component, instance.component_index, container_id)
            for container_id, instance in packing.instances()
        ),
        key=lambda task: task.task_id,
    )
    return PhysicalPlan(
        version=version,
        epoch=epoch,
        topology_id=topology_id,
        topology=topology,
        state=state,
        tasks=tuple(tasks),
        stmgrs=tuple(located[container_id] for container_id in sorted(located)),
    )


def at_parallelism_of(packing: PackingPlan, definition: TopologyDefinition) -> TopologyDefinition:
    """The definition with the parallelism of the packing plan.

    Raises:
        PackingError: when a component has no instance in the packing plan.
    """
    counts = packing.parallelism()
    for component in definition.components:
        if component.name not in counts:
            msg = f"packing plan {packing.id!r}: component {component.name!r} of {definition.name!r} has no instance"
            raise PackingError(msg)
    if all(component.parallelism == counts[component.name] for component in definition.components):
        return definition
    return replace(
        definition,
        components=tuple(
            component
            if component.parallelism == counts[component.name]
            else replace(component, parallelism=counts[component.name])
            for component in definition.components
        ),
    )
