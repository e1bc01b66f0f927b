"""Updates that a leader carries out: the plan and the instructions of each phase, and its takeover in each phase."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as replaced

from heron.api.definition import TopologyDefinition
from heron.errors import HeronError
from heron.ipc.documents.metric_names import EXECUTE_COUNT
from heron.ipc.documents.status import LeaderStatus
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, StreamManagerLocation, TopologyState, UpdatePhase
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, Source
from heron.tmanager.leader.instructions import EndTopology, Instruction, NoteEvent, PublishPlan
from heron.tmanager.leader.leader import Leader
from heron.tmanager.leader.process_reports import ProcessReport
from heron.tmanager.leader.task_table import TaskEvent, TaskReport
from heron.tmanager.leader.topology_state import Takeover
from heron_testing.fake_clock import FakeClock


def location(container_id: int) -> StreamManagerLocation:
    return StreamManagerLocation(container_id, 1, f"ipc:///c{container_id}", "here", 10)


def report(task_id: int, event: TaskEvent = TaskEvent.INITIALISED) -> TaskReport:
    return TaskReport(task_id, 1, event)


def published(instructions: list[Instruction]) -> list[PublishPlan]:
    return [each for each in instructions if isinstance(each, PublishPlan)]


def phases(instructions: list[Instruction]) -> list[str]:
    """The phases that are in the event log now."""
    return [each.attributes["phase"] for each in instructions if isinstance(each, NoteEvent) and each.name == "update"]


class Leading:
    """A leader of a running word count; `given` is the takeover of its successor."""

    def __init__(self, given: Takeover, clock: FakeClock, on_failure: str = "restart") -> None:
        self.given, self.clock, self.on_failure = given, clock, on_failure
        settings = EngineSettings(on_failure=on_failure, update_prepare_s=20.0)
        self.leader = Leader(given, settings, clock)
        self.last = PublishPlan(PhysicalPlan(0, 0, "", given.definition, TopologyState.RUNNING, (), ()), given.packing)
        self.carry_out(self.leader.begin())

    def carry_out(self, instructions: list[Instruction]) -> list[Instruction]:
        """Remember the plan that was published last."""
        for each in published(instructions):
            self.last = each
        return instructions

    def register(self, *containers: int) -> list[Instruction]:
        """Stream managers register."""
        found: list[Instruction] = []
        for container_id in containers:
            found += self.carry_out(self.leader.stmgr_registered(location(container_id)))
        return found

    def take(self, *reports: TaskReport) -> list[Instruction]:
        """Tasks report."""
        return [each for one in reports for each in self.carry_out(self.leader.task_reported(one))]

    def ask(self, target: PackingPlan) -> list[Instruction]:
        """A command requests an update of the present tasks."""
        return self.carry_out(self.leader.update_asked(target, self.last.packing.id))

    def remove(self, target: PackingPlan) -> None:
        """Request an update that only removes tasks; its first phase is over with the next event."""
        assert phases(self.ask(target)) == ["prepare"]
        assert phases(self.carry_out(self.leader.check_heartbeats())) == ["switch"]

    def executed(self, task_id: int, count: int) -> None:
        """A task of `count` has executed this many tuples."""
        metric = Metric(EXECUTE_COUNT, MetricKind.COUNTER, "tuples", count)
        source = Source("wc", 1, f"count-{task_id}", 1, "count", task_id)
        self.leader.known.metrics_arrived(MetricsRecord(source, 100.0, (metric,)))

    def successor(self) -> Leading:
        """The leader that takes over what this one published last."""
        leader = replaced(self.given.leader, epoch=self.given.leader.epoch + 1)
        given = replace(
            self.given, leader=leader, former_epoch=leader.epoch - 1, plan=self.last.plan, packing=self.last.packing
        )
        return Leading(given, self.clock, self.on_failure)

    def phase(self) -> UpdatePhase | None:
        """The phase in the plan that was published last."""
        return self.last.plan.update.phase if self.last.plan.update else None

    def members(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The members of `count`, and those of them that get data."""
        index = PlanIndex(self.last.plan)
        return index.members_of("count"), index.tasks_of("count")

    def packed(self) -> list[int]:
        """The tasks of the packing plan that was published last."""
        return [instance.task_id for _, instance in self.last.packing.instances()]


@pytest.fixture
def given(definition: TopologyDefinition, packing: PackingPlan) -> Takeover:
    return Takeover(definition, packing, "wc-1", LeaderStatus(1, 77, "here", 5, 1_700_000_100.0), 1_700_000_000.0)


@pytest.fixture
def leading(given: Takeover, fake_clock: FakeClock) -> Leading:
    """All three tasks run."""
    found = Leading(given, fake_clock)
    found.register(1, 2)
    found.take(report(1), report(2), report(3))
    return found


