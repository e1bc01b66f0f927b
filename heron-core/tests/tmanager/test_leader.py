"""The decisions of the topology manager: plans, states, ends and failures, without a socket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import HeronError
from heron.ipc.metric_names import EXECUTE_COUNT
from heron.ipc.status import LeaderStatus, StandbyStatus, TopologyStatus, Unreached
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, StreamManagerLocation, TopologyState
from heron.spi.hooks import HOOK_FACTS
from heron.spi.metricsink import Event, Metric, MetricKind, MetricsRecord, Source
from heron.tmanager.instructions import EndTopology, Instruction, NoteEvent, NotifyHook, PublishPlan, SendPlan
from heron.tmanager.leader import Leader
from heron.tmanager.process_reports import ProcessReport
from heron.tmanager.task_table import TaskEvent, TaskReport
from heron.tmanager.topology_state import Takeover
from heron_testing.fake_clock import FakeClock

LEADS = LeaderStatus(1, 77, "here", 5, 1_700_000_100.0)

T = TypeVar("T")
MakeLeader = Callable[..., Leader]


def location(container_id: int, incarnation: int = 1) -> StreamManagerLocation:
    return StreamManagerLocation(container_id, incarnation, f"ipc:///c{container_id}/p{incarnation}", "here", 10)


def only(kind: type[T], instructions: list[Instruction]) -> T:
    found = [each for each in instructions if isinstance(each, kind)]
    assert len(found) == 1, instructions
    return found[0]


def plan_of(leader: Leader) -> PhysicalPlan:
    """Both stream managers register; the plan that follows."""
    leader.stmgr_registered(location(2))
    return only(PublishPlan, leader.stmgr_registered(location(1))).plan


def ended(task_id: int, executed: int) -> tuple[TaskReport, MetricsRecord]:
    component = "word" if task_id == 1 else "count"
    source = Source("wc", 1, f"{component}-{task_id}", 1, component, task_id)
    metric = Metric(EXECUTE_COUNT, MetricKind.COUNTER, "tuples", executed)
    return TaskReport(task_id, 1, TaskEvent.ENDED), MetricsRecord(source, 100.0, (metric,))


@pytest.fixture
def make_leader(definition: TopologyDefinition, packing: PackingPlan, fake_clock: FakeClock) -> MakeLeader:
    """A leader of epoch 5; keywords replace parts of its takeover, `on_failure` is the setting."""

    def make(on_failure: str = "restart", metrics_export_s: float = 1.0, **parts: object) -> Leader:
        given = Takeover(definition, packing, "wc-1", LEADS, 1_700_000_000.0)
        settings = EngineSettings(on_failure=on_failure, silence_s=10.0, metrics_export_s=metrics_export_s)
        return Leader(replace(given, **parts), settings, fake_clock)  # type: ignore[arg-type]  # a test's shorthand

    return make


def test_the_plan_comes_when_the_last_container_has_registered(make_leader: MakeLeader) -> None:
    """In any order; before that nobody could be routed to."""
    leader = make_leader()
    assert not [each for each in leader.stmgr_registered(location(2)) if isinstance(each, PublishPlan)]
    plan = only(PublishPlan, leader.stmgr_registered(location(1))).plan
    assert (plan.version, plan.epoch, plan.state) == (1, 5, TopologyState.RUNNING)
    assert [task.task_id for task in plan.tasks] == [1, 2, 3]
    assert [stmgr.container_id for stmgr in plan.stmgrs] == [1, 2]


def test_the_same_stream_manager_again_gets_the_same_plan(make_leader: MakeLeader) -> None:
    """A reconnection is no reason for everybody to switch."""
    leader = make_leader()
    plan = plan_of(leader)
    instructions = leader.stmgr_registered(location(1))
    assert instructions == [SendPlan(1, plan)]


def test_a_new_incarnation_makes_a_new_version(make_leader: MakeLeader) -> None:
    """Peers must connect to its new socket."""
    leader = make_leader()
    plan_of(leader)
    plan = only(PublishPlan, leader.stmgr_registered(location(1, 2))).plan
    assert plan.version == 2
    assert plan.stmgrs[0].incarnation == 2


def test_strangers_and_replaced_stream_managers_are_refused(make_leader: MakeLeader) -> None:
    """Routing to a ghost would lose tuples without a trace."""
    leader = make_leader()
    leader.stmgr_registered(location(1, 2))
    with pytest.raises(HeronError, match="container 9 is not in packing plan"):
        leader.stmgr_registered(location(9))
    with pytest.raises(HeronError, match="incarnation 1 was replaced"):
        leader.stmgr_registered(location(1, 1))


def test_a_topology_that_was_submitted_deactivated_has_a_paused_first_plan(make_leader: MakeLeader) -> None:
    """Until somebody activates it; what became of that since stands in the plan, which counts more."""
    leader = make_leader(deactivated=True)
    assert leader.status().state == "paused"
    with pytest.raises(HeronError, match="is starting paused, it cannot become running"):
        leader.state_asked("running")
    assert plan_of(leader).state is TopologyState.PAUSED
    running = only(PublishPlan, leader.state_asked("running")).plan
    assert running.state is TopologyState.RUNNING
    assert make_leader(deactivated=True, plan=running).status().state == "running"
    assert only(EndTopology, make_leader(deactivated=True).state_asked("killed")).report.state == "killed"


def test_a_successor_keeps_version_and_state_under_its_own_epoch(make_leader: MakeLeader) -> None:
    """A paused topology stays paused, and nobody reconnects because the topology manager died (D7, D9)."""
    former = make_leader()
    plan_of(former)
    paused = only(PublishPlan, former.state_asked("paused")).plan
    successor = make_leader(plan=paused, leader=replace(LEADS, epoch=6))
    inherited = only(PublishPlan, successor.begin()).plan
    assert (inherited.version, inherited.epoch, inherited.state) == (2, 6, TopologyState.PAUSED)
    assert SendPlan(1, inherited) in successor.stmgr_registered(location(1))
    assert only(PublishPlan, successor.stmgr_registered(location(2, 2))).plan.version == 3


def test_pausing_and_resuming_are_plans(make_leader: MakeLeader) -> None:
    """Run-time state travels with the plan, so that whoever comes later knows it."""
    leader = make_leader()
    with pytest.raises(HeronError, match="is starting, it cannot become paused"):
        leader.state_asked("paused")
    plan_of(leader)
    assert only(PublishPlan, leader.state_asked("paused")).plan.state is TopologyState.PAUSED
    # Nothing new, and yet written: a deposed leader may remember a state that is none any more; it must not confirm it.
    assert only(PublishPlan, leader.state_asked("paused")).plan.version == 2
    assert only(PublishPlan, leader.state_asked("running")).plan.version == 3
    with pytest.raises(HeronError, match="known: 'killed', 'paused', 'running'"):
        leader.state_asked("stopped")


def test_all_tasks_ended_is_finished_with_exact_final_counts(make_leader: MakeLeader) -> None:
    """The report does not depend on the metrics path (D15)."""
    leader = make_leader()
    plan_of(leader)
    assert not [each for each in leader.task_reported(*ended(1, 0)) if isinstance(each, EndTopology)]
    leader.task_reported(*ended(2, 30))
    end = only(EndTopology, leader.task_reported(*ended(3, 12)))
    assert end.report.state == "finished"
    assert end.report.components[1].executed == 42
    assert leader.task_reported(*ended(3, 12)) == []
    assert leader.status().state == "finished"


def test_a_late_record_does_not_take_final_counts_back(make_leader: MakeLeader) -> None:
    """The metrics path is slower than the report of the end."""
    leader = make_leader()
    plan_of(leader)
    news, totals = ended(2, 30)
    leader.task_reported(news, totals)
    old = replace(totals, at_s=50.0, metrics=(replace(totals.metrics[0], value=10),))
    leader.metrics_arrived(old)
    assert leader.status().components[1].executed == 30


def test_a_successor_learns_of_ends_from_the_stream_managers(make_leader: MakeLeader) -> None:
    """Else a topology whose topology manager died would never finish."""
    former = make_leader()
    successor = make_leader(plan=plan_of(former), leader=replace(LEADS, epoch=6))
    successor.begin()
    for task_id in (1, 2):
        successor.task_reported(*ended(task_id, 1))
    assert only(EndTopology, successor.task_reported(*ended(3, 1))).report.state == "finished"


def test_ends_that_are_known_before_the_plan_finish_with_it(make_leader: MakeLeader) -> None:
    """A report may overtake the last registration."""
    leader = make_leader()
    for task_id in (1, 2, 3):
        leader.task_reported(*ended(task_id, 1))
    leader.stmgr_registered(location(1))
    only(EndTopology, leader.stmgr_registered(location(2)))


def test_a_failed_task_fails_the_topology_only_where_failure_stops_it(make_leader: MakeLeader) -> None:
    """`heron run` exits 1 at once with the reason; a submitted topology goes on (D13)."""
    news = TaskReport(2, 1, TaskEvent.FAILED, "component 'count', task 2: ValueError: no such file")
    goes_on = make_leader()
    plan_of(goes_on)
    assert not [each for each in goes_on.task_reported(news) if isinstance(each, EndTopology)]
    assert goes_on.status().errors == (news.error,)
    stops = make_leader("stop")
    plan_of(stops)
    end = only(EndTopology, stops.task_reported(news))
    assert (end.report.state, end.report.error) == ("failed", news.error)


def test_a_process_that_is_given_up_names_topology_component_and_task(make_leader: MakeLeader) -> None:
    """The one line that people get must say where to look."""
    leader = make_leader("stop")
    plan_of(leader)
    news = ProcessReport(2, "count-3", 3, 1, TaskEvent.GIVEN_UP, "killed by SIGKILL", 8)
    error = only(EndTopology, leader.process_reported(news)).report.error
    assert error == (
        "topology 'wc', component 'count', task 3 (container 2) died too often and is left down: killed by SIGKILL"
    )


def test_a_task_s_own_reason_is_better_than_its_executors(make_leader: MakeLeader) -> None:
    """The user's file and line stay, instead of an exit code."""
    leader = make_leader()
    plan_of(leader)
    leader.task_reported(TaskReport(3, 1, TaskEvent.FAILED, "wc.py, line 7: ValueError"))
    leader.process_reported(ProcessReport(2, "count-3", 3, 1, TaskEvent.DIED, "exit code 3", 0))
    status = leader.status()
    assert status.errors == ("wc.py, line 7: ValueError",)
    assert (status.tasks[2].state, status.tasks[2].last_error) == ("restarting", "wc.py, line 7: ValueError")


