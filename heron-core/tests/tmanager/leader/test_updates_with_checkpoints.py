"""Updates of a topology that takes checkpoints: what moves, what waits, and when an update is withdrawn."""

from __future__ import annotations

import pytest

from heron.api.definition import TopologyDefinition
from heron.checkpoints.manifest import Place, TaskSnapshot
from heron.errors import HeronError
from heron.planner.key_owners import KeyOwners
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import (
    UpdatePhase,
)
from heron.tmanager.leader.checkpoint_progress import CheckpointEvent, CheckpointReport
from heron.tmanager.leader.task_table import TaskEvent
from heron.tmanager.leader.topology_state import Takeover
from heron_testing.fake_clock import FakeClock
from parts.leading import INTERVAL_S, Leading, with_checkpoints, working


@pytest.fixture
def given(definition: TopologyDefinition, packing: PackingPlan) -> Takeover:
    return with_checkpoints(definition, packing)


@pytest.fixture
def leading(given: Takeover, fake_clock: FakeClock) -> Leading:
    return working(given, fake_clock)


def test_an_update_takes_a_checkpoint_and_restores_it(leading: Leading, larger: PackingPlan) -> None:
    """The added task takes no part in the checkpoint, and is routed to by the plan that restores."""
    leading.carry_out(leading.leader.update_asked(larger, "plan"))
    leading.register(3)
    leading.works(4)
    assert leading.ordered.number == 1
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2)
    phases = [leading.phase]
    leading.report(CheckpointEvent.COMMITTED, 1, 3)
    assert [*phases, leading.phase] == [UpdatePhase.PREPARE, None]
    assert (leading.ordered.restores, leading.ordered.source, leading.ordered.since) == (1, "wc-1/1", leading.version)


def test_an_update_waits_for_the_checkpoint_under_way(leading: Leading, larger: PackingPlan) -> None:
    """A second one would cost time, and everything since the first would be processed again anyway."""
    leading.carry_out(leading.leader.update_asked(larger, "plan"))
    leading.pass_time(INTERVAL_S)
    assert leading.ordered.number == 1
    leading.register(3)
    leading.works(4)
    phases = [leading.phase]
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2, 3)
    assert [*phases, leading.phase] == [UpdatePhase.PREPARE, None]
    assert (leading.ordered.number, leading.ordered.source) == (1, "wc-1/1")


def test_key_groups_move_with_a_checkpoint(leading: Leading) -> None:
    """Their state is in it: all tasks of the region load the groups that they own then."""
    owners = KeyOwners.of([2] * 300 + [3] * 724)
    leading.carry_out(leading.leader.update_asked(leading.packing, leading.packing.id, {"count": owners}))
    leading.pass_time()
    phases = [leading.phase]
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2, 3)
    assert [*phases, leading.phase] == [UpdatePhase.PREPARE, None]
    assert leading.plan is not None
    assert leading.plan.key_owners == {"count": owners}
    assert (leading.ordered.restores, leading.ordered.source) == (1, "wc-1/1")


def test_each_update_takes_a_checkpoint(leading: Leading) -> None:
    """Its tasks would else return to the checkpoint of the update before, or lose what came after it."""
    for number, boundary in enumerate((300, 400), 1):
        owners = KeyOwners.of([2] * boundary + [3] * (1024 - boundary))
        leading.carry_out(leading.leader.update_asked(leading.packing, leading.packing.id, {"count": owners}))
        leading.pass_time()
        assert (leading.ordered.number, leading.phase) == (number, UpdatePhase.PREPARE)
        leading.report(CheckpointEvent.SAVED, number, 1, 2, 3)
        leading.carry_out(leading.leader.manifest_stored(number))
        leading.report(CheckpointEvent.COMMITTED, number, 1, 2, 3)
        assert (leading.ordered.source, leading.phase) == (f"wc-1/{number}", None)
        leading.works(1, 2, 3)


def test_key_groups_do_not_move_away_from_operator_state(leading: Leading) -> None:
    """The new owner would begin again without what the former one knows of its keys. A new leader knows it at once."""
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 1, 3)
    kept = TaskSnapshot(2, "count", operator=Place("wc-1/1/task-2", 0, 10, 0))
    report = CheckpointReport(2, 1, 0, 1, CheckpointEvent.SAVED, kept)
    leading.carry_out(leading.leader.checkpoint_reported(report))
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2, 3)
    owners = KeyOwners.of([2] * 300 + [3] * 724)
    with pytest.raises(HeronError, match="'count' keeps state in init_state, which belongs to one task"):
        leading.leader.update_asked(leading.packing, leading.packing.id, {"count": owners})
    assert leading.phase is None
    following = leading.successor()
    with pytest.raises(HeronError, match="'count' keeps state in init_state, which belongs to one task"):
        following.leader.update_asked(following.packing, following.packing.id, {"count": owners})


