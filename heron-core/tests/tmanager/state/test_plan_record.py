"""Fencing: a deposed leader cannot write to the state, whenever it was deposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import NewerFormatError, StateConflictError, StateUnavailableError, TopologyFailedError
from heron.ipc.documents.status import LeaderStatus, TopologyStatus
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, TopologyState
from heron.spi.statemgr import NodeKind, Versioned
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import decode_physical_plan, encode_plan
from heron.tmanager.leader.topology_state import Takeover
from heron.tmanager.state.state_store import StateStore
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager

PLAN = NodeKind.PHYSICAL_PLAN
STATUS = TopologyStatus("wc", "wc-1", "finished", 0.0)


class Interrupted(LocalFsStateManager):
    """Calls `before` before each write and `after` after it, as if the process stopped there."""

    before: Callable[[], object] = staticmethod(lambda: None)
    after: Callable[[], object] = staticmethod(lambda: None)

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Writes as usual, between the two calls."""
        self.before()
        version = super().set(kind, topology, value, expected=expected)
        self.after()
        return version


class Environment:
    """One store, and processes that all assume to be the leader."""

    def __init__(self, root: Path, definition: TopologyDefinition, packing: PackingPlan) -> None:
        self.definition = definition
        self.state = Interrupted(LocalFsOptions(str(root)))
        self.state.set(NodeKind.TOPOLOGY, "wc", encode_plan(definition))
        self.state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(packing))

    def leader(self, epoch: int, topology_id: str = "wc-1") -> tuple[StateStore, Takeover]:
        """A leader after its takeover."""
        store = StateStore(self.state, "wc", topology_id)
        return store, store.take_over(LeaderStatus(0, 1, "here", epoch, 0.0))

    def plan(self, version: int, epoch: int, state: TopologyState = TopologyState.RUNNING) -> PhysicalPlan:
        """A plan without tasks and stream managers."""
        return PhysicalPlan(version, epoch, "wc-1", self.definition, state, (), ())

    def stored(self) -> PhysicalPlan:
        """The plan in the store."""
        node = self.state.get(PLAN, "wc")
        assert node is not None
        return decode_physical_plan(node.value, "test")

    def once(self, when: str, call: Callable[[], Any]) -> None:
        """Calls `call` once, during the next write."""

        def interrupt() -> None:
            setattr(self.state, when, lambda: None)
            call()

        setattr(self.state, when, interrupt)


@pytest.fixture
def environment(tmp_path: Path, definition: TopologyDefinition, packing: PackingPlan) -> Iterator[Environment]:
    """A submitted word count."""
    found = Environment(tmp_path, definition, packing)
    yield found
    found.state.close()


def test_a_new_leader_takes_over_the_plan_with_its_epoch(environment: Environment) -> None:
    """The version is the same, so no process has to change plans. The new leader also gets the former epoch."""
    first, given = environment.leader(1)
    assert (given.plan, given.former_epoch) == (None, 0)
    first.save_plan(environment.plan(4, 1))
    _, given = environment.leader(3)
    assert given.plan == environment.plan(4, 3) == environment.stored()
    assert given.former_epoch == 1


@pytest.mark.parametrize("planned", [True, False])
def test_a_deposed_leader_writes_nothing(environment: Environment, planned: bool) -> None:
    """It writes no plan and no end of the topology, also if there was no plan before the takeover."""
    first, _ = environment.leader(1)
    if planned:
        first.save_plan(environment.plan(4, 1))
    second, given = environment.leader(2)
    before = environment.state.get(PLAN, "wc")
    report = replace(STATUS, topology_id="wc-1", state="killed")
    with pytest.raises(StateConflictError, match="epoch 1 was deposed by that of epoch 2"):
        first.save_plan(environment.plan(5, 1))
    with pytest.raises(StateConflictError, match="epoch 1 was deposed by that of epoch 2"):
        first.save_end(report)
    assert environment.state.get(PLAN, "wc") == before
    assert environment.state.get(NodeKind.REPORT, "wc") is None
    second.save_plan(environment.plan(given.plan.version + 1 if given.plan else 1, 2))
    with pytest.raises(StateConflictError):
        first.save_plan(environment.plan(9, 1))


def test_a_leader_that_is_deposed_during_its_write_writes_nothing(environment: Environment) -> None:
    """The store checks the condition of the write, so a check by the leader is not enough."""
    first, _ = environment.leader(1)
    first.save_plan(environment.plan(4, 1))
    environment.once("before", lambda: environment.leader(2))
    with pytest.raises(StateConflictError, match="deposed"):
        first.save_plan(environment.plan(5, 1))
    assert environment.stored() == environment.plan(4, 2)


def test_a_plan_that_is_written_during_a_takeover_is_kept(environment: Environment) -> None:
    """The former leader may write between the read and the claim of the new leader. That write is valid."""
    first, _ = environment.leader(1)
    first.save_plan(environment.plan(4, 1))
    environment.once("before", lambda: first.save_plan(environment.plan(5, 1, TopologyState.PAUSED)))
    _, given = environment.leader(2)
    assert given.plan == environment.plan(5, 2, TopologyState.PAUSED) == environment.stored()


def test_the_later_of_two_takeovers_wins(environment: Environment) -> None:
    """The slower process finds the claim of the other."""
    environment.once("before", lambda: environment.leader(3))
    with pytest.raises(StateConflictError, match="epoch 2 was deposed by that of epoch 3"):
        environment.leader(2)
    assert environment.stored().epoch == 3