def test_new_tasks_and_containers_come_in_two_plans(leading: Leading, larger: PackingPlan) -> None:
    """Both are members before data is routed to them, and the packing plan has them for the executors."""
    assert phases(leading.ask(larger)) == ["prepare"]
    assert leading.members() == ((2, 3, 4), (2, 3))
    assert leading.packed() == [1, 2, 3, 4]
    assert leading.leader.known.containers() == {0, 1, 2, 3}
    leading.register(3)
    assert (leading.phase(), len(leading.last.plan.stmgrs)) == (UpdatePhase.PREPARE, 3)
    assert phases(leading.take(report(4))) == ["switch", "complete"], "no task leaves, so both come at once"
    assert leading.phase() is None
    assert leading.members() == ((2, 3, 4), (2, 3, 4))
    assert set(PlanIndex(leading.last.plan).key_owners("count")) == {2, 3, 4}
    assert leading.leader.known.status().components[1].parallelism == 3


def test_each_plan_of_an_update_is_published_in_order(leading: Leading, larger: PackingPlan) -> None:
    """A task that takes the new routes sends markers with the number of the update, also if it is complete at once."""
    leading.ask(larger)
    leading.register(3)
    plans = [each.plan for each in published(leading.take(report(4)))]
    assert [each.version for each in plans] == [4, 5]
    assert [each.update.phase if each.update else None for each in plans] == [UpdatePhase.SWITCH, None]


def test_removed_tasks_stay_members_until_they_have_left(leading: Leading, smaller: PackingPlan) -> None:
    """Then they and their container leave both plans and the status."""
    leading.leader.process_reported(ProcessReport(2, "count-3", 3, 1, TaskEvent.STARTED))
    leading.remove(smaller)
    assert leading.members() == ((2, 3), (2,))
    assert leading.packed() == [1, 2, 3]
    assert phases(leading.take(report(3, TaskEvent.LEFT))) == ["complete"]
    assert leading.members() == ((2,), (2,))
    assert leading.packed() == [1, 2]
    assert [each.container_id for each in leading.last.plan.stmgrs] == [1]
    assert leading.leader.known.containers() == {0, 1}
    status = leading.leader.known.status()
    assert [each.task_id for each in status.tasks] == [1, 2]
    assert not status.processes


def test_counts_of_removed_tasks_stay_in_the_totals(leading: Leading, smaller: PackingPlan) -> None:
    """Totals that fall look like a loss."""
    leading.executed(2, 40)
    leading.executed(3, 60)
    leading.remove(smaller)
    leading.take(report(3, TaskEvent.LEFT))
    (count,) = (each for each in leading.leader.known.status().components if each.name == "count")
    assert (count.parallelism, count.executed) == (1, 100)


def test_the_stream_manager_of_a_removed_container_is_refused(leading: Leading, smaller: PackingPlan) -> None:
    """It restarts while its executor gets the order to stop; with it in the plan, peers would wait for it."""
    leading.remove(smaller)
    leading.take(report(3, TaskEvent.LEFT))
    with pytest.raises(HeronError, match="container 2 is not in packing plan"):
        leading.register(2)
    leading.clock.advance(100.0)
    assert not leading.leader.stmgr_heard(2)
    leading.leader.check_heartbeats()
    assert not any("container 2" in each for each in leading.leader.known.status().errors)


def test_a_withdrawn_update_leaves_the_tasks_as_they_were(leading: Leading, larger: PackingPlan) -> None:
    """A check of the heartbeats finds that the time is over. The reason is in the event log."""
    before = leading.last.plan.tasks
    leading.ask(larger)
    leading.clock.advance(20.0)
    assert phases(leading.carry_out(leading.leader.check_heartbeats())) == ["withdrawn"]
    assert (leading.last.plan.tasks, leading.last.plan.update) == (before, None)
    assert leading.packed() == [1, 2, 3]
    with pytest.raises(HeronError, match="container 3 is not in packing plan"):
        leading.register(3)


def test_a_command_withdraws_an_update(leading: Leading, larger: PackingPlan) -> None:
    """Its scheduler has no room, for example."""
    leading.ask(larger)
    assert phases(leading.carry_out(leading.leader.withdrawal_asked("no room"))) == ["withdrawn"]
    update = leading.leader.known.status().update
    assert update is not None
    assert (update.phase, update.waits_for) == ("withdrawn", "no room")


@pytest.mark.parametrize("given_up", [True, False])
def test_a_new_task_that_fails_does_not_end_the_topology(
    given: Takeover, larger: PackingPlan, fake_clock: FakeClock, given_up: bool
) -> None:
    """Also with `topology.on.failure: stop`, because no data depends on it yet."""
    leading = Leading(given, fake_clock, "stop")
    leading.register(1, 2)
    leading.ask(larger)
    if given_up:
        process = ProcessReport(3, "count-4", 4, 1, TaskEvent.GIVEN_UP, "exit code 3")
        instructions = leading.leader.process_reported(process)
    else:
        instructions = leading.leader.task_reported(report(4, TaskEvent.FAILED))
    assert phases(instructions) == ["withdrawn"]
    assert not leading.leader.known.ended