def begin_to_commit(leading: Leading, smaller: PackingPlan) -> None:
    """An update begins. Its checkpoint is complete, and task 3, which it removes, has not committed it."""
    leading.carry_out(leading.leader.update_asked(smaller, "plan"))
    leading.pass_time()
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2)


def test_a_removed_task_commits_before_it_goes(leading: Leading, smaller: PackingPlan) -> None:
    """Its part of the output would be missing."""
    begin_to_commit(leading, smaller)
    assert leading.plan is not None
    assert [each.task_id for each in leading.plan.tasks] == [1, 2, 3]
    leading.report(CheckpointEvent.COMMITTED, 1, 3)
    assert [each.task_id for each in leading.plan.tasks] == [1, 2]


def test_no_checkpoint_is_ordered_between_that_of_an_update_and_its_restore(
    leading: Leading, smaller: PackingPlan
) -> None:
    """A removed task that is slow could prepare output for it after the restore, which other tasks would write too."""
    begin_to_commit(leading, smaller)
    leading.pass_time(INTERVAL_S)
    assert (leading.ordered.number, leading.phase) == (1, UpdatePhase.PREPARE)
    leading.report(CheckpointEvent.COMMITTED, 1, 3)
    leading.works(1, 2)
    leading.pass_time(INTERVAL_S)
    assert (leading.ordered.source, leading.ordered.number) == ("wc-1/1", 2)


def test_an_update_whose_checkpoint_is_not_committed_is_withdrawn(leading: Leading, smaller: PackingPlan) -> None:
    """Checkpoints go on then: a task that does not commit holds them up no longer than an update may take."""
    begin_to_commit(leading, smaller)
    waiting = leading.leader.known.status().update
    assert waiting is not None
    assert waiting.waits_for == "the commit of its checkpoint"
    leading.pass_time(20.0)
    withdrawn = leading.leader.known.status().update
    assert withdrawn is not None
    assert withdrawn.waits_for == "its checkpoint is not committed after 20 s (heron.update.prepare.s)"
    assert leading.ordered.number == 2


def test_an_update_takes_another_checkpoint_when_a_commit_was_not_heard(leading: Leading, smaller: PackingPlan) -> None:
    """The connection broke. The report of task 3 does not come again, and no other checkpoint may be ordered."""
    begin_to_commit(leading, smaller)
    leading.register(2)
    leading.pass_time()
    leading.report(CheckpointEvent.SAVED, 2, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(2))
    leading.report(CheckpointEvent.COMMITTED, 2, 1, 2)
    phases = [leading.phase]
    leading.report(CheckpointEvent.COMMITTED, 2, 3)
    assert [*phases, leading.phase] == [UpdatePhase.PREPARE, None]
    assert leading.ordered.source == "wc-1/2"


def test_an_update_is_withdrawn_when_its_checkpoint_fails(leading: Leading, smaller: PackingPlan) -> None:
    """The tasks stay, and nothing is restored."""
    leading.carry_out(leading.leader.update_asked(smaller, "plan"))
    leading.pass_time()
    leading.report(CheckpointEvent.FAILED, 1, 2, error="disk full")
    update = leading.leader.known.status().update
    assert update is not None
    assert (update.phase, update.waits_for) == ("withdrawn", "its checkpoint failed: disk full")
    assert leading.ordered.restores == 0


def test_an_update_is_withdrawn_when_a_task_that_stays_has_ended(leading: Leading, smaller: PackingPlan) -> None:
    """It is restored as ended, and would not continue the work of the removed task."""
    leading.carry_out(leading.leader.update_asked(smaller, "plan"))
    leading.pass_time()
    leading.works(2, event=TaskEvent.ENDED)
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2, 3)
    update = leading.leader.known.status().update
    assert update is not None
    assert (update.phase, update.waits_for) == ("withdrawn", "component 'count' has ended at task 2")
    assert leading.ordered.restores == 0


@pytest.mark.parametrize("committed", [(), (1, 2)])
def test_a_new_leader_continues_an_update(leading: Leading, smaller: PackingPlan, committed: tuple[int, ...]) -> None:
    """It cannot know who has committed, so it takes another checkpoint."""
    leading.carry_out(leading.leader.update_asked(smaller, "plan"))
    leading.pass_time()
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, *committed)
    following = leading.successor()
    following.register(1)
    following.register(2)
    following.works(1, 2, 3)
    assert following.ordered.number == 2
    following.report(CheckpointEvent.SAVED, 2, 1, 2, 3)
    following.carry_out(following.leader.manifest_stored(2))
    following.report(CheckpointEvent.COMMITTED, 2, 1, 2, 3)
    assert (following.ordered.restores, following.ordered.source) == (1, "wc-1/2")
