"""Changes the tasks of a running topology: packs it again, adds containers, and waits for the phases.

The topology manager leads the update. This module gives it the new packing plan, and the scheduler the containers to
add before and to remove after it. See ``docs/live-updates.md``.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from heron.checkpoints.manifest import CheckpointId
from heron.clock import monotonic_s
from heron.errors import HeronError, PackingError, StateError, TopologyFailedError, UnreachableError, UsageError
from heron.ipc.documents.status import TopologyStatus, UpdateStatus
from heron.planner.key_balance import encode_owners
from heron.planner.key_owners import KeyOwners, moved_groups
from heron.planner.packing_plan import NO_RESOURCE, PackingPlan, Resource, check_standbys
from heron.planner.physical_plan import PlanIndex
from heron.planner.plan_update import planned_update, without
from heron.planner.regions import regions_of
from heron.spi.packing import Packing
from heron.spi.scheduler import ContainerSpec, Scheduler
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.plans import decode_packing_plan, decode_physical_plan, decode_topology, encode_plan
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.other_plugins import observer_entries
from heron_cli.catalog.third_party import open_guarded
from heron_cli.launch.container_specs import checkpoint_store, container_specs
from heron_cli.launch.named_drivers import named_serializers, named_state_backends
from heron_cli.launch.rebalance import Rebalance, plan_rebalance
from heron_cli.profiles.overrides import engine_settings
from heron_cli.topologies.checkpoint_list import open_archive
from heron_cli.topologies.environment import Environment, ProfileChoice, without_secrets
from heron_cli.topologies.hosts import avoid_blocked_hosts
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.topology_end import check_not_ended

__all__ = ["TopologyUpdate", "lacks_containers", "plan_update", "run_update"]

_POLL_S = 0.1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TopologyUpdate:
    """An update and what it changes.

    `before` and `after` are the packing plans; they are equal if there is nothing to change. `moved_groups` is the
    number of key groups that get another task, by component, and `moved_bytes` the size of their state in the newest
    checkpoint; None without one. `took_s` is the time until it was complete; None for an update that was only planned.
    `rebalance` is what was measured and is moved by load, if that was asked for. `restored` are the components that
    return to the checkpoint of the update, if the topology takes any: they process again what came since.
    """

    topology: str
    before: PackingPlan
    after: PackingPlan
    moved_groups: Mapping[str, int]
    took_s: float | None = None
    moved_bytes: Mapping[str, int] | None = None
    rebalance: Rebalance | None = None
    restored: tuple[str, ...] = ()

    def resources(self) -> tuple[Resource, Resource]:
        """Return what all containers need, before and after."""
        before, after = (
            sum((each.required for each in packing.containers), NO_RESOURCE) for packing in (self.before, self.after)
        )
        return before, after

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to change."""
        return self.after is self.before and not (self.rebalance and self.rebalance.owners)

    def added(self) -> dict[int, tuple[str, int]]:
        """Return the new tasks: component and container by task id."""
        return _places(self.after, self.before)

    def removed(self) -> dict[int, tuple[str, int]]:
        """Return the tasks that leave: component and container by task id."""
        return _places(self.before, self.after)

    def added_containers(self) -> tuple[int, ...]:
        """Return the ids of new containers."""
        return tuple(sorted(_containers(self.after) - _containers(self.before)))

    def removed_containers(self) -> tuple[int, ...]:
        """Return the ids of containers that leave."""
        return tuple(sorted(_containers(self.before) - _containers(self.after)))


def plan_update(
    environment: Environment,
    topology: RemoteTopology,
    parallelism: Mapping[str, int],
    containers: int | None = None,
    rebalance: Collection[str] = (),
) -> TopologyUpdate:
    """Pack the topology again with these numbers of tasks, and of containers; changes nothing.

    With `rebalance`, nothing is packed: the load of these components is measured, and their key groups move.

    Raises:
        UsageError: when a component is unknown, a number is wrong, the tasks do not fit into a container, or the
            topology is starting.
        StateError: when a node of the topology is missing or unreadable.
    """
    statemgr, name = environment.statemgr, topology.name
    before = decode_packing_plan(_node(statemgr, NodeKind.PACKING_PLAN, name), name)
    index = PlanIndex(decode_physical_plan(_node(statemgr, NodeKind.PHYSICAL_PLAN, name), name))
    if not index.plan.version:  # a leader has claimed it, and no task has a place yet
        msg = f"topology {name!r} is starting; only a running topology can be updated: `heron status {name}` tells when"
        raise UsageError(msg)
    if index.plan.update is not None:  # the topology manager refuses another, with its phase
        before = without(before, index.plan.update.removed)
    if rebalance:
        planned = plan_rebalance(index, topology, rebalance)
        update = TopologyUpdate(name, before, before, {}, rebalance=planned)
        return _with_moves(environment, index, update, planned.owners)
    definition = decode_topology(_node(statemgr, NodeKind.TOPOLOGY, name), name)
    packing = open_guarded(environment.profile.packing, Packing)
    try:
        if containers is None:
            after = packing.repack(before, definition, parallelism)
        else:
            after = packing.repack_into(before, definition, parallelism, containers)
    except PackingError as error:
        msg = f"topology {name!r}: {error}"
        raise UsageError(msg) from error
    if after is before:
        return TopologyUpdate(name, before, before, {})
    settings = engine_settings(environment.profile.engine, definition, environment.profile.engine.on_failure)
    check_standbys(name, after, settings.standbys)
    owners = planned_update(index, after, index.plan.version + 1).key_owners
    return _with_moves(environment, index, TopologyUpdate(name, before, after, {}), owners)


