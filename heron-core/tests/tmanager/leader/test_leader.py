"""The decisions of the topology manager: plans, states, ends and failures, without a socket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from msgspec.structs import replace as replaced

from heron.api.definition import TopologyDefinition
from heron.errors import HeronError
from heron.ipc.documents.metric_names import EXECUTE_COUNT
from heron.ipc.documents.status import (
    LeaderStatus,
    StandbyStatus,
    TopologyStatus,
    Unreached,
    decode_status,
    encode_status,
)
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, StreamManagerLocation, TopologyState
from heron.spi.hooks import HOOK_FACTS
from heron.spi.metricsink import Event, Metric, MetricKind, MetricsRecord, Source
from heron.tmanager.leader.instructions import EndTopology, Instruction, NoteEvent, NotifyHook, PublishPlan, SendPlan
from heron.tmanager.leader.leader import Leader
from heron.tmanager.leader.long_call_reports import LongCallReport
from heron.tmanager.leader.process_reports import ProcessReport
from heron.tmanager.leader.task_table import TaskEvent, TaskReport
from heron.tmanager.leader.topology_state import Takeover
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
    """The order does not matter. Without all stream managers, tuples could not be routed."""
    leader = make_leader()
    assert not [each for each in leader.stmgr_registered(location(2)) if isinstance(each, PublishPlan)]
    plan = only(PublishPlan, leader.stmgr_registered(location(1))).plan
    assert (plan.version, plan.epoch, plan.state) == (1, 5, TopologyState.RUNNING)
    assert [task.task_id for task in plan.tasks] == [1, 2, 3]
    assert [stmgr.container_id for stmgr in plan.stmgrs] == [1, 2]


def test_the_same_stream_manager_again_gets_the_same_plan(make_leader: MakeLeader) -> None:
    """A reconnection does not change the plan."""
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


def test_other_ports_of_all_containers_make_one_plan(make_leader: MakeLeader) -> None:
    """Keys rotate everywhere at once, and each plan goes to every container."""
    leader = make_leader()
    plan = plan_of(leader)
    leader.known.keys.take(1, ("old",), moved=True)
    for container_id in (1, 2):
        other = replace(location(container_id), next_endpoint="tcp://new", next_server_key="new")
        assert leader.stmgr_registered(other) == [SendPlan(container_id, plan)]
    assert leader.known.status().keys, "what a process has reported stays true"
    published = only(PublishPlan, leader.check_heartbeats()).plan
    assert (published.version, {each.next_endpoint for each in published.stmgrs}) == (2, {"tcp://new"})
    assert not [each for each in leader.check_heartbeats() if isinstance(each, PublishPlan)]
    leader.stmgr_registered(location(1, 2))
    assert leader.known.status().keys == ()


def test_unknown_and_replaced_stream_managers_are_refused(make_leader: MakeLeader) -> None:
    """Tuples that are routed to a dead stream manager would be lost."""
    leader = make_leader()
    leader.stmgr_registered(location(1, 2))
    with pytest.raises(HeronError, match="container 9 is not in packing plan"):
        leader.stmgr_registered(location(9))
    with pytest.raises(HeronError, match="incarnation 1 was replaced"):
        leader.stmgr_registered(location(1, 1))


def test_a_topology_that_was_submitted_deactivated_has_a_paused_first_plan(make_leader: MakeLeader) -> None:
    """A user activates it later. The state in a plan takes precedence over that of the submission."""
    leader = make_leader(deactivated=True)
    assert leader.known.status().state == "paused"
    with pytest.raises(HeronError, match="is starting paused, it cannot become running"):
        leader.state_asked("running")
    assert plan_of(leader).state is TopologyState.PAUSED
    running = only(PublishPlan, leader.state_asked("running")).plan
    assert running.state is TopologyState.RUNNING
    assert make_leader(deactivated=True, plan=running).known.status().state == "running"
    assert only(EndTopology, make_leader(deactivated=True).state_asked("killed")).report.state == "killed"


def test_a_new_leader_keeps_version_and_state_under_its_own_epoch(make_leader: MakeLeader) -> None:
    """A paused topology stays paused, and no process reconnects because the topology manager died."""
    former = make_leader()
    plan_of(former)
    paused = only(PublishPlan, former.state_asked("paused")).plan
    successor = make_leader(plan=paused, leader=replaced(LEADS, epoch=6))
    taken_over = only(PublishPlan, successor.begin()).plan
    assert (taken_over.version, taken_over.epoch, taken_over.state) == (2, 6, TopologyState.PAUSED)
    assert SendPlan(1, taken_over) in successor.stmgr_registered(location(1))
    assert only(PublishPlan, successor.stmgr_registered(location(2, 2))).plan.version == 3


def test_registrations_with_a_new_leader_keep_its_plan_until_something_changes(make_leader: MakeLeader) -> None:
    """The plan is not made again for each registration, but every change still makes one."""
    former = plan_of(make_leader())
    leader = make_leader(plan=former, leader=replaced(LEADS, epoch=6))
    plan = only(PublishPlan, leader.begin()).plan
    for container_id in (1, 2, 1):
        assert only(SendPlan, leader.stmgr_registered(location(container_id))).plan is plan
    assert only(PublishPlan, leader.state_asked("paused")).plan.version == 2
    assert only(PublishPlan, leader.state_asked("running")).plan.version == 3
    changes = {"": {"topology.message.timeout.secs": 77}}
    assert only(PublishPlan, leader.config_asked(changes)).plan.version == 4
    changed = only(PublishPlan, leader.stmgr_registered(location(2, 2))).plan
    assert changed.version == 5
    assert only(SendPlan, leader.stmgr_registered(location(2, 2))).plan is changed


def test_pausing_and_resuming_are_plans(make_leader: MakeLeader) -> None:
    """The plan carries the state, so processes that register later get it."""
    leader = make_leader()
    with pytest.raises(HeronError, match="is starting, it cannot become paused"):
        leader.state_asked("paused")
    plan_of(leader)
    assert only(PublishPlan, leader.state_asked("paused")).plan.state is TopologyState.PAUSED
    # The repeated command is written too: a deposed leader has an outdated state, and must not confirm it.
    assert only(PublishPlan, leader.state_asked("paused")).plan.version == 2
    assert only(PublishPlan, leader.state_asked("running")).plan.version == 3
    with pytest.raises(HeronError, match="known: 'killed', 'paused', 'running'"):
        leader.state_asked("stopped")


def test_all_tasks_ended_is_finished_with_exact_final_counts(make_leader: MakeLeader) -> None:
    """The final counts come with the reports of the tasks, not over the metrics managers."""
    leader = make_leader()
    plan_of(leader)
    assert not [each for each in leader.task_reported(*ended(1, 0)) if isinstance(each, EndTopology)]
    leader.task_reported(*ended(2, 30))
    end = only(EndTopology, leader.task_reported(*ended(3, 12)))
    assert end.report.state == "finished"
    assert end.report.components[1].executed == 42
    assert leader.task_reported(*ended(3, 12)) == []
    assert leader.known.status().state == "finished"


def test_a_late_record_does_not_change_final_counts(make_leader: MakeLeader) -> None:
    """A record over the metrics manager is slower than the report of the task."""
    leader = make_leader()
    plan_of(leader)
    report, totals = ended(2, 30)
    leader.task_reported(report, totals)
    old = replace(totals, at_s=50.0, metrics=(replace(totals.metrics[0], value=10),))
    leader.known.metrics_arrived(old)
    assert leader.known.status().components[1].executed == 30


def test_a_new_leader_gets_ended_tasks_from_the_stream_managers(make_leader: MakeLeader) -> None:
    """Otherwise a topology whose topology manager died would never finish."""
    former = make_leader()
    successor = make_leader(plan=plan_of(former), leader=replaced(LEADS, epoch=6))
    successor.begin()
    for task_id in (1, 2):
        successor.task_reported(*ended(task_id, 1))
    assert only(EndTopology, successor.task_reported(*ended(3, 1))).report.state == "finished"


def test_a_topology_whose_tasks_ended_before_its_plan_finishes_with_it(make_leader: MakeLeader) -> None:
    """A report may overtake the last registration."""
    leader = make_leader()
    for task_id in (1, 2, 3):
        leader.task_reported(*ended(task_id, 1))
    leader.stmgr_registered(location(1))
    only(EndTopology, leader.stmgr_registered(location(2)))


def test_a_failed_task_fails_the_topology_only_with_stop_on_failure(make_leader: MakeLeader) -> None:
    """`heron run` exits with 1 and the reason; a submitted topology goes on."""
    report = TaskReport(2, 1, TaskEvent.FAILED, "component 'count', task 2: ValueError: no such file")
    goes_on = make_leader()
    plan_of(goes_on)
    assert not [each for each in goes_on.task_reported(report) if isinstance(each, EndTopology)]
    assert goes_on.known.status().errors == (report.error,)
    stops = make_leader("stop")
    plan_of(stops)
    end = only(EndTopology, stops.task_reported(report))
    assert (end.report.state, end.report.error) == ("failed", report.error)


def test_a_process_that_is_given_up_names_topology_component_and_task(make_leader: MakeLeader) -> None:
    """The message says where to look."""
    leader = make_leader("stop")
    plan_of(leader)
    report = ProcessReport(2, "count-3", 3, 1, TaskEvent.GIVEN_UP, "killed by SIGKILL", 8)
    error = only(EndTopology, leader.process_reported(report)).report.error
    assert error == (
        "topology 'wc', component 'count', task 3 (container 2) died too often and is given up: killed by SIGKILL"
    )


def test_the_reason_of_a_task_takes_precedence_over_that_of_its_executor(make_leader: MakeLeader) -> None:
    """The user's file and line are more useful than an exit code."""
    leader = make_leader()
    plan_of(leader)
    leader.task_reported(TaskReport(3, 1, TaskEvent.FAILED, "wc.py, line 7: ValueError"))
    leader.process_reported(ProcessReport(2, "count-3", 3, 1, TaskEvent.DIED, "exit code 3", 0))
    status = leader.known.status()
    assert status.errors == ("wc.py, line 7: ValueError",)
    assert (status.tasks[2].state, status.tasks[2].last_error) == ("restarting", "wc.py, line 7: ValueError")


