"""New code in a running topology: when all tasks have it, when they return, and who goes on after a takeover."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.definition import StreamDefinition, TopologyDefinition
from heron.errors import HeronError
from heron.ipc.documents.status import CodeStatus, LeaderStatus
from heron.planner.code_change import CodeChange, replaced
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import UpdatePhase
from heron.tmanager.leader.checkpoint_progress import CheckpointEvent
from heron.tmanager.leader.process_reports import ProcessReport
from heron.tmanager.leader.task_table import TaskEvent, TaskReport
from heron.tmanager.leader.topology_state import Takeover
from heron_testing.fake_clock import FakeClock
from parts.leading import INTERVAL_S, Leading, with_checkpoints, working

NEW = "store:new"
CANARY_S = 60.0


@pytest.fixture
def given(definition: TopologyDefinition, packing: PackingPlan) -> Takeover:
    return with_checkpoints(definition, packing)


@pytest.fixture
def leading(given: Takeover, fake_clock: FakeClock) -> Leading:
    """All three tasks run, and checkpoint 1 is complete."""
    found = working(given, fake_clock)
    found.take(1, 2, 3)
    return found


def change(leading: Leading, *, canary_s: float = 0.0, package: str = NEW) -> CodeChange:
    """New code of the bolt."""
    components = tuple(
        replace(each, entry="wc:Count2") if each.name == "count" else each
        for each in leading.given.definition.components
    )
    return CodeChange(package, replace(leading.given.definition, components=components), ("count",), (), canary_s)


def ask(leading: Leading, *tasks: int, canary_s: float = 0.0, package: str = NEW) -> None:
    """A command asks for the new code in these tasks."""
    target = replaced(leading.packing, tasks, package) if tasks else leading.packing
    asked = change(leading, canary_s=canary_s, package=package)
    leading.carry_out(leading.leader.update_asked(target, leading.packing.id, code=asked))


def code(leading: Leading) -> CodeStatus:
    """The status of the change, which is there."""
    status = leading.leader.known.code.status()
    assert status is not None
    return status


def fail(leading: Leading, task: int) -> None:
    """A task cannot initialise its component."""
    restores = leading.restores_of(task)
    report = TaskReport(task, 1, TaskEvent.FAILED, "Count2 raised ValueError at wc.py:7", restores=restores)
    leading.carry_out(leading.leader.task_reported(report))


def commit(leading: Leading, *tasks: int) -> int:
    """The checkpoint that the update has ordered is complete and committed."""
    number = leading.ordered.number
    leading.report(CheckpointEvent.SAVED, number, *tasks)
    leading.carry_out(leading.leader.manifest_stored(number))
    leading.report(CheckpointEvent.COMMITTED, number, *tasks)
    return number


def replace_all(leading: Leading) -> int:
    """Both bolts are replaced by tasks 4 and 5, which restore a checkpoint; returns its number."""
    ask(leading, 2, 3)
    leading.works(4, 5)
    number = commit(leading, 1, 2, 3)
    assert code(leading).phase == "change", "the new tasks start once more"
    return number


def test_all_tasks_have_the_new_code_when_they_run_with_their_state(leading: Leading) -> None:
    """Tasks that have not changed keep running; what they load when they restart is the new package too."""
    number = replace_all(leading)
    assert leading.plan is not None
    assert leading.plan.topology_of(4).component("count").entry == "wc:Count2"
    assert leading.plan.topology_of(1).component("count").entry == "wc:Count"
    leading.works(1, 4, 5)
    assert code(leading) == CodeStatus(NEW, "complete", ("count",), (4, 5))
    assert leading.plan.code is None
    assert (leading.plan.package, leading.plan.topology.component("count").entry) == (NEW, "wc:Count2")
    assert {each.package for _, each in leading.packing.instances()} == {NEW}
    leading.pass_time(INTERVAL_S)
    assert leading.ordered.number == number + 1, "checkpoints go on"


def test_a_task_that_does_not_initialise_changes_nothing(leading: Leading) -> None:
    """The former tasks have never stopped."""
    ask(leading, 2, 3)
    fail(leading, 4)
    assert code(leading).phase == "returned"
    assert "task 4 of 'count' in container 1 does not run: Count2 raised ValueError" in code(leading).reason
    assert leading.plan is not None
    assert (leading.plan.code, leading.plan.update, leading.plan.package) == (None, None, "")
    assert [each.task_id for each in leading.plan.tasks] == [1, 2, 3]
    assert not leading.ended


def test_a_task_whose_process_dies_again_and_again_changes_nothing(leading: Leading) -> None:
    """Code may crash its process; a single death may come from outside."""
    ask(leading, 2, 3)
    for restarts in (1, 2, 3):
        assert code(leading).phase == "change"
        report = ProcessReport(1, "count-4", 4, restarts, TaskEvent.DIED, "killed by SIGSEGV", restarts)
        leading.carry_out(leading.leader.process_reported(report))
    assert code(leading).phase == "returned"
    assert "killed by SIGSEGV" in code(leading).reason


def test_a_task_that_cannot_read_the_state_lets_all_return_to_the_checkpoint(leading: Leading) -> None:
    """No checkpoint is taken meanwhile: what the former code restores has been saved by the former code."""
    number = replace_all(leading)
    leading.pass_time(INTERVAL_S)
    assert leading.ordered.number == number, "no checkpoint"
    fail(leading, 5)
    assert code(leading).phase == "return"
    assert leading.phase is UpdatePhase.PREPARE
    leading.pass_time(INTERVAL_S)
    assert leading.ordered.number == number, "nor for the return"
    restores = leading.ordered.all_restores()
    leading.works(6, 7)
    assert leading.ordered.all_restores() == restores + 1
    assert code(leading).phase == "returned"
    assert "Count2 raised ValueError" in code(leading).reason
    assert leading.plan is not None
    assert [each.task_id for each in leading.plan.tasks] == [1, 6, 7]
    assert {each.package for _, each in leading.packing.instances()} == {""}
    assert leading.plan.topology_of(6).component("count").entry == "wc:Count"
    leading.works(1, 6, 7)
    leading.pass_time(INTERVAL_S)
    assert leading.ordered.number == number + 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_new_leader_goes_on(leading: Leading, *, fails: bool) -> None:
    """The change is a value in the plan."""
    replace_all(leading)
    if fails:
        fail(leading, 5)
    after = leading.successor()
    after.register(1)
    after.register(2)
    if fails:
        assert code(after).phase == "return"
        after.works(6, 7)
        assert code(after).phase == "returned"
    else:
        after.works(1, 4, 5)
        assert code(after).phase == "complete"


def test_a_task_that_does_not_start_in_time_lets_all_return(leading: Leading) -> None:
    replace_all(leading)
    leading.works(1, 4)
    leading.pass_time(20.0)
    assert code(leading).phase == "return"
    assert "task 5 does not run after 20 s (heron.update.prepare.s)" in code(leading).reason


def canary(leading: Leading) -> None:
    """Task 4 runs the new code in the place of task 3."""
    ask(leading, 3, canary_s=CANARY_S)
    leading.works(4)
    commit(leading, 1, 2, 3)
    leading.works(1, 2, 4)
    assert code(leading).phase == "canary"


def test_the_rest_follows_canaries(leading: Leading) -> None:
    canary(leading)
    ask(leading, 2)
    leading.works(5)
    commit(leading, 1, 2, 4)
    leading.works(1, 4, 5)
    assert code(leading).phase == "complete"
    assert [each.task_id for _, each in leading.packing.instances()] == [1, 5, 4]


def test_values_that_were_configured_while_canaries_ran_stay(leading: Leading) -> None:
    """The command has made the definition of its change before."""
    canary(leading)
    leading.carry_out(leading.leader.config_asked({"count": {"own": 1}}))
    ask(leading, 2)
    leading.works(5)
    commit(leading, 1, 2, 4)
    leading.works(1, 4, 5)
    assert leading.plan is not None
    assert leading.plan.package == NEW
    assert leading.plan.topology.component("count").config["own"] == 1


def test_canaries_for_which_nobody_decides_return(leading: Leading) -> None:
    """The command may have been killed; a share with other code must not stay."""
    canary(leading)
    leading.pass_time(CANARY_S)
    assert code(leading).phase == "canary"
    leading.pass_time(30.0)
    assert code(leading).phase == "return"
    leading.works(5)
    assert code(leading) == CodeStatus(NEW, "returned", ("count",), (4,), "nobody has decided within 90 s")


def test_a_command_lets_canaries_return(leading: Leading) -> None:
    canary(leading)
    leading.carry_out(leading.leader.withdrawal_asked("slower"))
    assert (code(leading).phase, code(leading).reason) == ("return", "slower")


def test_all_tasks_of_a_component_may_be_canaries(leading: Leading) -> None:
    """A component with one task has no other: a command decides all the same."""
    ask(leading, 2, 3, canary_s=CANARY_S)
    leading.works(4, 5)
    commit(leading, 1, 2, 3)
    leading.works(1, 4, 5)
    assert code(leading).phase == "canary"
    ask(leading)
    assert code(leading).phase == "complete"


def test_a_rest_that_does_not_start_lets_the_canaries_return(leading: Leading) -> None:
    canary(leading)
    ask(leading, 2)
    fail(leading, 5)
    assert code(leading).phase == "return"
    leading.works(6)
    assert code(leading).phase == "returned"
    assert [each.task_id for _, each in leading.packing.instances()] == [1, 2, 6]


def test_the_rest_starts_without_a_checkpoint_of_the_canaries(leading: Leading) -> None:
    """A rest that does not start must return to the work of the former code alone."""
    canary(leading)
    before = leading.ordered.number
    ask(leading, 2)
    leading.pass_time(INTERVAL_S)
    assert leading.ordered.number == before
    leading.works(5)
    assert leading.ordered.number == before + 1


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_checkpoint_that_canaries_save_is_given_up_with_the_rest(leading: Leading, *, is_stored: bool) -> None:
    """It would become complete while the canaries return, and the former code would get their state."""
    canary(leading)
    good = leading.ordered.complete
    ask(leading, 2)
    leading.works(5)
    number = leading.ordered.number
    leading.report(CheckpointEvent.SAVED, number, *((1, 2, 4) if is_stored else (1, 2)))
    fail(leading, 5)
    assert code(leading).phase == "return"
    if is_stored:
        leading.carry_out(leading.leader.manifest_stored(number))
    leading.report(CheckpointEvent.SAVED, number, 4)
    assert len(leading.manifests) == 2 + is_stored
    leading.works(6)
    assert code(leading).phase == "returned"
    assert leading.ordered.complete == good
    assert leading.status.source.endswith(f"/{good}")
    leading.works(1, 2, 6)
    assert leading.ordered.number == number + 1, "the former code goes on with a checkpoint"


def test_one_change_at_a_time(leading: Leading, larger: PackingPlan) -> None:
    """An update would give its new tasks one of two packages."""
    canary(leading)
    for package in (NEW, "store:other"):
        if package == NEW:
            target, asked = replace(larger, id="more"), None
        else:
            target, asked = replaced(leading.packing, [2], package), change(leading, package=package)
        with pytest.raises(HeronError, match="changes to store:new, in phase canary"):
            leading.leader.update_asked(target, leading.packing.id, code=asked)


def test_other_streams_are_refused(leading: Leading) -> None:
    """The command has compared them; the routes of all tasks come from one definition."""
    asked = change(leading)
    word, count = asked.topology.components
    wrong = replace(word, outputs=(StreamDefinition("default", ("word", "more")),))
    asked = replace(asked, topology=replace(asked.topology, components=(wrong, count)))
    with pytest.raises(HeronError, match="are not those of the topology"):
        leading.leader.update_asked(replaced(leading.packing, [2], NEW), leading.packing.id, code=asked)
    assert leading.leader.known.plans.code is None


def test_a_later_update_gives_its_tasks_the_new_package(leading: Leading) -> None:
    """The packing of the profile knows no packages."""
    replace_all(leading)
    leading.works(1, 4, 5)
    one, two = leading.packing.containers
    added = replace(two.instances[0], task_id=6, component_index=2, package="")
    containers = (one, replace(two, instances=(*two.instances, added)))
    target = PackingPlan("more", tuple(containers), 6)
    leading.carry_out(leading.leader.update_asked(target, leading.packing.id))
    assert {each.package for _, each in leading.packing.instances()} == {NEW}


def test_without_checkpoints_also_a_spout_is_replaced(
    definition: TopologyDefinition, packing: PackingPlan, fake_clock: FakeClock
) -> None:
    """Its new task begins as after a restart; the former one leaves when it owes nothing."""
    leader = LeaderStatus(1, 77, "here", 5, 1_700_000_100.0)
    leading = Leading(Takeover(definition, packing, "wc-1", leader, 1_700_000_000.0), fake_clock)
    leading.register(1)
    leading.register(2)

    def report(event: TaskEvent, *tasks: int) -> None:
        for task in tasks:
            leading.carry_out(leading.leader.task_reported(TaskReport(task, 1, event)))

    report(TaskEvent.INITIALISED, 1, 2, 3)
    asked = replace(change(leading), components=("word", "count"))
    target = replaced(leading.packing, [1, 2, 3], NEW)
    leading.carry_out(leading.leader.update_asked(target, leading.packing.id, code=asked))
    report(TaskEvent.INITIALISED, 4, 5, 6)
    assert leading.phase is UpdatePhase.SWITCH
    report(TaskEvent.LEFT, 1, 2, 3)
    assert code(leading).phase == "complete"
    assert leading.plan is not None
    assert leading.plan.package == NEW


def test_a_component_that_ends_meanwhile_ends_the_change(leading: Leading) -> None:
    """Its tasks cannot be replaced any more, and the topology will end."""
    canary(leading)
    leading.works(4, event=TaskEvent.ENDED)
    assert code(leading).phase == "returned"
    assert "component 'count' has ended at task 4" in code(leading).reason
