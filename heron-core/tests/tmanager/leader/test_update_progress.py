"""The phases of an update: what may begin, what each phase waits for, and how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import HeronError
from heron.ipc.documents.status import UpdateStatus
from heron.planner.key_owners import KeyOwners
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, StreamManagerLocation, TopologyState, UpdatePhase
from heron.tmanager.leader.membership import PlanMaker, Registry
from heron.tmanager.leader.task_table import TaskEvent, TaskReport, TaskTable
from heron.tmanager.leader.update_progress import NO_OWNERS, OwnersByComponent, UpdateProgress
from heron_testing.fake_clock import FakeClock

LIMIT_S = 120.0


class Bench:
    """A running word count, whose plan has version 1, and its update."""

    def __init__(self, definition: TopologyDefinition, packing: PackingPlan, clock: FakeClock) -> None:
        self.definition, self.clock = definition, clock
        self.plans = PlanMaker(definition, packing, "wc-1", 1)
        self.tasks = TaskTable(packing)
        self.registry = Registry(10.0)
        self.register(1, 2)
        plan = self.plans.next_plan(None, self.registry.locations(), TopologyState.RUNNING)
        assert plan is not None
        self.plan: PhysicalPlan = plan
        self.update = UpdateProgress(self.plans, self.tasks, self.registry, LIMIT_S, clock)

    def register(self, *containers: int) -> None:
        """The stream managers of these containers register."""
        for container_id in containers:
            location = StreamManagerLocation(container_id, 1, f"ipc:///c{container_id}", "here", 10)
            self.registry.register(location, self.clock.monotonic_s())

    def take(self, event: TaskEvent, *task_ids: int, error: str = "") -> None:
        """Tasks report, or their executors do."""
        for task_id in task_ids:
            assert self.tasks.take(TaskReport(task_id, 1, event, error))

    def begin(self, target: PackingPlan, base: str = "plan", owners: OwnersByComponent = NO_OWNERS) -> bool:
        """Begin, and make the tasks known, as the leader does."""
        begun = self.update.begin(self.plan, self.definition, target, base, owners)
        self.tasks.set_packing(self.plans.packing)
        return begun

    def publish(self) -> PhysicalPlan:
        """The next plan takes effect."""
        plan = self.plans.next_plan(self.plan, self.registry.locations(), TopologyState.RUNNING)
        assert plan is not None
        self.plan = plan
        return plan

    def phase(self) -> UpdatePhase | None:
        """The phase of the update under way."""
        return self.plans.update.phase if self.plans.update else None

    def switched(self, target: PackingPlan) -> None:
        """Begin an update that waits for nothing in its first phase."""
        assert self.begin(target)
        assert self.update.step()
        assert self.phase() is UpdatePhase.SWITCH

    def status(self) -> UpdateStatus:
        """The status, which is there."""
        status = self.update.status()
        assert status is not None
        return status


@pytest.fixture
def bench(definition: TopologyDefinition, packing: PackingPlan, fake_clock: FakeClock) -> Bench:
    return Bench(definition, packing, fake_clock)


def changed(packing: PackingPlan, container_id: int, *instances: InstancePlan) -> PackingPlan:
    """The plan with other instances in one container."""
    containers = (
        replace(each, instances=instances) if each.container_id == container_id else each for each in packing.containers
    )
    return PackingPlan("changed", tuple(containers), packing.next_task_id() - 1)


def refusal(bench: Bench, target: PackingPlan, base: str = "plan", owners: OwnersByComponent = NO_OWNERS) -> str:
    """The reason why an update may not begin; nothing has changed."""
    before = bench.plans.packing, bench.plans.update
    with pytest.raises(HeronError) as refused:
        bench.begin(target, base, owners)
    assert (bench.plans.packing, bench.plans.update) == before
    return str(refused.value)


def test_a_plan_that_was_made_from_another_one_is_refused(bench: Bench, larger: PackingPlan) -> None:
    """Another command has changed the tasks meanwhile, so task ids could be used twice."""
    assert refusal(bench, larger, "older") == "the packing plan of 'wc' is 'plan' now, not 'older'; try again"


def test_another_update_is_refused_while_one_is_under_way(
    bench: Bench, larger: PackingPlan, smaller: PackingPlan
) -> None:
    """The message names what the first one waits for. The same update once more has no effect."""
    assert bench.begin(larger)
    reason = refusal(bench, smaller)
    assert "update 2 of 'wc' is in phase prepare and waits for container 3; try again when it is complete" in reason
    number = bench.status().number
    assert not bench.begin(larger)
    assert bench.status().number == number


def test_a_component_that_has_ended_keeps_its_tasks(bench: Bench, larger: PackingPlan, smaller: PackingPlan) -> None:
    """Its consumers count its end markers and may have ended too."""
    bench.take(TaskEvent.ENDED, 2)
    for target in (larger, smaller):
        assert "component 'count' has ended at task 2" in refusal(bench, target)


def test_a_spout_can_only_grow(bench: Bench, packing: PackingPlan, smaller: PackingPlan) -> None:
    """No other task continues at the position of a removed one."""
    resource = packing.containers[0].required
    grown = changed(packing, 2, *packing.containers[1].instances, InstancePlan("word", 4, 1, resource))
    bench.plans.packing = replace(grown, id="grown")
    bench.tasks.set_packing(grown)
    plan = bench.plans.next_plan(bench.plan, bench.registry.locations(), TopologyState.RUNNING)
    assert plan is not None
    bench.plan = plan
    assert "component 'word' is a spout of 2 tasks; its parallelism can only grow" in refusal(bench, packing, "grown")


def test_a_task_that_stays_does_not_move(bench: Bench, packing: PackingPlan) -> None:
    """The state of a task is in its process."""
    word, count = packing.containers[0].instances
    other = packing.containers[1].instances
    moved = changed(changed(packing, 1, word), 2, count, *other)
    assert "task 2 of 'count' is in container 1, it cannot become 'count' in container 2" in refusal(bench, moved)
    renamed = changed(packing, 2, replace(other[0], component="word", component_index=1), replace(count, task_id=4))
    assert "task 3 of 'count' is in container 2, it cannot become 'word' in container 2" in refusal(bench, renamed)


def test_an_instance_moves_as_another_task(bench: Bench, packing: PackingPlan) -> None:
    """The new task has the index of the former one; both are members until the update is complete."""
    moved = replace(packing.containers[0].instances[1], task_id=4)
    target = changed(
        changed(packing, 1, packing.containers[0].instances[0]), 2, *packing.containers[1].instances, moved
    )
    assert bench.begin(target)
    bench.take(TaskEvent.INITIALISED, 4)
    assert bench.update.step()
    plan = bench.plans.next_plan(bench.plan, bench.registry.locations(), TopologyState.RUNNING)
    assert plan is not None
    assert PlanIndex(plan).members_of("count") == (2, 4, 3)
    assert PlanIndex(plan).tasks_of("count") == (4, 3)
    bench.take(TaskEvent.LEFT, 2)
    assert bench.update.step()
    assert bench.status().phase == "complete"
    assert bench.plans.packing.parallelism() == packing.parallelism()
    word = replace(packing.containers[0].instances[0], task_id=5)
    away = changed(changed(bench.plans.packing, 1), 2, *bench.plans.packing.containers[1].instances, word)
    away = replace(away, id="away", containers=away.containers[1:])
    assert "task 1 cannot leave: no other task can continue" in refusal(bench, away, bench.plans.packing.id)


def test_ids_of_former_tasks_are_not_used_again(bench: Bench, packing: PackingPlan) -> None:
    """Late data of a removed task would be taken for data of the new one."""
    bench.plans.packing = replace(packing, last_task_id=7)
    new = replace(packing.containers[1].instances[0], task_id=5, component_index=2)
    target = changed(packing, 2, *packing.containers[1].instances, new)
    assert "task 5 is new, but ids up to 7 have been used" in refusal(bench, target)


def test_a_plan_that_the_topology_cannot_have_is_refused(bench: Bench, packing: PackingPlan) -> None:
    """A component without tasks, or one that the topology does not have, comes from a wrong packing algorithm."""
    word = packing.containers[0].instances[0]
    assert refusal(bench, PackingPlan("no count", (ContainerPlan(1, (word,), word.resource),), 3))
    strange = InstancePlan("strange", 4, 0, Resource(1.0, 1, 1))
    assert refusal(bench, changed(packing, 2, *packing.containers[1].instances, strange))


def test_the_switch_waits_for_new_containers_and_tasks(bench: Bench, larger: PackingPlan) -> None:
    """A segment for a task that does not run yet would wait, and hold up all others of its container."""
    bench.begin(larger)
    assert bench.status() == UpdateStatus(2, "prepare", "larger", (4,), (), "container 3")
    assert not bench.update.step()
    bench.register(3)
    assert bench.status().waits_for == "task 4"
    assert not bench.update.step()
    bench.take(TaskEvent.INITIALISED, 4)
    assert bench.update.step()
    assert bench.status() == UpdateStatus(2, "switch", "larger", (4,), (), "")


def test_a_new_task_may_have_ended_before_the_switch(bench: Bench, larger: PackingPlan) -> None:
    """All spouts may end meanwhile; the end markers go to the new task too."""
    bench.begin(larger)
    bench.register(3)
    bench.take(TaskEvent.ENDED, 4)
    assert bench.update.step()
    assert bench.phase() is UpdatePhase.SWITCH


@pytest.mark.parametrize("event", [TaskEvent.FAILED, TaskEvent.GIVEN_UP])
def test_a_new_task_that_does_not_run_withdraws_the_update(
    bench: Bench, packing: PackingPlan, larger: PackingPlan, event: TaskEvent
) -> None:
    """The topology continues with the tasks that it had, and the ids of the others are not used again."""
    bench.begin(larger)
    bench.take(event, 4, error="no such file")
    assert bench.update.step()
    assert bench.plans.packing.containers == packing.containers
    assert bench.plans.packing.next_task_id() == 5
    reason = "task 4 of 'count' in container 3 does not run: no such file"
    assert bench.status() == UpdateStatus(2, "withdrawn", "larger", (4,), (), reason)
    assert not bench.update.step()


def test_a_new_task_that_restarts_withdraws_nothing(bench: Bench, larger: PackingPlan) -> None:
    """Its host may have been short of memory for a moment."""
    bench.begin(larger)
    bench.register(3)
    bench.take(TaskEvent.DIED, 4)
    assert not bench.update.step()
    bench.take(TaskEvent.INITIALISED, 4)
    assert bench.update.step()


def test_an_update_that_is_not_prepared_in_time_is_withdrawn(bench: Bench, larger: PackingPlan) -> None:
    """A container may wait for resources for ever."""
    bench.begin(larger)
    bench.clock.advance(LIMIT_S - 1.0)
    assert not bench.update.step()
    bench.clock.advance(1.0)
    assert bench.update.step()
    assert bench.status().waits_for == "container 3 is missing after 120 s (heron.update.prepare.s)"


def test_a_task_that_does_not_start_in_time_is_named_with_its_last_error(bench: Bench, larger: PackingPlan) -> None:
    """Its package may be in a store that is away."""
    bench.begin(larger)
    bench.register(3)
    bench.take(TaskEvent.DIED, 4, error="package p: does not answer")
    bench.clock.advance(LIMIT_S)
    assert bench.update.step()
    reason = "task 4 is missing after 120 s (heron.update.prepare.s): package p: does not answer"
    assert bench.status().waits_for == reason


def test_a_component_that_ends_before_the_switch_withdraws_the_update(bench: Bench, larger: PackingPlan) -> None:
    """A consumer that has not received the first phase yet ends with it, and takes nothing from new tasks."""
    bench.begin(larger)
    bench.register(3)
    bench.take(TaskEvent.INITIALISED, 4)
    bench.take(TaskEvent.ENDED, 2)
    assert bench.update.step()
    assert (bench.status().phase, bench.status().waits_for) == ("withdrawn", "component 'count' has ended at task 2")


def test_a_command_withdraws_only_the_first_phase(bench: Bench, larger: PackingPlan, smaller: PackingPlan) -> None:
    """Later, data has taken the new routes."""
    with pytest.raises(HeronError, match="no update is under way"):
        bench.update.withdraw("too late")
    bench.begin(larger)
    bench.update.withdraw("no containers")
    assert (bench.status().phase, bench.status().waits_for) == ("withdrawn", "no containers")
    bench.tasks.set_packing(bench.plans.packing)
    assert bench.begin(smaller, bench.plans.packing.id)
    assert bench.update.step()
    with pytest.raises(HeronError, match="cannot be withdrawn in phase switch; it will be complete soon"):
        bench.update.withdraw("too late")


def test_an_update_is_complete_when_all_removed_tasks_have_left(
    bench: Bench, packing: PackingPlan, smaller: PackingPlan
) -> None:
    """They process everything that was sent to them before."""
    bench.switched(smaller)
    assert bench.status() == UpdateStatus(2, "switch", "smaller", (), (3,), "task 3")
    assert not bench.update.step()
    bench.take(TaskEvent.LEFT, 3)
    assert bench.update.step()
    assert bench.status() == UpdateStatus(2, "complete", "smaller", (), (3,), "")
    assert bench.plans.packing.containers == packing.containers[:1]
    assert not bench.update.step()
    assert not bench.begin(smaller), "a command repeats its request when the answer was lost"


@pytest.mark.parametrize("event", [TaskEvent.GIVEN_UP, TaskEvent.FAILED, TaskEvent.ENDED])
def test_a_removed_task_that_does_not_run_does_not_block(bench: Bench, smaller: PackingPlan, event: TaskEvent) -> None:
    """It will never report that it has left."""
    bench.switched(smaller)
    bench.take(event, 3)
    assert bench.update.step()
    assert bench.phase() is None


def test_the_plan_names_the_tasks_that_send_no_markers(bench: Bench, smaller: PackingPlan) -> None:
    """The removed task would wait for the marker of a spout that is given up; each change is published once."""
    bench.switched(smaller)
    bench.take(TaskEvent.GIVEN_UP, 1)
    assert bench.update.step()
    assert bench.plans.update is not None
    assert bench.plans.update.absent == (1,)
    assert not bench.update.step()
    assert bench.tasks.take(TaskReport(1, 2, TaskEvent.INITIALISED))
    assert bench.update.step()
    assert not bench.plans.update.absent


def test_only_new_tasks_of_the_first_phase_are_prepared(bench: Bench, larger: PackingPlan) -> None:
    """If one of them fails, only the update ends."""
    assert not bench.update.prepares(4)
    bench.begin(larger)
    assert bench.update.prepares(4)
    assert not bench.update.prepares(2)
    bench.register(3)
    bench.take(TaskEvent.INITIALISED, 4)
    assert bench.update.step()
    assert not bench.update.prepares(4)


def test_key_groups_move_between_tasks_that_stay(bench: Bench, packing: PackingPlan) -> None:
    """The update has the phases of every other one; the owners stay in the plan."""
    owners = KeyOwners.of([2] * 300 + [3] * 724)
    bench.take(TaskEvent.INITIALISED, 1, 2, 3)
    assert bench.begin(packing, owners={"count": owners})
    assert PlanIndex(bench.publish()).key_owners("count").count(2) == 512
    assert bench.update.step()
    assert bench.phase() is UpdatePhase.SWITCH
    assert PlanIndex(bench.publish()).key_owners("count") == owners.table()
    assert bench.update.step()
    plan = bench.publish()
    assert (bench.status().phase, plan.update, plan.tasks) == ("complete", None, bench.plan.tasks)
    assert PlanIndex(plan).key_owners("count") == owners.table()


def test_the_same_owners_again_have_no_effect(bench: Bench, packing: PackingPlan) -> None:
    """The answer to the first request may be lost, during the update or after it. Other owners wait their turn."""
    owners = {"count": KeyOwners.of([2] * 300 + [3] * 724)}
    bench.take(TaskEvent.INITIALISED, 1, 2, 3)
    assert bench.begin(packing, owners=owners)
    assert not bench.begin(packing, owners=owners)
    assert "is in phase prepare" in refusal(bench, packing, owners={"count": KeyOwners.of([2] * 1023 + [3])})
    assert bench.update.step()
    assert bench.update.step()
    bench.publish()
    assert not bench.begin(packing, owners=owners)
    present = bench.plans.packing
    assert bench.begin(present, present.id, {"count": KeyOwners.of([2] * 1023 + [3])})


@pytest.mark.parametrize(
    ("component", "owners"),
    [
        ("count", [2] * 1024),
        ("count", [2] * 500 + [3] * 500),
        ("count", [2] * 500 + [3] * 500 + [4] * 24),
        ("word", [1] * 1023),
        ("nothing", [2] * 512 + [3] * 512),
    ],
)
def test_owners_that_do_not_fit_are_refused(
    bench: Bench, packing: PackingPlan, component: str, owners: list[int]
) -> None:
    """A task without a group, a missing group, a task of no component; a spout and a component without tasks."""
    found = refusal(bench, packing, owners={component: KeyOwners.of(owners)})
    assert f"component {component!r}: the owners of key groups are for {len(owners)} groups" in found


def test_a_task_that_does_not_run_takes_no_key_groups(bench: Bench, packing: PackingPlan) -> None:
    """Nothing waits for it, so their data would fill its outlet and throttle the spouts."""
    bench.take(TaskEvent.INITIALISED, 1, 2)
    owners = {"count": KeyOwners.of([2] * 300 + [3] * 724)}
    reason = refusal(bench, packing, owners=owners)
    assert reason == "task 3 of component 'count' does not run, so it cannot take key groups; try again"


def test_key_groups_of_an_ended_task_do_not_move(bench: Bench, packing: PackingPlan) -> None:
    """It would not process what it gets."""
    bench.take(TaskEvent.INITIALISED, 1, 2, 3)
    bench.take(TaskEvent.ENDED, 3)
    owners = {"count": KeyOwners.of([2] * 300 + [3] * 724)}
    assert "has ended at task 3; its tasks cannot change" in refusal(bench, packing, owners=owners)
