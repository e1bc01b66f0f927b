"""New code for the tasks of a running topology: what changes, and the packing plans with other packages. Pure.

A task keeps its code for as long as it lives. So tasks with new code are new tasks, which take the places of others:
the same component, index and container. Outside of a change, all instances have one package. See
`docs/decisions/111-new-code-by-new-tasks.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import msgspec

from heron.api.definition import TopologyDefinition
from heron.errors import RemoteProtocolError
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, fingerprint

__all__ = ["CodeChange", "at_package", "decode_change", "encode_change", "replaced"]


@dataclass(frozen=True, slots=True)
class CodeChange:
    """A change of the code under way.

    `package` is the URI of the new package, and `topology` the topology as its code defines it. `components` are those
    whose code changes, and `tasks` those that run the new code, or will when their update has prepared them. With
    `canary_s` the tasks are canaries: a command decides about all tasks of the components when this time is over.
    `returns` is why the tasks go back to the former package; "" while the change goes on.
    """

    package: str
    topology: TopologyDefinition
    components: tuple[str, ...]
    tasks: tuple[int, ...] = ()
    canary_s: float = 0.0
    returns: str = ""


def replaced(packing: PackingPlan, task_ids: Collection[int], package: str) -> PackingPlan:
    """The plan with a new task, with the code of a package, in the place of each of these tasks."""
    last = packing.next_task_id() - 1
    fresh = {task_id: last + number for number, task_id in enumerate(sorted(task_ids), 1)}

    def successor(each: InstancePlan) -> InstancePlan:
        return replace(each, task_id=fresh[each.task_id], package=package) if each.task_id in fresh else each

    return _mapped(packing, successor, last + len(fresh))


def at_package(packing: PackingPlan, package: str) -> PackingPlan:
    """The plan with one package for all instances; the same object if they have it."""
    if all(each.package == package for _, each in packing.instances()):
        return packing
    return _mapped(packing, lambda each: replace(each, package=package), packing.last_task_id)


def encode_change(change: CodeChange) -> bytes:
    """The document of a request."""
    return msgspec.json.encode(change)


def decode_change(document: bytes) -> CodeChange:
    """The change in a request.

    Raises:
        RemoteProtocolError: when the document is not that of `encode_change`.
    """
    try:
        return msgspec.json.decode(document, type=CodeChange)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"the new code of a request is not readable: {error}; use the version of heron-core that it runs"
        raise RemoteProtocolError(msg) from error


def _mapped(packing: PackingPlan, change: Callable[[InstancePlan], InstancePlan], last_task_id: int) -> PackingPlan:
    containers = tuple(
        ContainerPlan(each.container_id, tuple(map(change, each.instances)), each.required)
        for each in packing.containers
    )
    return PackingPlan(fingerprint(containers, last_task_id), containers, last_task_id)
