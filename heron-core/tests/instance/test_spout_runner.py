"""A spout on its task thread, without sockets: its emits, the calls of its methods, its end."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from heron.api.context import TopologyContext
from heron.api.definition import GroupingKind
from heron.api.spout import Spout
from heron.api.updatable import IUpdatable
from heron.instance.pacing import SourceBacklog
from heron.instance.queues.data_queue import PlanReceived, SessionOpened
from heron.ipc import control_pb2 as pb
from heron.planner.physical_plan import PhysicalPlan, PlanUpdate, TopologyState, UpdatePhase
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts.spout_bench import SpoutBench as Bench
from parts.spout_bench import spout_plan as plan_of


def updating(version: int, phase: UpdatePhase, added: int) -> PhysicalPlan:
    """A plan with an update that adds this task."""
    return replace(plan_of(version), update=PlanUpdate(1, phase, "target", added=(added,)))


class Counting(Spout):
    """Emits three numbers, one per call, and ends."""

    outputs = ("v",)
    count = 0

    def next_tuple(self) -> None:
        if self.count < 3:
            self.emit([self.count], tup_id=f"id-{self.count}")
            self.count += 1
        else:
            self.end()


def ended(bench: Bench) -> bool:
    return bench.runner.ended


def test_a_spout_ends_after_its_tuples() -> None:
    """The order is data, marker, report."""
    bench = Bench(Counting, ended)
    bench.runner.run(ended=False)
    running, *_, marker, report = bench.output()
    assert running == pb.TASK_PHASE_RUNNING
    assert bench.rows() == [0, 1, 2]
    assert marker == (1, (2,), "END")
    assert report == pb.TASK_PHASE_ENDED


class Acked(Counting):
    """Overrides `ack`."""

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.acked: list[object] = []

    def ack(self, tup_id: object) -> None:
        self.acked.append(tup_id)


def test_at_most_once_a_tuple_is_acked_when_it_is_emitted() -> None:
    """A heronpy spout that counts its acks must not wait forever."""
    bench = Bench(Acked, ended)
    bench.runner.run(ended=False)
    component = bench.runner.component
    assert isinstance(component, Acked)
    assert component.acked == ["id-0", "id-1", "id-2"]
    assert bench.task.metrics.acked == 3


class Failing(Counting):
    """Fails once between two tuples."""

    failed = False

    def next_tuple(self) -> None:
        if self.count == 1 and not self.failed:
            self.failed = True
            raise ValueError
        super().next_tuple()


def test_a_failed_call_is_reported_and_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """It is repeated after a wait, and no emitted tuple is lost."""
    bench = Bench(Failing, ended)
    bench.runner.run(ended=False)
    assert bench.rows() == [0, 1, 2]
    assert "it is called again after 0.1 s" in capsys.readouterr().err


def test_a_task_that_had_ended_only_reports_it_again() -> None:
    """Its component is never constructed. Each new session gets the marker and the report."""
    bench = Bench(Counting, lambda bench: len(bench.gateway.data_out.items) >= 4)
    bench.gateway.data_in.put(SessionOpened(ended=True))
    bench.runner.run(ended=True)
    assert bench.output() == [(1, (2,), "END"), pb.TASK_PHASE_ENDED] * 2


class Endless(Spout):
    """Emits forever."""

    outputs = ("v",)
    paused = 0

    def next_tuple(self) -> None:
        self.emit(["x"])

    def deactivate(self) -> None:
        self.paused += 1


def test_segments_carry_the_plan_version_of_their_emits() -> None:
    """The version identifies data for a task of the old plan."""
    bench = Bench(Endless, lambda bench: bench.task.paused)
    bench.gateway.data_in.put(PlanReceived(plan_of(2, sinks=(2, 3))))
    bench.gateway.data_in.put(PlanReceived(plan_of(3, TopologyState.PAUSED, sinks=(2, 3))))
    bench.runner.run(ended=False)
    routes = {each[:2] for each in bench.output() if isinstance(each, tuple)}
    assert (1, (2,)) in routes
    assert routes <= {(1, (2,)), (2, (2, 3)), (3, (2, 3))}
    component = bench.runner.component
    assert isinstance(component, Endless)
    assert component.paused == 1


class Slow(Spout):
    """Blocks in each call before its emits, so that the gateway always flushes."""

    outputs = ("v",)
    bench: ClassVar[Bench]
    calls: list[str]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.calls = []

    def next_tuple(self) -> None:
        if len(self.calls) == 1000:
            return  # a call without emits always returns to the loop
        self.calls.append("next_tuple")
        self.bench.runner.emitter.flush_meanwhile()
        for _ in range(1 + len(self.calls) % 2):
            self.emit([len(self.calls)])
        if len(self.calls) == 20:
            self.bench.gateway.data_in.put(PlanReceived(plan_of(3, TopologyState.PAUSED)))

    def activate(self) -> None:
        self.calls.append("activate")

    def deactivate(self) -> None:
        self.calls.append("deactivate")


def test_a_spout_whose_calls_block_is_paused() -> None:
    """A spout that waits for a socket may emit only a few tuples per second, and must still handle commands."""
    bench = Bench(Slow, lambda bench: bench.task.paused)
    Slow.bench = bench
    bench.runner.run(ended=False)
    component = bench.runner.component
    assert isinstance(component, Slow)
    assert component.calls[-1] == "deactivate"
    assert len(component.calls) < 25


def test_a_spout_that_starts_in_a_paused_topology_is_deactivated() -> None:
    """As in Heron, it is initialised, then deactivated, and activated when the topology resumes."""
    bench = Bench(Slow, lambda bench: bool(bench.output()[1:]), plan_of(1, TopologyState.PAUSED))
    Slow.bench = bench
    bench.gateway.data_in.put(PlanReceived(plan_of(2)))
    bench.runner.run(ended=False)
    component = bench.runner.component
    assert isinstance(component, Slow)
    assert component.calls[:3] == ["deactivate", "activate", "next_tuple"]


def test_an_added_spout_emits_nothing_before_the_switch() -> None:
    """Rows of an update that is withdrawn would stay. It is RUNNING, or the switch would not come."""
    bench = Bench(Slow, lambda bench: bool(bench.rows()), updating(1, UpdatePhase.PREPARE, 1))
    Slow.bench = bench
    bench.gateway.data_in.put(PlanReceived(updating(2, UpdatePhase.SWITCH, 1)))
    bench.runner.run(ended=False)
    component = bench.runner.component
    assert isinstance(component, Slow)
    assert component.calls[:3] == ["deactivate", "activate", "next_tuple"]
    assert bench.output()[0] == pb.TASK_PHASE_RUNNING
    other = Bench(Slow, lambda _: True, updating(1, UpdatePhase.PREPARE, 2))
    assert not other.task.paused, "only added spouts wait"


def test_a_throttled_spout_is_not_called() -> None:
    """Its emits would only fill its own queue. Commands and metrics continue meanwhile."""
    looks = itertools.count()

    def until(bench: Bench) -> bool:
        held = bench.gateway.throttle
        if next(looks) == 3:
            assert not bench.rows(), "it was called"
            held.change(7, on=False)
            bench.gateway.data_in.sleeper.wake()
        return not held.culprits and bool(bench.rows())

    bench = Bench(Endless, until)
    bench.gateway.throttle.begin([7])
    for _ in range(3):
        bench.gateway.data_in.put(PlanReceived(plan_of()))  # each ends a wait at once
    bench.runner.run(ended=False)
    assert bench.gateway.throttle.total_s() > 0
    assert "held-back-s" in {metric.name for metric in bench.task.telemetry.record(bench.runner.emitter).metrics}


def test_an_older_plan_is_ignored() -> None:
    """A plan may arrive twice when the topology manager changes."""
    bench = Bench(Endless, lambda bench: bench.gateway.data_in.peek_command() is None and bool(bench.output()[1:]))
    bench.gateway.data_in.put(PlanReceived(plan_of(5)))
    bench.gateway.data_in.put(PlanReceived(plan_of(4, TopologyState.PAUSED)))
    bench.runner.run(ended=False)
    assert bench.task.index.plan.version == 5
    assert not bench.task.paused


class Partitioned(Spout, IUpdatable):
    """Notes the number of its tasks when it starts, emits, and is updated."""

    outputs = ("v",)
    notes: ClassVar[list[object]]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.notes.append(("initialize", context.get_parallelism(), context.get_component_tasks("sink")))

    def update(self, context: TopologyContext) -> None:
        self.notes.append(("update", context.get_parallelism(), context.get_component_tasks("sink")))

    def next_tuple(self) -> None:
        if self.notes[-1] != "next_tuple":
            self.notes.append("next_tuple")
        self.emit(["x"])


def updated_plan(version: int, phase: UpdatePhase, added: tuple[int, ...]) -> PhysicalPlan:
    """Spout tasks 1 and 4 and sinks 2 and 3, of which an update adds some."""
    definition = topology(
        spout("spout", stream("v"), parallelism=2),
        bolt("sink", subscription("spout", GroupingKind.ALL), parallelism=2),
    )
    plan = physical_plan(definition, {"spout": (1, 4), "sink": (2, 3)}, version=version)
    return replace(plan, update=PlanUpdate(9, phase, "target", added))


def test_a_new_spout_task_emits_when_the_others_are_updated() -> None:
    """Its `initialize` sees the new tasks, but it must not take over work that others still do."""
    Partitioned.notes = []
    switch = PlanReceived(updated_plan(2, UpdatePhase.SWITCH, (1, 3)))
    looks = itertools.count()

    def until(bench: Bench) -> bool:
        if next(looks) == 3:
            assert Partitioned.notes == [("initialize", 2, [2, 3])]
            bench.gateway.data_in.put(switch)
        return bool(bench.rows())

    bench = Bench(Partitioned, until, updated_plan(1, UpdatePhase.PREPARE, (1, 3)))
    for _ in range(3):  # each ends a wait at once
        bench.gateway.data_in.put(PlanReceived(updated_plan(1, UpdatePhase.PREPARE, (1, 3))))
    bench.runner.run(ended=False)
    assert Partitioned.notes == [("initialize", 2, [2, 3]), "next_tuple"]


def test_a_component_follows_changes_of_its_tasks_and_of_its_consumers() -> None:
    """Between two calls, once for each change, and before its tuples take the new routes."""
    Partitioned.notes = []
    plans = [
        updated_plan(2, UpdatePhase.PREPARE, (3, 4)),
        updated_plan(3, UpdatePhase.SWITCH, (3, 4)),
        replace(updated_plan(4, UpdatePhase.SWITCH, (3, 4)), update=None),
    ]
    bench = Bench(
        Partitioned,
        lambda bench: bench.gateway.data_in.peek_command() is None and (4, (2, 3)) in routes_of(bench),
        updated_plan(1, UpdatePhase.PREPARE, (3, 4)),
    )
    for each in plans:
        bench.gateway.data_in.put(PlanReceived(each))
    bench.runner.run(ended=False)
    assert Partitioned.notes[0] == ("initialize", 1, [2])
    assert [each for each in Partitioned.notes if isinstance(each, tuple) and each[0] == "update"] == [
        ("update", 2, [2, 3])
    ]
    assert routes_of(bench) <= {(1, (2,)), (2, (2,)), (3, (2, 3)), (4, (2, 3))}
    markers = [each[:2] for each in bench.output() if isinstance(each, tuple) and each[2] == "END"]
    assert markers == [(3, (2,))], "only tasks from before the update get its marker"


def routes_of(bench: Bench) -> set[tuple[int, tuple[int, ...]]]:
    """Plan version and destinations of the segments with tuples."""
    return {each[:2] for each in bench.output() if isinstance(each, tuple) and each[2] != "END"}


class Reporting(Counting):
    """Reports the backlog that a test sets; an exception is raised."""

    waiting: ClassVar[object] = None

    def backlog(self) -> float | None:
        if isinstance(self.waiting, Exception):
            raise self.waiting
        return self.waiting  # type: ignore[return-value]  # the test sets wrong values too


def backlogs(bench: Bench) -> list[object]:
    return [each.value for each in bench.task.telemetry.record(bench.runner.emitter).metrics if each.name == "backlog"]


@pytest.mark.parametrize(("waiting", "shown"), [(1200, [1200.0]), (0, [0.0]), (None, [])])
def test_the_backlog_of_a_spout_is_a_metric(
    monkeypatch: pytest.MonkeyPatch, waiting: float | None, shown: list[float]
) -> None:
    """It is asked for while the component lives, and not after its close."""
    monkeypatch.setattr(Reporting, "waiting", waiting)
    seen: list[list[object]] = []

    def until(bench: Bench) -> bool:
        if not seen:
            seen.append(backlogs(bench))
        return bench.runner.ended

    bench = Bench(Reporting, until)
    bench.runner.run(ended=False)
    assert seen == [shown]
    assert backlogs(bench) == []


@pytest.mark.parametrize("waiting", [ValueError("no connection"), "many", -1, float("nan")])
def test_a_wrong_backlog_is_shown_and_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], waiting: object
) -> None:
    """The task goes on: the value is only for people and for sizing."""
    monkeypatch.setattr(Reporting, "waiting", waiting)
    seen: list[list[object]] = []

    def until(bench: Bench) -> bool:
        if not seen:
            seen.append(backlogs(bench))
        return bench.runner.ended

    bench = Bench(Reporting, until)
    bench.runner.run(ended=False)
    assert seen == [[]]
    assert bench.rows() == [0, 1, 2]
    assert "the backlog is unknown" in capsys.readouterr().err


class Older(Counting):
    """A program from before the method was there, which uses its name for something else."""

    backlog: ClassVar[Any] = ()


def test_another_use_of_the_name_backlog_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A spout of an older program runs as before."""
    bench = Bench(Older, lambda bench: bench.runner.ended and not backlogs(bench))
    bench.runner.run(ended=False)
    assert "backlog" not in capsys.readouterr().err


