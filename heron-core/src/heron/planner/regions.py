"""The regions of a topology: its components that are connected by streams, directly or through others. Pure.

No data passes between two regions, so a loss in one of them changes nothing in the others.
`heron.tmanager.leader.restores` decides which of them are restored.
"""

from __future__ import annotations

from collections.abc import Mapping

from heron.api.definition import TopologyDefinition

__all__ = ["regions_of"]


def regions_of(definition: TopologyDefinition) -> Mapping[str, str]:
    """The region of each component; its name is that of its first component in the definition."""
    neighbours: dict[str, set[str]] = {each.name: set() for each in definition.components}
    for component in definition.components:
        for each in component.inputs:
            neighbours[component.name].add(each.component)
            neighbours[each.component].add(component.name)
    regions: dict[str, str] = {}
    for first in neighbours:
        waiting = [first] if first not in regions else []
        while waiting:
            name = waiting.pop()
            regions[name] = first
            waiting.extend(neighbours[name] - regions.keys())
    return regions