def test_an_engine_process_that_dies_is_told_too(make_leader: MakeLeader) -> None:
    """It has no task, so it is named with its container; the text is the same each time, so it is shown once."""
    leader = make_leader()
    news = ProcessReport(1, "stmgr", 0, 1, TaskEvent.DIED, "killed by SIGKILL", 1)
    leader.process_reported(news)
    leader.process_reported(replace(news, restarts=2))
    assert leader.status().errors == ("stmgr of container 1 died and is started again: killed by SIGKILL",)


def test_killing_ends_it_in_any_state_once(make_leader: MakeLeader) -> None:
    """Also while it is still starting."""
    leader = make_leader()
    assert only(EndTopology, leader.state_asked("killed")).report.state == "killed"
    with pytest.raises(HeronError, match="is killed, it cannot become killed"):
        leader.state_asked("killed")
    assert leader.ended


def test_a_successor_after_the_end_only_says_stop(make_leader: MakeLeader) -> None:
    """A topology manager that died between the report and the last stop."""
    report = TopologyStatus("wc", "wc-1", "finished", 1.0)
    leader = make_leader(report=report)
    assert only(EndTopology, leader.begin()).report == report
    assert not [each for each in leader.stmgr_registered(location(1)) if isinstance(each, PublishPlan)]
    assert leader.status() == report


