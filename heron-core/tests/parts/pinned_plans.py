"""The topology and the plans whose documents are pinned: the newest form, and those of earlier versions."""

from __future__ import annotations

from dataclasses import replace

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.planner.code_change import CodeChange
from heron.planner.key_owners import KeyOwners
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import (
    CheckpointPlan,
    HandledLosses,
    PhysicalPlan,
    PlanUpdate,
    RegionRestore,
    StreamManagerLocation,
    TaskPlan,
    TopologyState,
    UpdatePhase,
)

__all__ = [
    "PACKING",
    "PACKING_WITH_PACKAGES",
    "PHYSICAL",
    "PHYSICAL_WITH_CHECKPOINTS",
    "PHYSICAL_WITH_CODE",
    "PHYSICAL_WITH_KEYS",
    "PHYSICAL_WITH_REGIONS",
    "PHYSICAL_WITH_UNDIVIDED",
    "PHYSICAL_WITH_UPDATE",
    "TOPOLOGY",
]

TOPOLOGY = TopologyDefinition(
    "words",
    (
        ComponentDefinition(
            "word",
            ComponentKind.SPOUT,
            "words:WordSpout",
            2,
            (StreamDefinition("default", ("word",)), StreamDefinition("errors", ("line", "reason"))),
            config={"path": "/data", "limit": None},
        ),
        ComponentDefinition(
            "count",
            ComponentKind.BOLT,
            "words:CountBolt",
            1,
            (),
            (
                InputDefinition("word", "default", GroupingDefinition(GroupingKind.FIELDS, ("word",))),
                InputDefinition(
                    "word", "errors", GroupingDefinition(GroupingKind.CUSTOM, (), "words:Mine", {"modulus": 2})
                ),
            ),
        ),
    ),
    {"topology.key.groups": 64},
)
_RESOURCE = Resource(1.0, 2**30, 2**31)
PACKING = PackingPlan(
    "roundrobin-1",
    (
        ContainerPlan(1, (InstancePlan("word", 1, 0, _RESOURCE), InstancePlan("count", 3, 0, _RESOURCE)), _RESOURCE),
        ContainerPlan(2, (InstancePlan("word", 2, 1, _RESOURCE),), _RESOURCE),
    ),
    last_task_id=3,
)
PACKING_WITH_PACKAGES = replace(
    PACKING,
    containers=(
        PACKING.containers[0],
        ContainerPlan(2, (InstancePlan("word", 4, 1, _RESOURCE, "file:///packages/2"),), _RESOURCE),
    ),
    last_task_id=4,
)
PHYSICAL = PhysicalPlan(
    version=3,
    epoch=7,
    topology_id="words-1",
    topology=TOPOLOGY,
    state=TopologyState.RUNNING,
    tasks=(TaskPlan(1, "word", 0, 1), TaskPlan(2, "word", 1, 2), TaskPlan(3, "count", 0, 1)),
    stmgrs=(StreamManagerLocation(1, 65536, "ipc:///run/c1/p65536", "here", 11),),
)
PHYSICAL_WITH_UPDATE = replace(
    PHYSICAL,
    tasks=(*PHYSICAL.tasks, TaskPlan(4, "count", 1, 1)),
    key_owners={"count": KeyOwners(((3, 64),))},
    update=PlanUpdate(4, UpdatePhase.SWITCH, "rr-2", (4,), (2,), {"count": KeyOwners(((3, 32), (4, 32)))}, (1,)),
)
PHYSICAL_WITH_CHECKPOINTS = replace(
    PHYSICAL_WITH_UPDATE, checkpoints=CheckpointPlan(8, 7, 1, "words-1/7", 4, (HandledLosses(1, 65536, 2),))
)
PHYSICAL_WITH_REGIONS = replace(
    PHYSICAL_WITH_UPDATE,
    checkpoints=CheckpointPlan(
        8, 7, 1, "words-1/5", 4, (HandledLosses(1, 65536, 2),), (RegionRestore("word", 2, "words-1/7", 6),)
    ),
)
PHYSICAL_WITH_KEYS = replace(
    PHYSICAL_WITH_REGIONS,
    stmgrs=tuple(
        replace(each, server_key="old", next_endpoint="tcp://10.0.0.1:7001", next_server_key="new")
        for each in PHYSICAL.stmgrs
    ),
)
PHYSICAL_WITH_UNDIVIDED = replace(
    PHYSICAL_WITH_KEYS,
    checkpoints=CheckpointPlan(
        8,
        7,
        1,
        "words-1/5",
        4,
        (HandledLosses(1, 65536, 2),),
        (RegionRestore("word", 2, "words-1/7", 6),),
        ("count",),
    ),
)
PHYSICAL_WITH_CODE = replace(
    PHYSICAL_WITH_UNDIVIDED,
    package="file:///packages/1",
    code=CodeChange("file:///packages/2", TOPOLOGY, ("word",), (4,), 60.0, "nobody has decided"),
)
