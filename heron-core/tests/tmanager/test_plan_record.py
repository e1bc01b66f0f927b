"""The fence of the state: what a leader that was deposed at any instant can still write, which is nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import NewerFormatError, StateConflictError, StateUnavailableError, TopologyFailedError
from heron.ipc.status import LeaderStatus, TopologyStatus
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, TopologyState
from heron.spi.statemgr import NodeKind, Versioned
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import decode_physical_plan, encode_plan
from heron.tmanager.state_store import StateStore
from heron.tmanager.topology_state import Takeover
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager

PLAN = NodeKind.PHYSICAL_PLAN
TOLD = TopologyStatus("wc", "wc-1", "finished", 0.0)


class Interrupted(LocalFsStateManager):
    """Calls `before` before each write, as if the process were stopped there, and `after` after it."""

    before: Callable[[], object] = staticmethod(lambda: None)
    after: Callable[[], object] = staticmethod(lambda: None)

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """As it is, with what happens around it."""
        self.before()
        version = super().set(kind, topology, value, expected=expected)
        self.after()
        return version


class World:
    """One store, and any number of leaders that believe in themselves."""

    def __init__(self, root: Path, definition: TopologyDefinition, packing: PackingPlan) -> None:
        self.definition = definition
        self.state = Interrupted(LocalFsOptions(str(root)))
        self.state.set(NodeKind.TOPOLOGY, "wc", encode_plan(definition))
        self.state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(packing))

    def leader(self, epoch: int, topology_id: str = "wc-1") -> tuple[StateStore, Takeover]:
        """One that has taken over."""
        store = StateStore(self.state, "wc", topology_id)
        return store, store.take_over(LeaderStatus(0, 1, "here", epoch, 0.0))

    def plan(self, version: int, epoch: int, state: TopologyState = TopologyState.RUNNING) -> PhysicalPlan:
        """A plan without anybody in it."""
        return PhysicalPlan(version, epoch, "wc-1", self.definition, state, (), ())

    def stored(self) -> PhysicalPlan:
        """What stands in the store."""
        node = self.state.get(PLAN, "wc")
        assert node is not None
        return decode_physical_plan(node.value, "test")

    def once(self, when: str, call: Callable[[], Any]) -> None:
        """Calls once, in the midst of the next write."""

        def interrupt() -> None:
            setattr(self.state, when, lambda: None)
            call()

        setattr(self.state, when, interrupt)


@pytest.fixture
def world(tmp_path: Path, definition: TopologyDefinition, packing: PackingPlan) -> Iterator[World]:
    """A submitted word count."""
    found = World(tmp_path, definition, packing)
    yield found
    found.state.close()


def test_a_successor_inherits_the_plan_and_makes_it_its_own(world: World) -> None:
    """Same version, so that nobody switches without a reason; greater epoch; and it knows whom it follows."""
    first, given = world.leader(1)
    assert (given.plan, given.former_epoch) == (None, 0)
    first.save_plan(world.plan(4, 1))
    _, given = world.leader(3)
    assert given.plan == world.plan(4, 3) == world.stored()
    assert given.former_epoch == 1


@pytest.mark.parametrize("planned", [True, False])
def test_a_deposed_leader_writes_nothing(world: World, planned: bool) -> None:
    """Neither a plan nor the end of the topology, also where nobody had made a plan before the take-over."""
    first, _ = world.leader(1)
    if planned:
        first.save_plan(world.plan(4, 1))
    second, given = world.leader(2)
    before = world.state.get(PLAN, "wc")
    report = replace(TOLD, topology_id="wc-1", state="killed")
    with pytest.raises(StateConflictError, match="epoch 1 was deposed by that of epoch 2"):
        first.save_plan(world.plan(5, 1))
    with pytest.raises(StateConflictError, match="epoch 1 was deposed by that of epoch 2"):
        first.save_end(report)
    assert world.state.get(PLAN, "wc") == before
    assert world.state.get(NodeKind.REPORT, "wc") is None
    second.save_plan(world.plan(given.plan.version + 1 if given.plan else 1, 2))
    with pytest.raises(StateConflictError):
        first.save_plan(world.plan(9, 1))


def test_a_leader_that_is_stopped_in_the_midst_of_its_write_and_deposed_meanwhile_writes_nothing(world: World) -> None:
    """It has looked, it led, and it was about to write: the condition is checked by the store, not by the leader."""
    first, _ = world.leader(1)
    first.save_plan(world.plan(4, 1))
    world.once("before", lambda: world.leader(2))
    with pytest.raises(StateConflictError, match="deposed"):
        first.save_plan(world.plan(5, 1))
    assert world.stored() == world.plan(4, 2)


def test_what_was_written_in_the_midst_of_a_take_over_is_inherited(world: World) -> None:
    """Between the successor's look and its claim the former leader could still write: what it told of that holds."""
    first, _ = world.leader(1)
    first.save_plan(world.plan(4, 1))
    world.once("before", lambda: first.save_plan(world.plan(5, 1, TopologyState.PAUSED)))
    _, given = world.leader(2)
    assert given.plan == world.plan(5, 2, TopologyState.PAUSED) == world.stored()


def test_the_later_of_two_that_take_over_leads(world: World) -> None:
    """The one that was slow finds the other's claim, however far it had come."""
    world.once("before", lambda: world.leader(3))
    with pytest.raises(StateConflictError, match="epoch 2 was deposed by that of epoch 3"):
        world.leader(2)
    assert world.stored().epoch == 3


