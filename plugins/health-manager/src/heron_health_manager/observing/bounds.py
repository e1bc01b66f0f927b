"""The bounds of the profile: how many tasks the health manager gives a component by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from heron.spi.health_section import ComponentBounds
from heron.spi.health_values import ComponentShape, TopologyShape

__all__ = ["bounded"]


def bounded(shape: TopologyShape, bounds: Mapping[str, ComponentBounds]) -> TopologyShape:
    """The plan, with the bounds of the components that it has.

    Key groups bound a component too: then the smaller number counts, also against the least number of tasks.
    """
    return replace(shape, components=tuple(_bounded(each, bounds.get(each.name)) for each in shape.components))


def _bounded(component: ComponentShape, bounds: ComponentBounds | None) -> ComponentShape:
    if bounds is None:
        return component
    most = min((each for each in (component.most, bounds.max) if each is not None), default=None)
    least = max(component.least, bounds.min)
    return replace(component, least=least if most is None else min(least, most), most=most)
