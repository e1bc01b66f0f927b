"""What differs between two versions of a topology's plans, in sentences for people. Pure.

Values of settings are not shown: a topology may be configured with a password.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heron.api.definition import TopologyDefinition
from heron.planner.packing_plan import Resource
from heron_cli.client import TopologyPlans
from heron_service_tracker.observed.observed import ObservedTopology, ObservedVersion

__all__ = ["new_versions", "plan_changes"]

_Tasks = Mapping[int, tuple[str, int]]
"""The component and the container of each task."""

_MOST = 50  # sentences; a new packing of a thousand tasks is one decision


def new_versions(topology: ObservedTopology, plans: TopologyPlans, at_s: float) -> tuple[ObservedVersion, ...]:
    """Return the version of the plans, with what has changed.

    Nothing is returned when it is the one that is known, or when people see no change, as in a version that orders a
    checkpoint.
    """
    physical = plans.physical
    if physical is None:
        return ()
    known = topology.plans.physical if topology.plans else None
    if known is not None and (known.version, known.epoch) == (physical.version, physical.epoch):
        return ()
    changes = plan_changes(topology.plans, plans) if topology.plans and known else ()
    if known and not changes:
        return ()
    state = physical.state.value
    return (ObservedVersion(physical.version, physical.epoch, plans.packing.id, state, at_s, changes),)


def plan_changes(before: TopologyPlans, now: TopologyPlans) -> tuple[str, ...]:
    """Return at most 50 sentences; none when only the version differs."""
    found = [
        *_parallelism(_definition(before), _definition(now)),
        *_tasks(_tasks_of(before), _tasks_of(now)),
        *_containers(before, now),
        *_settings(_definition(before), _definition(now)),
    ]
    found += _of_physical_plans(before, now)
    more = len(found) - _MOST
    return (*found[: _MOST - 1], f"and {more + 1} more changes") if more > 0 else tuple(found)


def _definition(plans: TopologyPlans) -> TopologyDefinition:
    return plans.physical.topology if plans.physical else plans.definition


def _tasks_of(plans: TopologyPlans) -> _Tasks:
    if plans.physical:
        return {each.task_id: (each.component, each.container_id) for each in plans.physical.tasks}
    return {each.task_id: (each.component, container_id) for container_id, each in plans.packing.instances()}


def _parallelism(before: TopologyDefinition, now: TopologyDefinition) -> Iterator[str]:
    former = {each.name: each.parallelism for each in before.components}
    for each in now.components:
        if each.name in former and former[each.name] != each.parallelism:
            yield f"{each.name} has {_plural(each.parallelism, 'task')}, before {former[each.name]}"


def _tasks(before: _Tasks, now: _Tasks) -> Iterator[str]:
    for task_id, (component, container_id) in now.items():
        if task_id not in before:
            yield f"task {task_id} of {component} was added to container {container_id}"
        elif (former := before[task_id][1]) != container_id:
            yield f"task {task_id} of {component} moved from container {former} to container {container_id}"
    for task_id, (component, container_id) in before.items():
        if task_id not in now:
            yield f"task {task_id} of {component} left container {container_id}"


def _containers(before: TopologyPlans, now: TopologyPlans) -> Iterator[str]:
    former = {each.container_id: each.required for each in before.packing.containers}
    present = {each.container_id: each.required for each in now.packing.containers}
    for container_id in sorted(present.keys() | former.keys()):
        if container_id not in former:
            yield f"container {container_id} was added"
        elif container_id not in present:
            yield f"container {container_id} was removed"
        elif former[container_id] != present[container_id]:
            old, new = _size(former[container_id]), _size(present[container_id])
            yield f"container {container_id} asks for {new}, before {old}"


def _settings(before: TopologyDefinition, now: TopologyDefinition) -> Iterator[str]:
    for key in _changed(before.config, now.config):
        yield f"the setting {key} of the topology changed"
    former = {each.name: each.config for each in before.components}
    for each in now.components:
        for key in _changed(former.get(each.name, each.config), each.config):
            yield f"the setting {key} of {each.name} changed"


def _of_physical_plans(before: TopologyPlans, now: TopologyPlans) -> Iterator[str]:
    old, new = before.physical, now.physical
    if old is None or new is None:
        return
    if old.state is not new.state:
        yield f"the state is {new.state.value}, before {old.state.value}"
    if old.epoch != new.epoch:
        yield f"another topology manager leads, epoch {new.epoch}"
    yield from _restores(before, now)
    for component in _changed(old.key_owners, new.key_owners):
        yield f"key groups of {component} have other owners"
    former = {each.container_id: each for each in old.stmgrs}
    for each in new.stmgrs:
        known = former.get(each.container_id)
        if known is None:
            yield f"the stream manager of container {each.container_id} registered, on {each.host}"
        elif (known.incarnation, known.pid, known.host) != (each.incarnation, each.pid, each.host):
            yield f"the stream manager of container {each.container_id} is another process, on {each.host}"


def _restores(before: TopologyPlans, now: TopologyPlans) -> Iterator[str]:
    old, new = (each.physical.checkpoints if each.physical is not None else None for each in (before, now))
    if old is None or new is None or new.all_restores() == old.all_restores():
        return
    regions = [each for each in new.regions if each not in old.regions]
    for source in dict.fromkeys([each.source for each in regions] or [new.source]):
        names = ", ".join(each.region for each in regions if each.source == source)
        what = f"the region of {names} returns" if names else "all tasks return"
        yield f"{what} to {f'checkpoint {source}' if source else 'the empty state'}"


def _changed(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The keys whose values differ, or that only one of them has."""
    missing = object()
    return [key for key in {**before, **now} if before.get(key, missing) != now.get(key, missing)]


def _size(each: Resource) -> str:
    return f"{each.cpu:g} cores, {each.ram_bytes / 2**20:,.0f} MiB of memory and {each.disk_bytes / 2**20:,.0f} of disk"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
