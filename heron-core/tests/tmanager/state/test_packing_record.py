"""The packing plan that a leader writes during updates: a former leader cannot write it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import StateConflictError, StateUnavailableError
from heron.ipc.documents.status import LeaderStatus
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, TopologyState, physical_plan
from heron.planner.plan_update import merged, planned_update
from heron.spi.statemgr import NodeKind
from heron.state_nodes.plans import decode_packing_plan, encode_plan
from heron.tmanager.leader.topology_state import Takeover
from heron.tmanager.state.state_store import StateStore
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager


class Unsure(LocalFsStateManager):
    """Loses the answer to the next write of a packing plan when `loses` is set."""

    loses = False

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Write as usual."""
        version = super().set(kind, topology, value, expected=expected)
        if self.loses and kind is NodeKind.PACKING_PLAN:
            self.loses = False
            msg = "the answer was lost"
            raise StateUnavailableError(msg)
        return version


class Environment:
    """The store of a word count, and its leaders."""

    def __init__(self, root: Path, definition: TopologyDefinition, before: PackingPlan, larger: PackingPlan) -> None:
        self.before, self.both = before, merged(before, larger)
        self.state = Unsure(LocalFsOptions(str(root)))
        self.state.set(NodeKind.TOPOLOGY, "wc", encode_plan(definition))
        self.state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(before))
        self.plan = physical_plan(
            before, definition, (), version=4, epoch=1, topology_id="wc-1", state=TopologyState.RUNNING
        )
        update = planned_update(PlanIndex(self.plan), larger, 5)
        members = physical_plan(
            self.both, definition, (), version=5, epoch=1, topology_id="wc-1", state=TopologyState.RUNNING
        )
        self.prepared: PhysicalPlan = replace(members, update=update)

    def leader(self, epoch: int) -> tuple[StateStore, Takeover]:
        """A leader after its takeover."""
        store = StateStore(self.state, "wc", "wc-1")
        return store, store.take_over(LeaderStatus(0, 1, "here", epoch, 0.0))

    def stored(self) -> tuple[PackingPlan, int]:
        """The packing plan in the store, and its version."""
        node = self.state.get(NodeKind.PACKING_PLAN, "wc")
        assert node is not None
        return decode_packing_plan(node.value, "test"), node.version


@pytest.fixture
def environment(
    tmp_path: Path, definition: TopologyDefinition, packing: PackingPlan, larger: PackingPlan
) -> Iterator[Environment]:
    found = Environment(tmp_path, definition, packing, larger)
    yield found
    found.state.close()


def test_only_a_changed_packing_plan_is_written(environment: Environment) -> None:
    """It is published with every plan, and most plans change only addresses."""
    store, _ = environment.leader(1)
    before = environment.stored()
    store.save_packing(environment.before)
    assert environment.stored() == before
    store.save_packing(environment.both)
    written = environment.stored()
    assert written[0] == environment.both
    store.save_packing(environment.both)
    assert environment.stored() == written


def test_a_write_whose_answer_was_lost_is_repeated(environment: Environment) -> None:
    """The leader finds its own value, and knows the version for its next write."""
    store, _ = environment.leader(1)
    environment.state.loses = True
    with pytest.raises(StateUnavailableError):
        store.save_packing(environment.both)
    store.save_packing(environment.both)
    store.save_packing(environment.before)
    assert environment.stored()[0] == environment.before


def test_a_former_leader_cannot_write_the_packing_plan_of_its_update(environment: Environment) -> None:
    """It died, or was stopped, between the two writes. Its successor has withdrawn the update."""
    former, _ = environment.leader(1)
    former.save_plan(environment.plan)
    former.save_plan(environment.prepared)
    _, given = environment.leader(2)
    assert given.plan is not None
    assert (given.plan.update, given.packing) == (None, environment.before)
    with pytest.raises(StateConflictError):
        former.save_packing(environment.both)
    assert environment.stored()[0] == environment.before


def test_a_successor_goes_on_with_a_written_update(environment: Environment) -> None:
    """It writes the same packing plan again, so that the former leader cannot write the next one."""
    former, _ = environment.leader(1)
    former.save_plan(environment.prepared)
    former.save_packing(environment.both)
    _, given = environment.leader(2)
    assert given.plan == replace(environment.prepared, epoch=2)
    assert given.packing == environment.both
    with pytest.raises(StateConflictError):
        former.save_packing(environment.before)
    assert environment.stored()[0] == environment.both


def test_a_successor_removes_the_tasks_of_an_update_that_is_over(environment: Environment) -> None:
    """Otherwise an executor that starts later would start them."""
    former, _ = environment.leader(1)
    former.save_plan(environment.prepared)
    former.save_packing(environment.both)
    former.save_plan(replace(environment.plan, version=6))
    _, given = environment.leader(2)
    assert given.packing.containers == environment.before.containers
    assert given.packing.next_task_id() == 5
    assert environment.stored()[0] == given.packing