def test_a_write_whose_answer_was_lost_is_known_again(world: World) -> None:
    """`StateUnavailableError` says that nobody knows: the next attempt finds its own plan, not another leader's."""
    store, _ = world.leader(1)

    def lose() -> None:
        message = "the answer was lost"
        raise StateUnavailableError(message)

    world.once("after", lose)
    with pytest.raises(StateUnavailableError):
        store.save_plan(world.plan(1, 1))
    store.save_plan(world.plan(1, 1))
    store.save_plan(world.plan(2, 1))
    assert world.stored() == world.plan(2, 1)


def test_an_end_is_for_good(world: World) -> None:
    """A plan that waited for the store does not revive it; a successor ends it, with the report or a brief one."""
    store, _ = world.leader(1)
    store.save_plan(world.plan(1, 1))
    report = replace(TOLD, topology_id="wc-1", state="failed", error="because")
    store.save_end(report)
    store.save_plan(world.plan(2, 1))
    assert world.stored() == world.plan(2, 1, TopologyState.FAILED)
    _, given = world.leader(2)
    assert (given.plan, given.report) == (None, report)
    world.state.delete(NodeKind.REPORT, "wc")
    _, given = world.leader(3)
    assert given.report is not None
    assert (given.report.state, given.report.error) == (
        "failed",
        "its topology manager died before it wrote the reason; see its logs",
    )


def test_what_another_run_has_left_is_replaced(world: World) -> None:
    """Its epochs and its end are its own; a leader of it that wakes up then finds another run."""
    former, _ = world.leader(7)
    former.save_end(replace(TOLD, topology_id="wc-1", state="killed"))
    _, given = world.leader(2, "wc-2")
    assert (given.plan, given.report, given.former_epoch) == (None, None, 0)
    with pytest.raises(StateConflictError, match="has no plan in the state manager any more"):
        former.save_plan(world.plan(9, 7))


def test_a_plan_that_cannot_be_read_is_made_anew(world: World) -> None:
    """A leader must not stay away for ever on account of it."""
    world.state.set(PLAN, "wc", b"garbled")
    store, given = world.leader(2)
    assert given.plan is None
    store.save_plan(world.plan(1, 2))
    assert world.stored() == world.plan(1, 2)


def test_a_topology_that_is_over_stays_so_when_its_plan_is_damaged(world: World) -> None:
    """Its report says so, too; what has ended must not begin anew."""
    first, _ = world.leader(1)
    report = replace(TOLD, topology_id="wc-1", state="finished")
    first.save_end(report)
    world.state.set(PLAN, "wc", b"garbled")
    _, given = world.leader(2)
    assert (given.plan, given.report) == (None, report)
    assert world.stored().state is TopologyState.FINISHED


def test_a_name_that_belongs_to_another_run_is_left_alone(world: World) -> None:
    """A host that was cut off while its topology was killed, and submitted anew, comes back with its managers."""
    former, _ = world.leader(1)
    run = ExecutionState("wc", "wc-2", 1.0, "me", "here", "local", "", "/run", "/log", attached=False)
    world.state.set(NodeKind.EXECUTION_STATE, "wc", encode_execution_state(run))
    _, given = world.leader(2, "wc-2")
    before = world.state.get(PLAN, "wc")
    with pytest.raises(TopologyFailedError, match="its name belongs to 'wc-2' now"):
        world.leader(3)
    with pytest.raises(StateConflictError):
        former.save_plan(world.plan(5, 1))
    assert world.state.get(PLAN, "wc") == before
    assert given.report is None


def test_what_was_removed_is_not_made_again(world: World) -> None:
    """`heron kill` removes the nodes of a topology; a leader that sleeps meanwhile must not bring them back."""
    first, _ = world.leader(1)
    first.save_plan(world.plan(1, 1))
    world.state.delete(PLAN, "wc")
    with pytest.raises(StateConflictError, match="has no plan in the state manager any more"):
        first.save_plan(world.plan(2, 1))
    with pytest.raises(StateConflictError, match="has no plan in the state manager any more"):
        first.save_end(replace(TOLD, topology_id="wc-1", state="killed"))
    assert world.state.get(PLAN, "wc") is None
    assert world.state.get(NodeKind.REPORT, "wc") is None


def test_an_end_whose_answer_was_lost_is_not_written_over(world: World) -> None:
    """A plan that waits for the store is written after it, with the state that the topology has by then."""
    store, _ = world.leader(1)
    store.save_plan(world.plan(1, 1))

    def lose() -> None:
        msg = "the answer was lost"
        raise StateUnavailableError(msg)

    world.once("after", lose)
    with pytest.raises(StateUnavailableError):
        store.save_end(replace(TOLD, topology_id="wc-1", state="killed"))
    store.save_plan(world.plan(2, 1))
    assert (world.stored().version, world.stored().state) == (2, TopologyState.KILLED)


def test_the_plan_of_a_newer_version_is_not_replaced(world: World) -> None:
    """An old standby must not take over from a newer leader: its plan would lack what it cannot read."""
    newer = encode_plan(world.plan(4, 1)).replace(b'"format":1', b'"format":2')
    version = world.state.set(PLAN, "wc", newer)
    with pytest.raises(NewerFormatError, match=r"node pplans/wc: the physical plan has format 2, .* upgrade"):
        world.leader(2)
    assert world.state.get(PLAN, "wc") == Versioned(newer, version)
