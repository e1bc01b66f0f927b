"""An update of a topology, and a change of its configuration, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from heron_cli.view.text import format_bytes

if TYPE_CHECKING:
    from heron_cli.launch.update import TopologyUpdate
    from heron_cli.topologies.running.runtime_config import ConfigChange

__all__ = ["update_as_json", "update_lines"]


def update_lines(update: TopologyUpdate) -> Iterator[str]:
    """Yield what an update changes: parallelism, tasks, containers, key groups."""
    before, after = update.before.parallelism(), update.after.parallelism()
    yield from _loads(update)
    if update.is_empty:
        yield f"{update.topology}: nothing to change"
        return
    for component in after:
        groups = update.moved_groups.get(component, 0)
        size_bytes = (update.moved_bytes or {}).get(component, 0)
        state = f" with {format_bytes(size_bytes)} of state" if size_bytes else ""
        moved = f", {groups} key groups{state} move" if groups else ""
        if before[component] != after[component]:
            yield f"{component}: {before[component]} -> {after[component]} tasks{moved}"
        elif moved:
            yield f"{component}: {after[component]} tasks{moved}"
    yield from _tasks("+", update.added())
    yield from _tasks("-", update.removed())
    for sign, containers in (("+", update.added_containers()), ("-", update.removed_containers())):
        for container_id in containers:
            yield f"  {sign} container {container_id}"
    (cpu, ram_bytes, _), (more_cpu, more_ram_bytes, _) = (each.amounts() for each in update.resources())
    if (cpu, ram_bytes) != (more_cpu, more_ram_bytes):
        memory = f"{format_bytes(int(ram_bytes))} -> {format_bytes(int(more_ram_bytes))}"
        yield f"  containers need {cpu:g} -> {more_cpu:g} cores and {memory} of memory"
    if update.restored:
        yield f"  {', '.join(update.restored)}: return to a checkpoint and process again what came since"
    if update.took_s is not None:
        yield f"{update.topology}: the update is complete after {update.took_s:.1f} s"


def update_as_json(update: TopologyUpdate) -> dict[str, object]:
    """Return the document of ``heron update --json``.

    `took_s` is null for a dry run, `moved_bytes` if no checkpoint tells the size of the state, and `loads` without a
    rebalance.
    """
    return {
        "topology": update.topology,
        "before": update.before.parallelism(),
        "after": update.after.parallelism(),
        "added": _places(update.added()),
        "removed": _places(update.removed()),
        "added_containers": list(update.added_containers()),
        "removed_containers": list(update.removed_containers()),
        "moved_key_groups": dict(update.moved_groups),
        "moved_bytes": None if update.moved_bytes is None else dict(update.moved_bytes),
        "loads": [asdict(each) for each in update.rebalance.loads] if update.rebalance else None,
        "resources": {when: asdict(each) for when, each in zip(("before", "after"), update.resources(), strict=True)},
        "restored": list(update.restored),
        "took_s": update.took_s,
    }


def config_lines(topology: str, changes: Sequence[ConfigChange]) -> Iterator[str]:
    """Yield what a change of the configuration changes."""
    if not changes:
        yield f"{topology}: nothing to change"
    for each in changes:
        before = "no value" if each.before is None else json.dumps(each.before)
        yield f"{each.component or topology}: {each.key}: {before} -> {json.dumps(each.after)}"


def config_as_json(topology: str, changes: Sequence[ConfigChange]) -> dict[str, object]:
    """Return the document of ``heron update --runtime-config … --json``; `component` is "" for the topology."""
    return {"topology": topology, "changes": [asdict(each) for each in changes]}


def _loads(update: TopologyUpdate) -> Iterator[str]:
    for each in update.rebalance.loads if update.rebalance else ():
        yield f"  task {each.component}/{each.task_id}: {each.now_per_s:,.0f} -> {each.expected_per_s:,.0f} tuples/s"


def _tasks(sign: str, places: Mapping[int, tuple[str, int]]) -> Iterator[str]:
    for task_id, (component, container_id) in sorted(places.items()):
        yield f"  {sign} task {component}/{task_id} in container {container_id}"


def _places(places: Mapping[int, tuple[str, int]]) -> list[dict[str, object]]:
    return [
        {"task_id": task_id, "component": component, "container_id": container_id}
        for task_id, (component, container_id) in sorted(places.items())
    ]
