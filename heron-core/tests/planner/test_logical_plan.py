"""The order of components, their depth and the edges."""

from __future__ import annotations

import pytest

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.errors import TopologyError
from heron.planner.logical_plan import find_cycle, logical_plan


def _topology(**inputs: str) -> TopologyDefinition:
    """A topology of components with one-letter names; each value has the names of the sources."""
    return TopologyDefinition(
        "t",
        tuple(
            ComponentDefinition(
                name,
                ComponentKind.BOLT if sources else ComponentKind.SPOUT,
                "m:C",
                1,
                (StreamDefinition("default", ()), StreamDefinition("other", ())),
                tuple(
                    InputDefinition(source, stream, GroupingDefinition(GroupingKind.SHUFFLE))
                    for source in sources
                    for stream in ("default", "other")
                ),
            )
            for name, sources in inputs.items()
        ),
    )


def test_orders_components_after_their_sources_and_else_as_declared() -> None:
    """`heron plan` prints the same order in each run, from the spouts to the sinks."""
    plan = logical_plan(_topology(d="bc", c="a", b="a", a="", z=""))
    assert [(node.component.name, node.depth) for node in plan.nodes] == [
        ("a", 0),
        ("c", 1),
        ("b", 1),
        ("d", 2),
        ("z", 0),
    ]


def test_depth_is_the_length_of_the_longest_path() -> None:
    """A component comes after its deepest source."""
    plan = logical_plan(_topology(a="", b="a", c="b", d="ac"))
    assert {node.component.name: node.depth for node in plan.nodes} == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_has_an_edge_for_each_subscription() -> None:
    """Two streams between two components are two edges."""
    edges = logical_plan(_topology(a="", b="a")).edges
    assert [(edge.source, edge.stream, edge.target) for edge in edges] == [
        ("a", "default", "b"),
        ("a", "other", "b"),
    ]


def test_a_diamond_is_not_a_cycle() -> None:
    """Two paths may lead to one component."""
    assert find_cycle(_topology(a="", b="a", c="a", d="bc")) == ()


def test_names_the_cycle_only() -> None:
    """The message omits components that only lead into the cycle."""
    topology = _topology(s="", a="s", b="ad", c="b", d="c", e="d")
    assert find_cycle(topology) == ("b", "c", "d", "b")
    with pytest.raises(TopologyError, match="b -> c -> d -> b"):
        logical_plan(topology)


def test_long_chains_need_no_recursion() -> None:
    """The largest topology is a chain of 10,000 components."""
    names = [f"n{at}" for at in range(10_000)]
    shuffle = GroupingDefinition(GroupingKind.SHUFFLE)
    components = tuple(
        ComponentDefinition(
            name,
            ComponentKind.BOLT,
            "m:C",
            1,
            inputs=(InputDefinition(names[at - 1], "default", shuffle),) if at else (),
        )
        for at, name in enumerate(names)
    )
    assert find_cycle(TopologyDefinition("t", components)) == ()
    assert logical_plan(TopologyDefinition("t", components)).nodes[-1].depth == 9_999
