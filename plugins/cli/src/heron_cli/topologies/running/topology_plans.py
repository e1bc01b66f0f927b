"""The plans and the health records of a topology, read from the state manager without a question to the topology."""

from __future__ import annotations

from dataclasses import dataclass

from heron.api.definition import TopologyDefinition
from heron.errors import StateError
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.document import node_name
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.health_records import HealthRecords, decode_health_records
from heron.state_nodes.plans import decode_packing_plan, decode_physical_plan, decode_topology

__all__ = ["TopologyPlans", "read_health_records", "read_plans"]


@dataclass(frozen=True, slots=True)
class TopologyPlans:
    """The logical plan, the packing plan and the physical plan; the last is None until a topology manager wrote it."""

    definition: TopologyDefinition
    packing: PackingPlan
    physical: PhysicalPlan | None = None


def read_plans(statemgr: StateManager, topology: str) -> TopologyPlans:
    """Return the plans of a topology.

    Raises:
        StateUnavailableError: when the state manager does not answer.
        StateError: when the logical plan or the packing plan is missing, or a plan cannot be read; names the node.
    """
    definition = decode_topology(*_required(statemgr, NodeKind.TOPOLOGY, topology))
    packing = decode_packing_plan(*_required(statemgr, NodeKind.PACKING_PLAN, topology))
    node = statemgr.get(NodeKind.PHYSICAL_PLAN, topology)
    place = node_name(NodeKind.PHYSICAL_PLAN, topology)
    return TopologyPlans(definition, packing, decode_physical_plan(node.value, place) if node else None)


def read_health_records(statemgr: StateManager, run: ExecutionState) -> HealthRecords:
    """Return the decisions of the health manager of a run; those of another run count as none.

    Raises:
        StateError: when the node cannot be read.
    """
    node = statemgr.get(NodeKind.HEALTH, run.topology)
    records = decode_health_records(node.value, run.topology) if node else None
    own = records is not None and records.topology_id == run.topology_id
    return records if records and own else HealthRecords(run.topology_id)


def _required(statemgr: StateManager, kind: NodeKind, topology: str) -> tuple[bytes, str]:
    node, place = statemgr.get(kind, topology), node_name(kind, topology)
    if node is None:
        msg = f"{place}: is missing; the topology is being submitted or removed"
        raise StateError(msg)
    return node.value, place