def test_the_death_of_an_engine_process_is_an_error_too(make_leader: MakeLeader) -> None:
    """The text names its container. It is the same at each death, so it is shown once."""
    leader = make_leader()
    report = ProcessReport(1, "stmgr", 0, 1, TaskEvent.DIED, "killed by SIGKILL", 1)
    leader.process_reported(report)
    leader.process_reported(replace(report, restarts=2))
    assert leader.known.status().errors == ("stmgr of container 1 died and is restarted: killed by SIGKILL",)


def test_a_kill_ends_a_topology_in_any_state_once(make_leader: MakeLeader) -> None:
    """A starting topology can be killed too."""
    leader = make_leader()
    assert only(EndTopology, leader.state_asked("killed")).report.state == "killed"
    with pytest.raises(HeronError, match="is killed, it cannot become killed"):
        leader.state_asked("killed")
    assert leader.known.ended


def test_a_leader_after_the_end_only_stops_the_containers(make_leader: MakeLeader) -> None:
    """The former leader died between its report and the last order to stop."""
    report = TopologyStatus("wc", "wc-1", "finished", 1.0)
    leader = make_leader(report=report)
    assert only(EndTopology, leader.begin()).report == report
    assert not [each for each in leader.stmgr_registered(location(1)) if isinstance(each, PublishPlan)]
    assert leader.known.status() == report


