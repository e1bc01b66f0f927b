"""Renders the three plans of a topology: as a tree for people, as JSON for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from heron.api.definition import GroupingDefinition
from heron.planner.logical_plan import LogicalPlan, logical_plan
from heron.planner.packing_plan import InstancePlan, PackingPlan, Resource
from heron.spi.engine import PIPELINE_KEY
from heron_cli.launch.prepare import Prepared
from heron_cli.view.plan_picture import Legend, container_pictures, used_by_instances
from heron_cli.view.text import counted

__all__ = ["plan_document", "plan_tree"]


def plan_tree(prepared: Prepared) -> Tree:
    """Return the plans as a tree: the data flow, the use of each container, the place of each task."""
    tree = Tree(Text(prepared.loaded.definition.name, style="bold"))
    _add_pipeline(tree, prepared.loaded.definition.config.get(PIPELINE_KEY))
    _add_logical(tree.add("logical plan"), logical_plan(prepared.loaded.definition))
    _add_packing(tree, prepared)
    _add_physical(tree.add("physical plan"), prepared.plan)
    return tree


def plan_document(prepared: Prepared) -> dict[str, object]:
    """Return the plans of `plan_tree` as JSON values; memory and disk in bytes."""
    definition = prepared.loaded.definition
    logical = logical_plan(definition)
    return {
        "topology": definition.name,
        "config": definition.config,
        "logical": {
            "components": [
                {
                    "name": node.component.name,
                    "kind": node.component.kind.value,
                    "entry": node.component.entry,
                    "parallelism": node.component.parallelism,
                    "depth": node.depth,
                    "outputs": {each.name: each.fields for each in node.component.outputs},
                }
                for node in logical.nodes
            ],
            "edges": [
                {
                    "from": edge.source,
                    "stream": edge.stream,
                    "to": edge.target,
                    "grouping": edge.grouping.kind.value,
                    "fields": edge.grouping.fields,
                }
                for edge in logical.edges
            ],
        },
        "packing": {
            "driver": prepared.packing,
            "id": prepared.plan.id,
            "limits": dataclasses.asdict(prepared.limits),
            "containers": [
                {
                    "id": each.container_id,
                    **_amounts(each.required),
                    "used": _amounts(used_by_instances(each)),
                    "instances": [_task(one) for one in each.instances],
                }
                for each in prepared.plan.containers
            ],
        },
        "physical": {
            "tasks": [
                {"task": one.task_id, "component": one.component, "index": one.component_index, "container": container}
                for container, one in _by_task(prepared.plan)
            ]
        },
    }


def _add_pipeline(tree: Tree, pipeline: object) -> None:
    """Show a pipeline as its author wrote it, and what of it runs without a shuffle inside."""
    if not isinstance(pipeline, dict):
        return
    for title, key in (("pipeline", "operators"), ("stages", "stages")):
        branch = tree.add(title)
        for line in pipeline.get(key, ()):
            branch.add(Text(str(line)))


def _add_logical(tree: Tree, plan: LogicalPlan) -> None:
    for node in plan.nodes:
        component = node.component
        tasks = counted(component.parallelism, "task")
        branch = tree.add(Text(f"{component.kind.value} {component.name}: {tasks}, {component.entry}"))
        for output in component.outputs:
            branch.add(Text(f"out {output.name}({', '.join(output.fields)})"))
        for edge in plan.edges:
            if edge.target == component.name:
                branch.add(Text(f"in {edge.source}:{edge.stream} by {_formatted(edge.grouping)}"))


def _add_packing(tree: Tree, prepared: Prepared) -> None:
    plan = prepared.plan
    instances = counted(sum(len(each.instances) for each in plan.containers), "instance")
    containers = counted(len(plan.containers), "container")
    branch = tree.add(f"packing plan {plan.id} (by {prepared.packing}): {instances} in {containers}")
    for picture in container_pictures(plan, prepared.limits):
        branch.add(picture)
    branch.add(Legend())


def _add_physical(tree: Tree, plan: PackingPlan) -> None:
    tree.add("container 0: topology manager, metrics manager")
    for container in plan.containers:
        tasks = ", ".join(f"{one.component}/{one.task_id}" for one in container.instances)
        tree.add(Text(f"container {container.container_id}: stream manager, metrics manager, {tasks}"))


def _formatted(grouping: GroupingDefinition) -> str:
    return f"{grouping.kind.value}({', '.join(grouping.fields)})" if grouping.fields else grouping.kind.value


def _amounts(need: Resource) -> dict[str, float]:
    return {"cpu": need.cpu, "ram_bytes": need.ram_bytes, "disk_bytes": need.disk_bytes}


def _task(one: InstancePlan) -> dict[str, object]:
    return {
        "task": one.task_id,
        "component": one.component,
        "index": one.component_index,
        **_amounts(one.resource),
    }


def _by_task(plan: PackingPlan) -> Sequence[tuple[int, InstancePlan]]:
    return sorted(plan.instances(), key=lambda each: each[1].task_id)