def test_silence_is_named_for_as_long_as_it_lasts(make_leader: MakeLeader, fake_clock: FakeClock) -> None:
    """A host that hangs shows in the errors; nothing is moved because of it."""
    leader = make_leader()
    plan_of(leader)
    fake_clock.advance(5.0)
    leader.stmgr_heard(2)
    fake_clock.advance(6.0)
    leader.tick()
    leader.tick()
    assert leader.status().errors == ("the stream manager of container 1 is silent; its host or network may hang",)
    assert leader.status().unreached == (Unreached(1, 0, 11.0), Unreached(2, 0, 6.0))
    leader.stmgr_heard(1)
    assert leader.status().unreached == (Unreached(2, 0, 6.0),)
    assert leader.status().errors == ()


def test_back_pressure_names_the_culprit_for_as_long_as_anybody_sees_it(
    make_leader: MakeLeader, fake_clock: FakeClock
) -> None:
    """Two stream managers may hold data for the same task."""
    leader = make_leader()
    started = only(NotifyHook, leader.pressure_reported(3, 1, on=True, cause="the task is slow"))
    assert (started.hook, started.facts["task_id"]) == ("heron_backpressure_started", 3)
    assert started.facts.keys() == HOOK_FACTS["heron_backpressure_started"]
    assert leader.pressure_reported(3, 2, on=True) == []
    assert leader.status().backpressure[0].component == "count"
    assert leader.status().backpressure[0].since_s == fake_clock.wall_s()
    leader.pressure_reported(3, 2, on=True, cause="the task is not running")
    assert leader.status().backpressure[0].cause == "the task is not running"
    fake_clock.advance(2.0)
    assert leader.pressure_reported(3, 1, on=False) == []
    lifted = only(NotifyHook, leader.pressure_reported(3, 2, on=False))
    assert lifted.facts["duration_s"] == 2.0
    assert leader.status().backpressure == ()