def test_the_status_names_a_silent_stream_manager_until_it_reports_again(
    make_leader: MakeLeader, fake_clock: FakeClock
) -> None:
    """A host that hangs is an error in the status; its tasks stay where they are."""
    leader = make_leader()
    plan_of(leader)
    fake_clock.advance(5.0)
    leader.stmgr_heard(2)
    fake_clock.advance(6.0)
    leader.check_heartbeats()
    leader.check_heartbeats()
    assert leader.known.status().errors == (
        "the stream manager of container 1 is silent; its host or network may hang",
    )
    assert leader.known.status().unreached == (Unreached(1, 0, 11.0), Unreached(2, 0, 6.0))
    leader.stmgr_heard(1)
    assert leader.known.status().unreached == (Unreached(2, 0, 6.0),)
    assert leader.known.status().errors == ()


def test_a_task_is_a_culprit_until_every_stream_manager_has_withdrawn_its_report(
    make_leader: MakeLeader, fake_clock: FakeClock
) -> None:
    """Several stream managers may hold data for the same task."""
    leader = make_leader()
    started = only(NotifyHook, leader.pressure_reported(3, 1, on=True, cause="the task is slow"))
    assert (started.hook, started.facts["task_id"]) == ("heron_backpressure_started", 3)
    assert started.facts.keys() == HOOK_FACTS["heron_backpressure_started"]
    assert leader.pressure_reported(3, 2, on=True) == []
    assert leader.known.status().backpressure[0].component == "count"
    assert leader.known.status().backpressure[0].since_s == fake_clock.wall_s()
    leader.pressure_reported(3, 2, on=True, cause="the task is not running")
    assert leader.known.status().backpressure[0].cause == "the task is not running"
    fake_clock.advance(2.0)
    assert leader.pressure_reported(3, 1, on=False) == []
    lifted = only(NotifyHook, leader.pressure_reported(3, 2, on=False))
    assert lifted.facts["duration_s"] == 2.0
    assert leader.known.status().backpressure == ()


