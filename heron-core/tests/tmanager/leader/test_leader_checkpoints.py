"""Checkpoints and restores that a leader orders: their plans, what they wait for, and a takeover in each phase."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.api_constants import (
    TOPOLOGY_STATEFUL_START_FROM,
)
from heron.api.definition import TopologyDefinition
from heron.errors import HeronError
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import (
    HandledLosses,
    PhysicalPlan,
    TopologyState,
)
from heron.tmanager.leader.checkpoint_progress import CheckpointEvent, CheckpointReport
from heron.tmanager.leader.instructions import Instruction, NoteEvent
from heron.tmanager.leader.leader import Leader
from heron.tmanager.leader.task_table import TaskEvent
from heron.tmanager.leader.topology_state import Takeover
from heron_testing.fake_clock import FakeClock
from parts.leading import INTERVAL_S, SETTLE_S, TIMEOUT_S, Leading, with_checkpoints, working


@pytest.fixture
def given(definition: TopologyDefinition, packing: PackingPlan) -> Takeover:
    return with_checkpoints(definition, packing)


@pytest.fixture
def leading(given: Takeover, fake_clock: FakeClock) -> Leading:
    return working(given, fake_clock)


def test_the_first_checkpoint_waits_for_the_interval(leading: Leading) -> None:
    leading.pass_time(INTERVAL_S - 0.1)
    assert leading.ordered.number == 0
    leading.pass_time(0.1)
    assert leading.ordered.number == 1


@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_a_wall_clock_that_jumps_changes_neither_interval_nor_time_limit(
    leading: Leading, fake_clock: FakeClock, by_s: float
) -> None:
    fake_clock.jump_wall(by_s)
    leading.pass_time(INTERVAL_S - 0.1)
    assert leading.ordered.number == 0
    leading.pass_time(0.1)
    assert leading.ordered.number == 1
    fake_clock.jump_wall(-2 * by_s)
    leading.pass_time(TIMEOUT_S - 0.1)
    assert leading.status.failed == 0
    leading.pass_time(0.1)
    assert leading.status.failed == 1


def test_a_checkpoint_is_complete_when_its_manifest_is_stored(leading: Leading) -> None:
    """The manifest has every task, and is asked for once."""
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 1, 2)
    assert not leading.manifests
    leading.report(CheckpointEvent.SAVED, 1, 3)
    leading.pass_time()
    assert [[each.task_id for each in manifest.tasks] for manifest in leading.manifests] == [[1, 2, 3]]
    assert leading.ordered.complete == 0
    leading.carry_out(leading.leader.manifest_stored(1))
    assert leading.ordered.complete == 1
    assert leading.ordered.restores == 0


def test_no_checkpoint_begins_before_all_tasks_run(given: Takeover, fake_clock: FakeClock) -> None:
    """A task that starts later would not take part, or would take part with an older state."""
    leading = Leading(given, fake_clock)
    leading.register(1)
    leading.register(2)
    leading.works(1, 2)
    leading.pass_time(10 * INTERVAL_S)
    assert (leading.ordered.number, leading.status.waits_for) == (0, "task 3")
    leading.works(3)
    assert leading.ordered.number == 1


def test_a_command_asks_for_a_checkpoint_before_the_interval(leading: Leading) -> None:
    leading.carry_out(leading.leader.checkpoint_asked())
    assert leading.ordered.number == 1
    leading.carry_out(leading.leader.checkpoint_asked())
    assert leading.ordered.number == 1, "one is under way; the next one begins after it"
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    assert leading.ordered.number == 2


def test_a_topology_without_checkpoints_refuses_the_command(
    definition: TopologyDefinition, given: Takeover, fake_clock: FakeClock
) -> None:
    """The message names the key."""
    leader = Leader(replace(given, definition=definition), EngineSettings(), fake_clock)
    with pytest.raises(HeronError, match=r"'wc' takes no checkpoints; set topology.reliability.mode"):
        leader.checkpoint_asked()


def test_a_checkpoint_is_abandoned_after_the_time_limit(leading: Leading) -> None:
    """The message names the tasks and the setting. The next checkpoint has another number."""
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 2)
    leading.pass_time(TIMEOUT_S)
    assert leading.status.last_error == "tasks 1, 3 did not save within 60 s (heron.checkpoint.timeout.s)"
    leading.pass_time()
    assert leading.ordered.number == 1, "there is a pause after a failure"
    leading.pass_time(1.0)
    assert leading.ordered.number == 2
    leading.report(CheckpointEvent.SAVED, 1, 1, 3)
    leading.report(CheckpointEvent.SAVED, 2, 1, 2)
    assert not leading.manifests, "reports of the former number do not count"


def test_a_checkpoint_fails_with_a_task(leading: Leading) -> None:
    """The next one begins after the interval."""
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.FAILED, 1, 2, error="disk full")
    assert (leading.status.failed, leading.status.last_error) == (1, "disk full")
    leading.pass_time(INTERVAL_S - 0.1)
    assert leading.ordered.number == 1
    leading.pass_time(0.1)
    assert (leading.ordered.number, leading.ordered.complete) == (2, 0)


def test_a_checkpoint_fails_with_its_manifest(leading: Leading) -> None:
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1, "no space"))
    assert (leading.ordered.complete, leading.status.last_error) == (0, "no space")
    leading.carry_out(leading.leader.manifest_stored(1))
    assert leading.ordered.complete == 0, "an abandoned checkpoint does not become complete"


def test_each_failure_is_noted_once_with_its_number(leading: Leading) -> None:
    """By a report, by the time limit, and by the manifest: the log and the status name the checkpoint that failed."""
    noted: list[Instruction] = []
    leader = leading.leader
    leading.pass_time(INTERVAL_S)
    noted += leader.checkpoint_reported(CheckpointReport(2, 1, 0, 1, CheckpointEvent.FAILED, error="disk full"))
    leading.pass_time(INTERVAL_S)
    leading.clock.advance(TIMEOUT_S)
    noted += leader.check_due()
    leading.pass_time(1.0)
    leading.report(CheckpointEvent.SAVED, 3, 1, 2, 3)
    noted += leader.manifest_stored(3, "no space")
    noted += leader.manifest_stored(3, "no space")
    late = "tasks 1, 2, 3 did not save within 60 s (heron.checkpoint.timeout.s)"
    assert [(each.subject, each.attributes) for each in noted if isinstance(each, NoteEvent)] == [
        ("checkpoint-1", {"outcome": "failed", "reason": "disk full"}),
        ("checkpoint-2", {"outcome": "failed", "reason": late}),
        ("checkpoint-3", {"outcome": "failed", "reason": "no space"}),
    ]
    leading.pass_time(INTERVAL_S)
    assert (leading.status.number, leading.status.failed, leading.status.failed_number) == (4, 3, 3)


def test_the_leader_says_when_it_must_look_again(leading: Leading) -> None:
    """At the next checkpoint, its time limit, or a restore: in between its process sleeps."""
    leader, clock = leading.leader, leading.clock
    leading.take(1, 2, 3)
    ordered_s = clock.monotonic_s()
    assert leader.due_s() == ordered_s + INTERVAL_S
    leading.send_heartbeat(2, 1, losses=1)
    assert leader.due_s() == ordered_s + SETTLE_S
    leading.pass_time(SETTLE_S)
    leading.pass_time(INTERVAL_S)
    assert leader.due_s() <= clock.monotonic_s(), "a checkpoint is due, and waits for the restored tasks"
    leading.works(1, 2, 3)
    assert leader.due_s() == clock.monotonic_s() + TIMEOUT_S


def test_a_loss_restores_the_newest_complete_checkpoint(leading: Leading) -> None:
    """The plan says which losses it handles; the same count once more changes nothing."""
    leading.take(1, 2, 3)
    leading.send_heartbeat(2, 1, losses=1)
    assert leading.ordered.restores == 0
    leading.pass_time(SETTLE_S)
    ordered = leading.ordered
    assert (ordered.restores, ordered.source, ordered.since) == (1, "wc-1/1", leading.version)
    assert ordered.losses == (HandledLosses(1, 1, 0), HandledLosses(2, 1, 1))
    leading.send_heartbeat(2, 1, losses=1)
    leading.pass_time(INTERVAL_S)
    assert leading.ordered.restores == 1


def test_losses_of_one_death_cost_one_restore(leading: Leading) -> None:
    """Several stream managers report it within a short time."""
    leading.send_heartbeat(1, 1, losses=1)
    leading.pass_time(SETTLE_S / 2)
    leading.send_heartbeat(2, 1, losses=1)
    leading.pass_time(SETTLE_S / 2)
    assert leading.ordered.restores == 0, "the second report is younger"
    leading.pass_time(SETTLE_S / 2)
    assert leading.ordered.restores == 1
    leading.send_heartbeat(1, 1, losses=2)
    leading.pass_time(SETTLE_S)
    assert leading.ordered.restores == 2, "a further loss"


def test_a_loss_abandons_the_checkpoint_under_way(leading: Leading) -> None:
    """Its state may lack the lost data. No other one begins before the restore."""
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.stmgr_heard(1, 1, 1))
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.carry_out(leading.leader.checkpoint_asked())
    assert (leading.ordered.number, leading.ordered.complete) == (1, 0)
    leading.pass_time(SETTLE_S)
    assert leading.ordered.restores == 1
    leading.pass_time(INTERVAL_S)
    assert leading.ordered.number == 1, "the tasks have not restored yet"
    leading.works(1, 2, 3)
    assert leading.ordered.number == 2


def test_reports_from_before_the_restore_do_not_count(leading: Leading) -> None:
    """Neither does the report of another incarnation of a task."""
    leading.send_heartbeat(1, 1, losses=1)
    leading.pass_time(SETTLE_S)
    leading.works(1, 2, 3)
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3, restores=0)
    leading.incarnations[3] = 2
    leading.report(CheckpointEvent.SAVED, 1, 3)
    assert leading.status.waits_for == "tasks 1, 2, 3"


def test_another_stream_manager_means_a_restore(leading: Leading) -> None:
    """Everything that the former one held is lost. Both reasons for it are one restore."""
    leading.register(2, incarnation=2)
    leading.pass_time(SETTLE_S)
    assert leading.ordered.restores == 1
    leading.register(2, incarnation=2)
    leading.send_heartbeat(2, 2, losses=0)
    leading.pass_time(SETTLE_S)
    assert leading.ordered.restores == 1


def test_a_new_leader_restores_after_a_stream_manager_that_the_former_leader_has_replaced(leading: Leading) -> None:
    """The plan has the new address already, and the former leader died before it ordered the restore."""
    leading.register(2, incarnation=2)
    following = leading.successor()
    assert following.plan is not None
    assert following.plan.stmgrs[1].incarnation == 2
    following.register(1)
    following.register(2, incarnation=2)
    following.pass_time(SETTLE_S)
    assert following.ordered.restores == 1


def test_a_new_leader_restores_after_a_loss_that_the_former_leader_has_not_handled(leading: Leading) -> None:
    """The hello of the stream manager has the count. A loss that was handled is not handled again."""
    leading.send_heartbeat(1, 1, losses=1)
    leading.pass_time(SETTLE_S)
    leading.carry_out(leading.leader.stmgr_heard(1, 1, 2))
    following = leading.successor()
    following.register(1, losses=2)
    following.pass_time(SETTLE_S)
    assert following.ordered.restores == 2
    third = following.successor()
    third.register(1, losses=2)
    third.pass_time(SETTLE_S)
    assert third.ordered.restores == 2


def test_a_new_leader_gives_up_the_checkpoint_under_way(leading: Leading) -> None:
    """It does not know which tasks have saved. The next one has the next number."""
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 1)
    following = leading.successor()
    following.register(1)
    following.register(2)
    following.works(1, 2, 3)
    following.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    assert not following.manifests
    assert following.take(1, 2, 3) == 2
    assert following.ordered.complete == 2


def test_the_topology_finishes_after_a_checkpoint_of_its_end(leading: Leading) -> None:
    """All output is committed then."""
    leading.works(1, 2, 3, event=TaskEvent.ENDED)
    assert leading.ordered.number == 1, "it does not wait for the interval"
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2)
    assert not leading.ended
    leading.report(CheckpointEvent.COMMITTED, 1, 3)
    assert leading.ended


def test_a_checkpoint_is_taken_again_after_a_broken_connection(leading: Leading) -> None:
    """The report of task 3 may be lost, and does not come again. With all reports, nothing is taken again."""
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 1, 2)
    leading.register(2)
    leading.pass_time()
    leading.report(CheckpointEvent.SAVED, 2, 1, 2, 3)
    leading.register(2)
    leading.carry_out(leading.leader.manifest_stored(2))
    assert (leading.ordered.number, leading.ordered.complete, leading.status.failed) == (2, 2, 0)


def test_the_topology_finishes_although_a_commit_was_not_heard(leading: Leading) -> None:
    """Another checkpoint of its end shows that all tasks have committed."""
    leading.works(1, 2, 3, event=TaskEvent.ENDED)
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2)
    leading.register(2)
    leading.take(1, 2, 3)
    assert leading.ordered.number == 2
    assert leading.ended


def test_a_checkpoint_from_before_the_end_is_not_the_last(leading: Leading) -> None:
    """What came behind it would not be committed."""
    leading.pass_time(INTERVAL_S)
    leading.report(CheckpointEvent.SAVED, 1, 1, 2, 3)
    leading.works(1, 2, 3, event=TaskEvent.ENDED)
    leading.carry_out(leading.leader.manifest_stored(1))
    leading.report(CheckpointEvent.COMMITTED, 1, 1, 2, 3)
    assert not leading.ended
    assert leading.ordered.number == 2


def test_the_numbers_continue_those_of_the_checkpoint_that_a_run_starts_from(
    given: Takeover, fake_clock: FakeClock
) -> None:
    """The output of the former run is committed up to that number."""
    config = {**given.definition.config, TOPOLOGY_STATEFUL_START_FROM: "wc-0/41"}
    leading = Leading(replace(given, definition=replace(given.definition, config=config)), fake_clock)
    leading.register(1)
    leading.register(2)
    leading.works(1, 2, 3)
    assert (leading.ordered.number, leading.ordered.source) == (41, "wc-0/41")
    leading.send_heartbeat(1, 1, losses=1)
    leading.pass_time(SETTLE_S)
    assert leading.ordered.source == "wc-0/41", "this run has no complete checkpoint yet"
    leading.works(1, 2, 3)
    assert leading.take(1, 2, 3) == 42
    leading.send_heartbeat(1, 1, losses=2)
    leading.pass_time(SETTLE_S)
    assert leading.ordered.source == "wc-1/42"


def test_plans_before_the_first_have_no_checkpoints(given: Takeover, fake_clock: FakeClock) -> None:
    """A claim writes such a plan; the first plan of the leader has them."""
    empty = PhysicalPlan(0, 1, "wc-1", given.definition, TopologyState.RUNNING, (), ())
    leading = Leading(replace(given, plan=empty), fake_clock)
    leading.register(1)
    leading.register(2)
    assert leading.ordered.since == 0