def _with_moves(
    environment: Environment, index: PlanIndex, update: TopologyUpdate, owners: Mapping[str, KeyOwners]
) -> TopologyUpdate:
    moved = {component: moved_groups(index.key_owners(component), each.table()) for component, each in owners.items()}
    numbers = {component: len(groups) for component, groups in moved.items()}
    sizes, restored = _moved_bytes(environment, index, moved), _restored(index, update, owners)
    return replace(update, moved_groups=numbers, moved_bytes=sizes, restored=restored)


def _restored(index: PlanIndex, update: TopologyUpdate, owners: Collection[str]) -> tuple[str, ...]:
    """Return the components that return to a checkpoint: all that are connected to one whose tasks or keys change."""
    if index.plan.checkpoints is None:
        return ()
    places = (*update.added().values(), *update.removed().values())
    regions = regions_of(index.plan.topology)
    changed = {regions[each] for each in (*owners, *(component for component, _ in places))}
    return tuple(name for name, region in regions.items() if region in changed)


def _moved_bytes(
    environment: Environment, index: PlanIndex, moved: Mapping[str, tuple[int, ...]]
) -> dict[str, int] | None:
    """Return the bytes of state that move, by component; None if no checkpoint tells them."""
    orders, plan = index.plan.checkpoints, index.plan
    if orders is None or not orders.complete:
        return None
    try:
        archive = open_archive(environment.profile, plan.topology.name)
        manifest = archive.manifest(CheckpointId(plan.topology_id, orders.complete))
    except HeronError as error:  # the sizes are for people; the update does not need them
        _log.warning("the size of the state that moves is unknown: %s", error)
        return None
    return {component: manifest.size_of_groups(component, groups) for component, groups in moved.items()}


def run_update(
    environment: Environment,
    choice: ProfileChoice,
    topology: RemoteTopology,
    update: TopologyUpdate,
    on_phase: Callable[[UpdateStatus], None],
) -> TopologyUpdate:
    """Carry out a planned update and return when it is complete; `on_phase` is called in each phase.

    The time limit of `topology` is that of the whole update.

    Raises:
        UsageError: when the topology refuses the update, or the scheduler cannot change containers; nothing changed.
        SchedulerError: when containers cannot be added; the update is withdrawn.
        TopologyFailedError: when the update was withdrawn, or the topology has ended meanwhile.
        UnreachableError: when it is not complete in time; it continues.
    """
    began_s = monotonic_s()
    if update.is_empty:
        return replace(update, took_s=0.0)
    scheduler = environment.scheduler
    added = _specs(environment, choice, topology, update)
    if (added or update.removed_containers()) and "update" not in scheduler.capabilities:
        msg = (
            f"the scheduler of profile {environment.profile.name!r} cannot add or remove containers, and this update "
            f"adds {len(added)} and removes {len(update.removed_containers())}"
        )
        raise UsageError(msg)
    with without_secrets(environment.profile):
        owners = encode_owners(update.rebalance.owners) if update.rebalance else b""
        topology.begin_update(encode_plan(update.after), update.before.id, owners)
        _change_containers(scheduler, topology, update, added)
        try:
            _wait(environment.statemgr, topology, update, on_phase)
        except TopologyFailedError:
            with contextlib.suppress(HeronError):  # it must not hide the outcome, and the next update removes them
                _remove(scheduler, topology, set(update.added_containers()) & _present(scheduler, topology))
            raise
        _remove(scheduler, topology, set(update.removed_containers()) & _present(scheduler, topology))
    return replace(update, took_s=round(monotonic_s() - began_s, 3))


def _change_containers(
    scheduler: Scheduler, topology: RemoteTopology, update: TopologyUpdate, added: tuple[ContainerSpec, ...]
) -> None:
    """Add the new containers. First remove those of an update whose command did not reach its end.

    The update has begun, so no other command changes containers now.
    """
    try:
        _remove(scheduler, topology, _present(scheduler, topology) - _containers(update.before))
        if added:
            avoid_blocked_hosts(scheduler, topology.statemgr)
            scheduler.update(topology.name, added, ())
    except HeronError as error:
        topology.withdraw_update(f"the scheduler cannot change containers: {error}")
        raise