def use_of(bench: Bench, use: str) -> float:
    metrics = bench.task.telemetry.record(bench.runner.emitter).metrics
    (value,) = (each.value for each in metrics if each.name == "task-time-s" and each.labels["use"] == use)
    assert isinstance(value, float)
    return value


class Polls(Spout):
    """Looks at a source that has something for every third call; it never sleeps."""

    outputs = ("v",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.calls = 0

    def next_tuple(self) -> None:
        self.calls += 1
        if self.calls % 3:
            self.emit([self.calls])


def test_a_spout_that_polls_has_no_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that emits nothing shows it, although the calls before it emitted; a longer linger would only delay."""
    looks: list[float] = []
    dry: list[float] = []
    monkeypatch.setattr(SourceBacklog, "look_if_due", lambda _self, now_s, _awake_s: looks.append(now_s))
    monkeypatch.setattr(SourceBacklog, "ran_dry", lambda _self, now_s: dry.append(now_s))
    bench = Bench(Polls, lambda bench: len(bench.rows()) > 20)
    bench.runner.run(ended=False)
    assert len(dry) > len(looks), "only a full batch, or the first tuple, is followed by a look"


class Silent(Spout):
    """Never emits."""

    outputs = ("v",)

    def next_tuple(self) -> None:
        """There is nothing."""


@pytest.mark.parametrize("use", ["input", "throttled", "paused"])
def test_the_time_of_a_resting_spout_has_the_reason(use: str) -> None:
    """The waits of a spout have different remedies, so each has a use of its own."""
    calls = itertools.count()
    plan = plan_of(state=TopologyState.PAUSED) if use == "paused" else plan_of()
    bench = Bench(Silent, lambda _: next(calls) > 3, plan)
    if use == "throttled":
        bench.gateway.throttle.change(2, on=True)
    bench.runner.run(ended=False)
    others = {"input", "throttled", "paused", "acks", "room"} - {use}
    assert use_of(bench, use) > 0.0
    assert [use_of(bench, each) for each in others] == [0.0] * len(others)
