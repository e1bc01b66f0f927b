"""Whether a topology can start from a checkpoint. Pure."""

from __future__ import annotations

from heron.api.definition import TopologyDefinition
from heron.checkpoints.manifest import CheckpointManifest
from heron.errors import CheckpointError
from heron.planner.key_group import key_groups_of

__all__ = ["check_compatible"]


def check_compatible(manifest: CheckpointManifest, definition: TopologyDefinition) -> None:
    """Checks that every state of the checkpoint has a place in the topology.

    Keyed state can be divided among any number of tasks. A state of `init_state` belongs to one task, so its component
    keeps its parallelism. Each task checks `state_version` itself.

    Raises:
        CheckpointError: when the number of key groups differs, a component with state is missing, or a component with
            operator state has another parallelism.
        TopologyError: when `topology.key.groups` is not an acceptable number.
    """
    place = f"topology {definition.name!r}: checkpoint {manifest.id}"
    groups = key_groups_of(definition)
    if manifest.key_groups != groups:
        msg = (
            f"{place} has {manifest.key_groups} key groups, the topology has {groups}; set topology.key.groups to "
            f"{manifest.key_groups}"
        )
        raise CheckpointError(msg)
    parallelism = {each.name: each.parallelism for each in definition.components}
    for component in sorted({each.component for each in manifest.tasks if each.places()}):
        tasks = manifest.tasks_of(component)
        if component not in parallelism:
            known = ", ".join(map(repr, sorted(parallelism)))
            msg = (
                f"{place} has state of component {component!r}, the topology has the components {known}; give the "
                "component its former name, or use another checkpoint"
            )
            raise CheckpointError(msg)
        if any(each.operator for each in tasks) and len(tasks) != parallelism[component]:
            msg = (
                f"{place} has the state of init_state for {len(tasks)} tasks of component {component!r}, the topology "
                f"has {parallelism[component]}; set its parallelism to {len(tasks)}, only keyed state can be divided"
            )
            raise CheckpointError(msg)