def _present(scheduler: Scheduler, topology: RemoteTopology) -> set[int]:
    """Return the containers with tasks that the scheduler has; none if it cannot change them."""
    if "update" not in scheduler.capabilities:
        return set()
    job = scheduler.status(topology.name).of(topology.run.topology_id)
    return {each.container_id for each in job.containers} - {0}


def lacks_containers(scheduler: Scheduler, topology: RemoteTopology, containers: Collection[int]) -> bool:
    """Whether the scheduler can add containers and does not have all of these.

    Raises:
        SchedulerError: when the scheduler does not answer.
    """
    return "update" in scheduler.capabilities and not _present(scheduler, topology).issuperset(containers)


def _remove(scheduler: Scheduler, topology: RemoteTopology, containers: set[int]) -> None:
    """Remove containers whose executors have ended."""
    if containers:
        scheduler.update(topology.name, (), sorted(containers))


def _wait(
    statemgr: StateManager,
    topology: RemoteTopology,
    update: TopologyUpdate,
    on_phase: Callable[[UpdateStatus], None],
) -> None:
    deadline_s = monotonic_s() + topology.timeout_s
    pause = threading.Event()
    shown = ""
    while True:
        status = topology.status()
        now = status.update if status.update and status.update.target == update.after.id else None
        if now is not None and now.phase != shown:
            shown = now.phase
            on_phase(now)
        if _is_complete(statemgr, topology, update, status, now):
            return
        if monotonic_s() >= deadline_s:
            waits = f"it is in phase {now.phase} and waits for {now.waits_for}" if now else "its phase is unknown"
            msg = (
                f"the update of topology {topology.name!r} is not complete after {topology.timeout_s:g} s: {waits}; it "
                f"continues, see `heron status {topology.name}`"
            )
            raise UnreachableError(msg)
        pause.wait(_POLL_S)


def _is_complete(
    statemgr: StateManager,
    topology: RemoteTopology,
    update: TopologyUpdate,
    status: TopologyStatus,
    now: UpdateStatus | None,
) -> bool:
    check_not_ended(status)
    if now is not None and now.phase == "withdrawn":
        msg = f"the update of topology {topology.name!r} was withdrawn, nothing has changed: {now.waits_for}"
        raise TopologyFailedError(msg)
    if now is not None:
        return now.phase == "complete"
    # The update is over: another one has begun, or another topology manager leads, which knows only updates under way.
    present = decode_packing_plan(_node(statemgr, NodeKind.PACKING_PLAN, topology.name), topology.name)
    tasks = {instance.task_id for _, instance in present.instances()}
    has_tasks = update.removed().keys().isdisjoint(tasks) and update.added().keys() <= tasks
    if not has_tasks or (update.rebalance and not _has_owners(statemgr, topology.name, update.rebalance)):
        msg = f"the update of topology {topology.name!r} was withdrawn when another topology manager took over"
        raise TopologyFailedError(msg)
    return True


def _has_owners(statemgr: StateManager, name: str, rebalance: Rebalance) -> bool:
    index = PlanIndex(decode_physical_plan(_node(statemgr, NodeKind.PHYSICAL_PLAN, name), name))
    return all(index.key_owners(component) == each.table() for component, each in rebalance.owners.items())


def _specs(
    environment: Environment, choice: ProfileChoice, topology: RemoteTopology, update: TopologyUpdate
) -> tuple[ContainerSpec, ...]:
    added = update.added_containers()
    if not added:
        return ()
    definition = decode_topology(_node(environment.statemgr, NodeKind.TOPOLOGY, topology.name), topology.name)
    profile, resolve = environment.profile, Drivers(without=choice.without).resolve
    return container_specs(
        profile,
        topology.run,
        {container_id: update.after.container(container_id).required for container_id in added},
        engine_settings(profile.engine, definition, profile.engine.on_failure),
        tuple(observer_entries(choice.without)),
        (*named_serializers(definition, resolve), *named_state_backends(definition, profile, resolve)),
        checkpoint_store(profile, definition),
    )


def _node(statemgr: StateManager, kind: NodeKind, topology: str) -> bytes:
    node = statemgr.get(kind, topology)
    if node is None:
        msg = f"topology {topology!r} has no node {kind.value!r} in the state manager; it is starting, or was killed"
        raise StateError(msg)
    return node.value


def _places(packing: PackingPlan, other: PackingPlan) -> dict[int, tuple[str, int]]:
    known = {instance.task_id for _, instance in other.instances()}
    return {
        instance.task_id: (instance.component, container_id)
        for container_id, instance in packing.instances()
        if instance.task_id not in known
    }


def _containers(packing: PackingPlan) -> set[int]:
    return {each.container_id for each in packing.containers}
