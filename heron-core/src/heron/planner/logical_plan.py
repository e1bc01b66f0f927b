"""The logical plan: the components in the order of data flow, their distance from the spouts, and the edges."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from heron.api.definition import ComponentDefinition, GroupingDefinition, TopologyDefinition
from heron.errors import TopologyError

__all__ = ["LogicalEdge", "LogicalNode", "LogicalPlan", "find_cycle", "logical_plan"]


@dataclass(frozen=True, slots=True)
class LogicalNode:
    """A component and its depth: the number of edges on the longest path from a spout to it."""

    component: ComponentDefinition
    depth: int


@dataclass(frozen=True, slots=True)
class LogicalEdge:
    """One subscription: the stream of a source component, the target and the grouping."""

    source: str
    stream: str
    target: str
    grouping: GroupingDefinition


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """The components, each after its sources and otherwise in the order of declaration, and the edges."""

    nodes: tuple[LogicalNode, ...]
    edges: tuple[LogicalEdge, ...]


def logical_plan(definition: TopologyDefinition) -> LogicalPlan:
    """The logical plan of a topology whose inputs name existing components.

    Raises:
        TopologyError: when the components form a cycle; names it.
    """
    targets = _targets(definition)
    waiting = {
        component.name: len({each.component for each in component.inputs}) for component in definition.components
    }
    position = {component.name: at for at, component in enumerate(definition.components)}
    depth = dict.fromkeys(waiting, 0)
    ready = [at for name, at in position.items() if not waiting[name]]
    nodes = []
    while ready:
        component = definition.components[heapq.heappop(ready)]
        nodes.append(LogicalNode(component, depth[component.name]))
        for target in targets[component.name]:
            depth[target] = max(depth[target], depth[component.name] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(ready, position[target])
    if len(nodes) < len(position):
        cycle = " -> ".join(find_cycle(definition))
        msg = f"topology {definition.name!r}: the components form a cycle, {cycle}; remove a subscription"
        raise TopologyError(msg)
    return LogicalPlan(tuple(nodes), _edges(definition))


def find_cycle(definition: TopologyDefinition) -> tuple[str, ...]:
    """The first cycle in the order of declaration, its first component repeated at the end; empty without a cycle."""
    targets = _targets(definition)
    finished: set[str] = set()
    for start in targets:
        path: dict[str, None] = {}
        stack = [(start, iter(targets[start]))] if start not in finished else []
        while stack:
            name, following = stack[-1]
            path[name] = None
            target = next((each for each in following if each not in finished), None)
            if target is None:
                stack.pop()
                del path[name]
                finished.add(name)
            elif target in path:
                names = list(path)
                return (*names[names.index(target) :], target)
            else:
                stack.append((target, iter(targets[target])))
    return ()


def _targets(definition: TopologyDefinition) -> dict[str, tuple[str, ...]]:
    targets: dict[str, dict[str, None]] = {component.name: {} for component in definition.components}
    for component in definition.components:
        for subscription in component.inputs:
            targets[subscription.component][component.name] = None
    return {name: tuple(each) for name, each in targets.items()}


def _edges(definition: TopologyDefinition) -> tuple[LogicalEdge, ...]:
    return tuple(
        LogicalEdge(subscription.component, subscription.stream, component.name, subscription.grouping)
        for component in definition.components
        for subscription in component.inputs
    )