def test_pause_and_resume_are_announced_once_each(make_leader: MakeLeader) -> None:
    """Observers hear what people did to a topology, not that a plan has another number."""
    leader = make_leader()
    plan_of(leader)
    for asked, wanted in (("paused", "heron_topology_deactivated"), ("running", "heron_topology_activated")):
        hooks = [each.hook for each in leader.state_asked(asked) if isinstance(each, NotifyHook)]
        assert hooks == ["heron_plan_changed", wanted]
    again = [each.hook for each in leader.stmgr_registered(location(1, 2)) if isinstance(each, NotifyHook)]
    assert again == ["heron_plan_changed"]


def test_a_new_stream_manager_takes_its_predecessors_pressure_back(make_leader: MakeLeader) -> None:
    """Its buffers died with it."""
    leader = make_leader()
    plan_of(leader)
    leader.pressure_reported(3, 1, on=True)
    only(NotifyHook, [each for each in leader.stmgr_registered(location(1, 2)) if _lifts(each)])
    assert leader.status().backpressure == ()


def test_user_errors_reach_people_by_the_metrics(make_leader: MakeLeader) -> None:
    """An exception in process fails its tuple and the instance goes on, but it is shown (D13)."""
    leader = make_leader()
    event = Event("e-1", "user-error", 1.0, "task-2", "", {"message": "wc.py, line 3: KeyError"})
    leader.metrics_arrived(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), 1.0, (), (event,)))
    assert leader.status().errors == ("wc.py, line 3: KeyError",)
    assert leader.status().tasks[1].last_error == "wc.py, line 3: KeyError"


def _lifts(instruction: Instruction) -> bool:
    return isinstance(instruction, NotifyHook) and instruction.hook == "heron_backpressure_ended"


def test_a_take_over_is_told_and_a_first_leader_is_none(make_leader: MakeLeader) -> None:
    """Who looks at the events afterwards sees when the leadership moved, and to whom."""
    assert make_leader().begin() == []
    event = only(NoteEvent, make_leader(former_epoch=3).begin())
    assert (event.name, event.subject) == ("tmanager-took-over", "tmanager-1")
    assert event.attributes == {"epoch": "5", "former": "3", "pid": "77"}