def test_observers_get_one_event_for_a_pause_and_one_for_a_resume(make_leader: MakeLeader) -> None:
    """Other changes of the plan are not such events."""
    leader = make_leader()
    plan_of(leader)
    for asked, wanted in (("paused", "heron_topology_deactivated"), ("running", "heron_topology_activated")):
        hooks = [each.hook for each in leader.state_asked(asked) if isinstance(each, NotifyHook)]
        assert hooks == ["heron_plan_changed", wanted]
    again = [each.hook for each in leader.stmgr_registered(location(1, 2)) if isinstance(each, NotifyHook)]
    assert again == ["heron_plan_changed"]


def test_a_restarted_stream_manager_withdraws_its_former_reports_of_back_pressure(make_leader: MakeLeader) -> None:
    """Its buffers are gone."""
    leader = make_leader()
    plan_of(leader)
    leader.pressure_reported(3, 1, on=True)
    only(NotifyHook, [each for each in leader.stmgr_registered(location(1, 2)) if _lifts(each)])
    assert leader.known.status().backpressure == ()


def test_errors_of_user_code_arrive_with_the_metrics(make_leader: MakeLeader) -> None:
    """An exception in `process` fails the tuple and is shown, and the instance goes on."""
    leader = make_leader()
    event = Event("e-1", "user-error", 1.0, "task-2", "", {"message": "wc.py, line 3: KeyError"})
    leader.known.metrics_arrived(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), 1.0, (), (event,)))
    assert leader.known.status().errors == ("wc.py, line 3: KeyError",)
    assert leader.known.status().tasks[1].last_error == "wc.py, line 3: KeyError"
    count = Metric("user-error-count", MetricKind.COUNTER, "errors", 140, {"error": "process: KeyError"})
    leader.known.metrics_arrived(MetricsRecord(Source("wc", 1, "count-2", 1, "count", 2), 2.0, (count,)))
    (counted,) = decode_status(encode_status(leader.known.status())).user_errors
    assert (counted.error, counted.tasks) == ("process: KeyError", {2: 140})


def _lifts(instruction: Instruction) -> bool:
    return isinstance(instruction, NotifyHook) and instruction.hook == "heron_backpressure_ended"


def test_a_takeover_is_an_event_and_a_first_leader_is_not(make_leader: MakeLeader) -> None:
    """The events show when the leadership moved, and where."""
    assert make_leader().begin() == []
    event = only(NoteEvent, make_leader(former_epoch=3).begin())
    assert (event.name, event.subject) == ("tmanager-took-over", "tmanager-1")
    assert event.attributes == {"epoch": "5", "former": "3", "pid": "77"}


