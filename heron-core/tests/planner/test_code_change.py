"""Packing plans with new code: which tasks replace which, and what comes back from a document."""

from __future__ import annotations

import pytest

from heron.api.definition import ComponentDefinition, ComponentKind, TopologyDefinition
from heron.errors import RemoteProtocolError
from heron.planner.code_change import CodeChange, at_package, decode_change, encode_change, replaced
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan

RESOURCE = NO_RESOURCE
PACKING = PackingPlan(
    "plan",
    (
        ContainerPlan(1, (InstancePlan("word", 1, 0, RESOURCE), InstancePlan("count", 2, 0, RESOURCE)), RESOURCE),
        ContainerPlan(2, (InstancePlan("count", 3, 1, RESOURCE),), RESOURCE),
    ),
    5,
)


def test_a_task_with_new_code_takes_the_place_of_another_one() -> None:
    """Component, index and container stay; the id was never used."""
    after = replaced(PACKING, [3, 2], "new")
    assert [(where, each) for where, each in after.instances()] == [
        (1, InstancePlan("word", 1, 0, RESOURCE)),
        (1, InstancePlan("count", 6, 0, RESOURCE, "new")),
        (2, InstancePlan("count", 7, 1, RESOURCE, "new")),
    ]
    assert after.next_task_id() == 8
    assert after.id != PACKING.id


def test_all_instances_get_one_package() -> None:
    """The id of the plan changes with it, so that executors and successors see another plan."""
    after = at_package(replaced(PACKING, [2], "new"), "new")
    assert {each.package for _, each in after.instances()} == {"new"}
    assert at_package(after, "new") is after
    assert at_package(PACKING, "") is PACKING


def test_a_change_survives_its_document() -> None:
    component = ComponentDefinition("word", ComponentKind.SPOUT, "wc:Word", 1)
    change = CodeChange("file:///p", TopologyDefinition("wc", (component,)), ("word",), (4,), 30.0, "no")
    assert decode_change(encode_change(change)) == change
    with pytest.raises(RemoteProtocolError, match="use the version of heron-core"):
        decode_change(b"{}")