def test_the_status_says_who_leads_and_who_stands_by(make_leader: MakeLeader) -> None:
    """The leader is where it is, container 0 or not; a standby that died is shown as such."""
    leader = make_leader()
    for container_id, pid, event in ((0, 70, TaskEvent.STARTED), (1, 77, TaskEvent.STARTED), (2, 0, TaskEvent.DIED)):
        leader.executor_registered(container_id, 1, 60 + container_id, "here")
        leader.process_reported(ProcessReport(container_id, "tmanager", 0, 1 << 16, event, "killed", pid=pid))
    status = leader.status()
    assert status.leader == LEADS
    assert status.standbys == (StandbyStatus(0, 70, "here", "running"), StandbyStatus(2, 0, "here", "restarting"))


def test_a_new_leader_misses_who_was_in_the_plan_and_does_not_come_back(
    make_leader: MakeLeader, fake_clock: FakeClock
) -> None:
    """Its host may have been cut off together with the former leader; and an older one of it is still refused."""
    former = make_leader()
    plan_of(former)
    plan = only(PublishPlan, former.stmgr_registered(location(2, 3))).plan
    successor = make_leader(plan=plan, leader=replace(LEADS, epoch=6))
    successor.begin()
    successor.stmgr_registered(location(1))
    with pytest.raises(HeronError, match="incarnation 2 was replaced"):
        successor.stmgr_registered(location(2, 2))
    fake_clock.advance(8.0)
    successor.stmgr_heard(1)
    assert successor.status().unreached == (Unreached(2, 0, 8.0),)
    fake_clock.advance(3.0)
    assert only(NoteEvent, successor.tick()).subject == "stmgr-2"


@pytest.mark.parametrize("period_s", [1.0, 20.0, 120.0])
def test_rates_in_the_status_last_from_report_to_report(
    make_leader: MakeLeader, fake_clock: FakeClock, period_s: float
) -> None:
    """With a long export period too: the rate is that between the last two reports, until reports stay away."""
    leader = make_leader(metrics_export_s=period_s)
    source = Source("wc", 1, "count-2", 65537, "count", 2)
    for number in range(3):
        count = Metric(EXECUTE_COUNT, MetricKind.COUNTER, "tuples", number * 50 * period_s)
        leader.metrics_arrived(MetricsRecord(source, 1000.0 + number * period_s, (count,)))
        fake_clock.advance(period_s * 0.99)
    assert leader.status().components[1].rate_per_s == pytest.approx(50.0)
    fake_clock.advance(max(10.0, 2.1 * period_s))
    assert leader.status().components[1].rate_per_s == 0.0


@pytest.mark.parametrize("attached", [False, True])
def test_observers_get_the_end_of_a_submitted_topology_once(make_leader: MakeLeader, attached: bool) -> None:
    """`heron run` waits for the end, and notifies the observers itself. A leader that takes over is silent too."""
    leader = make_leader(attached=attached)
    plan_of(leader)
    instructions = [each for task_id in (1, 2, 3, 3) for each in leader.task_reported(*ended(task_id, 1))]
    hooks = [each for each in instructions if isinstance(each, NotifyHook)]
    facts = {"topology": "wc", "topology_id": "wc-1", "state": "finished"}
    assert hooks == ([] if attached else [NotifyHook("heron_topology_ended", facts)])
    assert facts.keys() == HOOK_FACTS["heron_topology_ended"]
    after = only(EndTopology, instructions).report
    successor = make_leader(report=after)
    assert not [each for each in successor.begin() if isinstance(each, NotifyHook)]


def test_observers_get_a_failure_from_the_leader_and_a_kill_from_the_command(make_leader: MakeLeader) -> None:
    """`heron kill` notifies the observers itself."""
    failing = make_leader("stop")
    plan_of(failing)
    failed = failing.task_reported(TaskReport(2, 1, TaskEvent.FAILED, "no"))
    assert only(NotifyHook, failed).facts["state"] == "failed"
    killed = make_leader()
    plan_of(killed)
    assert not [each for each in killed.state_asked("killed") if isinstance(each, NotifyHook)]