def test_a_write_with_a_lost_answer_can_be_repeated(environment: Environment) -> None:
    """After a `StateUnavailableError` the outcome is unknown. The next attempt recognises its own plan."""
    store, _ = environment.leader(1)

    def lose() -> None:
        message = "the answer was lost"
        raise StateUnavailableError(message)

    environment.once("after", lose)
    with pytest.raises(StateUnavailableError):
        store.save_plan(environment.plan(1, 1))
    store.save_plan(environment.plan(1, 1))
    store.save_plan(environment.plan(2, 1))
    assert environment.stored() == environment.plan(2, 1)


def test_an_ended_topology_stays_ended(environment: Environment) -> None:
    """A delayed plan keeps the end state. A new leader gets the report, or a short report if it is missing."""
    store, _ = environment.leader(1)
    store.save_plan(environment.plan(1, 1))
    report = replace(STATUS, topology_id="wc-1", state="failed", error="because")
    store.save_end(report)
    store.save_plan(environment.plan(2, 1))
    assert environment.stored() == environment.plan(2, 1, TopologyState.FAILED)
    _, given = environment.leader(2)
    assert (given.plan, given.report) == (None, report)
    environment.state.delete(NodeKind.REPORT, "wc")
    _, given = environment.leader(3)
    assert given.report is not None
    assert (given.report.state, given.report.error) == (
        "failed",
        "its topology manager died before it wrote the reason; see its logs",
    )


def test_the_plan_of_another_run_is_replaced(environment: Environment) -> None:
    """Epoch and end state of the other run do not count. Its former leader cannot write any more."""
    former, _ = environment.leader(7)
    former.save_end(replace(STATUS, topology_id="wc-1", state="killed"))
    _, given = environment.leader(2, "wc-2")
    assert (given.plan, given.report, given.former_epoch) == (None, None, 0)
    with pytest.raises(StateConflictError, match="has no plan in the state manager any more"):
        former.save_plan(environment.plan(9, 7))


def test_an_unreadable_plan_is_replaced(environment: Environment) -> None:
    """A damaged plan must not prevent a takeover."""
    environment.state.set(PLAN, "wc", b"garbled")
    store, given = environment.leader(2)
    assert given.plan is None
    store.save_plan(environment.plan(1, 2))
    assert environment.stored() == environment.plan(1, 2)


def test_an_ended_topology_with_a_damaged_plan_stays_ended(environment: Environment) -> None:
    """The report has the end state too."""
    first, _ = environment.leader(1)
    report = replace(STATUS, topology_id="wc-1", state="finished")
    first.save_end(report)
    environment.state.set(PLAN, "wc", b"garbled")
    _, given = environment.leader(2)
    assert (given.plan, given.report) == (None, report)
    assert environment.stored().state is TopologyState.FINISHED


def test_a_leader_of_a_former_run_changes_nothing(environment: Environment) -> None:
    """A host was cut off while the topology was killed and submitted again; then its topology managers return."""
    former, _ = environment.leader(1)
    run = ExecutionState("wc", "wc-2", 1.0, "me", "here", "local", "", "/run", "/log", attached=False)
    environment.state.set(NodeKind.EXECUTION_STATE, "wc", encode_execution_state(run))
    _, given = environment.leader(2, "wc-2")
    before = environment.state.get(PLAN, "wc")
    with pytest.raises(TopologyFailedError, match="its name belongs to 'wc-2' now"):
        environment.leader(3)
    with pytest.raises(StateConflictError):
        former.save_plan(environment.plan(5, 1))
    assert environment.state.get(PLAN, "wc") == before
    assert given.report is None


def test_removed_nodes_are_not_created_again(environment: Environment) -> None:
    """`heron kill` removes the nodes of a topology. A leader that was stopped then must not restore them."""
    first, _ = environment.leader(1)
    first.save_plan(environment.plan(1, 1))
    environment.state.delete(PLAN, "wc")
    with pytest.raises(StateConflictError, match="has no plan in the state manager any more"):
        first.save_plan(environment.plan(2, 1))
    with pytest.raises(StateConflictError, match="has no plan in the state manager any more"):
        first.save_end(replace(STATUS, topology_id="wc-1", state="killed"))
    assert environment.state.get(PLAN, "wc") is None
    assert environment.state.get(NodeKind.REPORT, "wc") is None


def test_an_end_with_a_lost_answer_is_not_overwritten(environment: Environment) -> None:
    """A later plan has the end state of the topology."""
    store, _ = environment.leader(1)
    store.save_plan(environment.plan(1, 1))

    def lose() -> None:
        msg = "the answer was lost"
        raise StateUnavailableError(msg)

    environment.once("after", lose)
    with pytest.raises(StateUnavailableError):
        store.save_end(replace(STATUS, topology_id="wc-1", state="killed"))
    store.save_plan(environment.plan(2, 1))
    assert (environment.stored().version, environment.stored().state) == (2, TopologyState.KILLED)


def test_the_plan_of_a_newer_version_is_not_replaced(environment: Environment) -> None:
    """An older standby must not take over, because its plan would lack the fields that it cannot read."""
    newer = encode_plan(environment.plan(4, 1)).replace(b'"format":1', b'"format":2')
    version = environment.state.set(PLAN, "wc", newer)
    with pytest.raises(NewerFormatError, match=r"node pplans/wc: the physical plan has format 2, .* upgrade"):
        environment.leader(2)
    assert environment.state.get(PLAN, "wc") == Versioned(newer, version)