def test_the_status_names_the_leader_and_the_standbys(make_leader: MakeLeader) -> None:
    """The leader may be in any container; a dead standby is shown as restarting."""
    leader = make_leader()
    for container_id, pid, event in ((0, 70, TaskEvent.STARTED), (1, 77, TaskEvent.STARTED), (2, 0, TaskEvent.DIED)):
        leader.executor_registered(container_id, 1, 60 + container_id, "here")
        leader.process_reported(ProcessReport(container_id, "tmanager", 0, 1 << 16, event, "killed", pid=pid))
    status = leader.known.status()
    assert status.leader == LEADS
    assert status.standbys == (StandbyStatus(0, 70, "here", "running"), StandbyStatus(2, 0, "here", "restarting"))


def test_a_new_leader_reports_stream_managers_that_do_not_return(
    make_leader: MakeLeader, fake_clock: FakeClock
) -> None:
    """Their host may have been cut off together with the former leader. Older incarnations are still refused."""
    former = make_leader()
    plan_of(former)
    plan = only(PublishPlan, former.stmgr_registered(location(2, 3))).plan
    successor = make_leader(plan=plan, leader=replaced(LEADS, epoch=6))
    successor.begin()
    successor.stmgr_registered(location(1))
    with pytest.raises(HeronError, match="incarnation 2 was replaced"):
        successor.stmgr_registered(location(2, 2))
    fake_clock.advance(8.0)
    successor.stmgr_heard(1)
    assert successor.known.status().unreached == (Unreached(2, 0, 8.0),)
    fake_clock.advance(3.0)
    assert only(NoteEvent, successor.check_heartbeats()).subject == "stmgr-2"


@pytest.mark.parametrize("period_s", [1.0, 20.0, 120.0])
def test_rates_in_the_status_hold_until_reports_are_missing(
    make_leader: MakeLeader, fake_clock: FakeClock, period_s: float
) -> None:
    """With any export period, the rate is that between the last two reports."""
    leader = make_leader(metrics_export_s=period_s)
    source = Source("wc", 1, "count-2", 65537, "count", 2)
    for number in range(3):
        count = Metric(EXECUTE_COUNT, MetricKind.COUNTER, "tuples", number * 50 * period_s)
        leader.known.metrics_arrived(MetricsRecord(source, 1000.0 + number * period_s, (count,)))
        fake_clock.advance(period_s * 0.99)
    assert leader.known.status().components[1].rate_per_s == pytest.approx(50.0)
    fake_clock.advance(max(10.0, 2.1 * period_s))
    assert leader.known.status().components[1].rate_per_s == 0.0


@pytest.mark.parametrize("attached", [False, True])
def test_observers_get_the_end_of_a_submitted_topology_once(make_leader: MakeLeader, attached: bool) -> None:
    """`heron run` waits for the end, and notifies the observers itself. A leader that takes over is silent too."""
    leader = make_leader(attached=attached)
    plan_of(leader)
    instructions = [each for task_id in (1, 2, 3, 3) for each in leader.task_reported(*ended(task_id, 1))]
    hooks = [each for each in instructions if isinstance(each, NotifyHook)]
    facts: dict[str, object] = {"topology": "wc", "topology_id": "wc-1", "state": "finished"}
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


def test_a_long_call_is_in_the_status_until_its_process_ends(make_leader: MakeLeader) -> None:
    """The task is known by its component. A process that dies in the call cannot report its end."""
    leader = make_leader()
    note = only(NoteEvent, leader.long_call_reported(LongCallReport(3, 1, True, "process", "wc.py, line 7", 10.0)))
    assert (note.name, note.subject, note.attributes["component"]) == ("long-call", "task-3", "count")
    assert [(each.component, each.task_id) for each in leader.known.status().long_calls] == [("count", 3)]
    leader.process_reported(ProcessReport(2, "count-3", 3, 1, TaskEvent.DIED, "killed"))
    assert leader.known.status().long_calls == ()
    assert leader.long_call_reported(LongCallReport(9, 1, True, "process", "wc.py, line 7", 10.0)) == []


@pytest.mark.parametrize("task_id", [0, -1, 99])
def test_a_question_for_no_task_is_refused(make_leader: MakeLeader, task_id: int) -> None:
    """Any client may ask, and an error that is not of the tree would end the topology manager. Elsewhere 0 is all."""
    leader = make_leader()
    plan_of(leader)
    with pytest.raises(HeronError, match=r"is not the id of a task; give one|is unknown; known: 1, 2, 3"):
        leader.known.asked_task("", task_id)