def test_the_same_update_again_is_written_again(leading: Leading, larger: PackingPlan) -> None:
    """Only a leader that can still write may confirm it; the plan has not changed."""
    base = leading.last.packing.id
    leading.ask(larger)
    (again,) = leading.leader.update_asked(larger, base)
    assert again == leading.last


def test_only_a_running_topology_is_updated(leading: Leading, given: Takeover, larger: PackingPlan) -> None:
    """A paused spout could not be asked to take new routes for what it has emitted."""
    starting = Leading(given, leading.clock)
    with pytest.raises(HeronError, match="is starting; only a running topology can be updated"):
        starting.leader.update_asked(larger, "plan")
    leading.carry_out(leading.leader.state_asked("paused"))
    with pytest.raises(HeronError, match="is paused; only a running topology can be updated"):
        leading.ask(larger)


def test_settings_change_in_a_paused_topology_and_during_an_update(leading: Leading, larger: PackingPlan) -> None:
    """They belong to the plan, not to its tasks: neither a pause nor an update has to end first."""
    leading.ask(larger)
    leading.carry_out(leading.leader.config_asked({"": {"own": 1}}))
    assert (leading.last.plan.topology.config["own"], leading.phase()) == (1, UpdatePhase.PREPARE)
    leading.carry_out(leading.leader.state_asked("paused"))
    leading.carry_out(leading.leader.config_asked({"": {"own": 2}}))
    assert (leading.last.plan.topology.config["own"], leading.phase()) == (2, UpdatePhase.PREPARE)
    assert leading.last.plan.state is TopologyState.PAUSED


def test_a_topology_may_be_paused_during_an_update(leading: Leading, smaller: PackingPlan) -> None:
    """Bolts still process what was sent to them, so the update goes on."""
    leading.remove(smaller)
    leading.carry_out(leading.leader.state_asked("paused"))
    assert (leading.last.plan.state, leading.phase()) == (TopologyState.PAUSED, UpdatePhase.SWITCH)
    leading.take(report(3, TaskEvent.LEFT))
    assert (leading.last.plan.state, leading.phase()) == (TopologyState.PAUSED, None)


def test_a_topology_that_is_killed_during_an_update_changes_no_more(leading: Leading, larger: PackingPlan) -> None:
    """Its end is written into the plan with the update, and the order to stop goes to the new container too."""
    leading.ask(larger)
    assert any(isinstance(each, EndTopology) for each in leading.leader.state_asked("killed"))
    leading.clock.advance(60.0)
    assert not published([*leading.leader.check_heartbeats(), *leading.leader.task_reported(report(4))])
    assert leading.leader.known.containers() == {0, 1, 2, 3}


def test_a_topology_finishes_during_an_update(leading: Leading, smaller: PackingPlan) -> None:
    """A task that has left counts as ended."""
    leading.remove(smaller)
    leading.take(report(1, TaskEvent.ENDED), report(2, TaskEvent.ENDED))
    leading.take(report(3, TaskEvent.LEFT))
    assert leading.leader.known.status().state == "finished"


def test_a_successor_prepares_what_its_predecessor_began(leading: Leading, larger: PackingPlan) -> None:
    """Reports of tasks are repeated to it. Its time limit begins again."""
    leading.ask(larger)
    leading.register(3)
    leading.clock.advance(19.0)
    successor = leading.successor()
    assert (successor.phase(), successor.members()) == (UpdatePhase.PREPARE, ((2, 3, 4), (2, 3)))
    leading.clock.advance(2.0)
    assert not phases(successor.leader.check_heartbeats())
    assert phases(successor.take(report(4))) == ["switch", "complete"]
    assert successor.members() == ((2, 3, 4), (2, 3, 4))


def test_a_successor_completes_what_its_predecessor_switched(leading: Leading, smaller: PackingPlan) -> None:
    """The number of the update is the same, so the markers that have been sent count."""
    leading.remove(smaller)
    successor = leading.successor()
    assert successor.phase() is UpdatePhase.SWITCH
    assert successor.last.plan.update == leading.last.plan.update
    with pytest.raises(HeronError, match="cannot be withdrawn in phase switch"):
        successor.leader.withdrawal_asked("too late")
    assert phases(successor.take(report(3, TaskEvent.LEFT))) == ["complete"]
    assert set(PlanIndex(successor.last.plan).key_owners("count")) == {2}
    after = successor.successor()
    assert after.last.plan.key_owners == successor.last.plan.key_owners
