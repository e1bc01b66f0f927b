"""No call of `next_tuple` follows `end`, wherever the spout calls it; the exception are replays that it has queued."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from heron.api.context import TopologyContext
from heron.api.spout import Spout
from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import PlanReceived
from heron.instance.spout_runner import SpoutRunner
from heron.instance.task import Task
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.kernel.settings import EngineSettings
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import CheckpointPlan, PhysicalPlan, TopologyState
from heron_testing.memory_checkpoints import MemoryCheckpointStore
from parts import instance_spec
from parts.spout_bench import SpoutBench, When
from parts.spout_bench import spout_plan as plan_of
from parts.tracked_rest import Decide, Rest, first_time, sent_end


class FiveEach(Spout):
    """Emits five new numbers in each call, whatever happened before; calls `end` in the call `last`."""

    outputs = ("v",)
    last: ClassVar[int] = 4
    bench: ClassVar[SpoutBench]

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.calls = self.number = 0
        self.acked: list[object] = []
        self.failed: list[Any] = []

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.context = context

    def next_tuple(self) -> None:
        self.calls += 1
        for _ in range(5):
            self.emit([self.number], tup_id=self.number)
            self.number += 1
        if self.calls == self.last:
            self.finish()

    def finish(self) -> None:
        """Ends in the middle of the call's emits."""
        self.end()


def ended(bench: SpoutBench) -> bool:
    return bench.runner.ended


def spout_of(runner: SpoutRunner) -> FiveEach:
    assert isinstance(runner.component, FiveEach)
    return runner.component


@pytest.mark.parametrize("last", [1, 2, 4])
def test_the_call_that_ends_is_the_last_and_its_tuples_count(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """The engine makes many calls before it looks at anything else."""
    monkeypatch.setattr(FiveEach, "last", last)
    bench = SpoutBench(FiveEach, ended)
    bench.runner.run(ended=False)
    assert spout_of(bench.runner).calls == last
    assert bench.rows() == list(range(5 * last))


class EmitsLater(FiveEach):
    """Emits more after `end`, in the same call."""

    def finish(self) -> None:
        self.end()
        self.emit(["after"])


class FailsLater(FiveEach):
    """Raises after `end`."""

    def finish(self) -> None:
        self.end()
        raise ValueError


class IsHeldBack(FiveEach):
    """Back pressure begins while it ends; it is over only when the test stops the task."""

    def finish(self) -> None:
        self.bench.gateway.throttle.begin([7])
        self.end()


class IsPaused(FiveEach):
    """The topology is paused while it ends, and resumes."""

    def finish(self) -> None:
        self.bench.gateway.data_in.put(PlanReceived(plan_of(2, TopologyState.PAUSED)))
        self.bench.gateway.data_in.put(PlanReceived(plan_of(3)))

    def deactivate(self) -> None:
        self.end()


@pytest.mark.parametrize(
    ("component", "more"),
    [(EmitsLater, ["after"]), (FailsLater, []), (IsHeldBack, [])],
)
def test_nothing_calls_a_spout_that_has_ended(
    capsys: pytest.CaptureFixture[str], component: type[FiveEach], more: list[object]
) -> None:
    """All that was emitted counts."""
    bench = SpoutBench(component, ended)
    FiveEach.bench = bench
    bench.runner.run(ended=False)
    assert spout_of(bench.runner).calls == 4
    assert bench.rows() == [*range(20), *more]
    assert "called again" not in capsys.readouterr().err


class EndsByThread(FiveEach):
    """Another thread emits and ends. The engine carries it out when the call is over, which emits nothing itself."""

    def next_tuple(self) -> None:
        self.calls += 1
        collector = self.context.threadsafe_collector()

        def finish() -> None:
            collector.emit(["queued"], tup_id="id")
            collector.end()

        thread = threading.Thread(target=finish)
        thread.start()
        thread.join()

    def ack(self, tup_id: object) -> None:
        self.acked.append(tup_id)


def test_an_end_that_another_thread_has_queued_is_as_good() -> None:
    """At most once the emits before it are acked as all others."""
    bench = SpoutBench(EndsByThread, ended)
    bench.runner.run(ended=False)
    made = spout_of(bench.runner)
    assert (made.calls, bench.rows(), made.acked) == (1, ["queued"], ["id"])


def test_a_spout_that_ends_while_it_is_paused_is_not_called_when_it_resumes() -> None:
    """It ends then."""
    bench = SpoutBench(IsPaused, ended)
    FiveEach.bench = bench
    bench.runner.run(ended=False)
    made = spout_of(bench.runner)
    assert bench.rows() == list(range(5 * made.calls))
    assert {each[0] for each in bench.output() if isinstance(each, tuple) and each[2] != "END"} == {1}


class EndsAtOnce(FiveEach):
    """Has nothing to emit."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.end()


def test_a_spout_that_ends_in_initialize_is_never_called() -> None:
    """For example a task without partitions."""
    bench = SpoutBench(EndsAtOnce, ended)
    bench.runner.run(ended=False)
    assert spout_of(bench.runner).calls == 0
    assert bench.rows() == []


def run_tracked(component: type[FiveEach], decide: Decide) -> tuple[Rest, FiveEach]:
    rest = Rest("spout", decide, sent_end)
    runner = rest.run(SpoutRunner, component)
    assert isinstance(runner.component, FiveEach)
    return rest, runner.component


@pytest.mark.parametrize("fails", [(), (3, 19), tuple(range(20))])
def test_at_least_once_no_call_follows_while_trees_are_open(fails: tuple[int, ...]) -> None:
    """A spout without `fail` replays nothing, so it ends when the last outcome is known."""
    rest, made = run_tracked(FiveEach, first_time("fail", *fails))
    assert made.calls == 4
    assert rest.events == [*range(20), "END"]
    assert rest.task.metrics.failed == len(fails)


class ReplaysAtOnce(FiveEach):
    """Emits in `fail`."""

    def fail(self, tup_id: object) -> None:
        self.failed.append(tup_id)
        self.emit([tup_id], tup_id=tup_id)


def test_replays_from_fail_need_no_call() -> None:
    """As those of the sources of pipelines."""
    rest, made = run_tracked(ReplaysAtOnce, first_time("fail", 3, 19, 19))
    assert made.calls == 4
    assert sorted(map(str, rest.events[20:-1])) == ["19", "19", "3"]


class Queues(FiveEach):
    """Queues failed numbers in `fail`, and emits them before new ones; the id of a replay is `again_id`."""

    @staticmethod
    def again_id(number: int) -> object:
        return number

    def next_tuple(self) -> None:
        if not self.failed:
            super().next_tuple()
            return
        self.calls += 1
        number = self.failed.pop(0)
        self.emit([number], tup_id=self.again_id(number))

    def fail(self, tup_id: object) -> None:
        self.failed.append(tup_id[0] if isinstance(tup_id, list) else tup_id)


class QueuesUnderLists(Queues):
    """Its replays have other ids, which cannot be hashed."""

    @staticmethod
    def again_id(number: int) -> object:
        return [number]


class QueuesInPairs(Queues):
    """Emits two tuples for each replay."""

    def next_tuple(self) -> None:
        replays = bool(self.failed)
        super().next_tuple()
        if replays:
            self.emit(["other"], tup_id="other")


@pytest.mark.parametrize("component", [Queues, QueuesUnderLists, QueuesInPairs])
def test_queued_replays_are_called_for_and_nothing_else(component: type[Queues]) -> None:
    """Each failed number comes again once, and the spout never gets to new numbers."""
    rest, made = run_tracked(component, first_time("fail", 1, 7, 19, 19))
    assert made.calls == 8
    assert sorted(each for each in rest.events[20:-1] if isinstance(each, int)) == [1, 7, 19, 19]
    assert max(each for each in rest.events if isinstance(each, int)) == 19


class NewFirst(Queues):
    """Emits new numbers first, and ends with a queue that is not empty."""

    def next_tuple(self) -> None:
        if self.number < 20:
            FiveEach.next_tuple(self)
        else:
            Queues.next_tuple(self)


def test_replays_that_were_queued_before_the_end_are_not_lost() -> None:
    """The limit lets outcomes come between the calls."""
    rest = Rest("spout", first_time("fail", 1), sent_end, config={"topology.max.spout.pending": 5})
    rest.run(SpoutRunner, NewFirst)
    assert rest.events == [*range(20), 1, "END"]


class OnlyNotes(FiveEach):
    """Overrides `fail` and replays nothing; `next_tuple` would go on forever."""

    def fail(self, tup_id: object) -> None:
        self.failed.append(tup_id)


def test_a_spout_that_replays_nothing_ends_nevertheless() -> None:
    """Each failed root is reason for at most one call."""
    rest, made = run_tracked(OnlyNotes, first_time("fail", 3, 4))
    assert made.calls <= 6
    assert rest.events[-1] == "END"


def with_checkpoints(version: int, orders: CheckpointPlan, state: TopologyState) -> PhysicalPlan:
    return replace(plan_of(version, state), checkpoints=orders)


def run_with_checkpoints(
    first: PhysicalPlan, later: PhysicalPlan | None, until: Callable[[Gateway], bool], *tasks: TaskSnapshot
) -> tuple[SpoutRunner, Gateway]:
    archive = CheckpointArchive(MemoryCheckpointStore(), "t")
    if tasks:
        groups = key_groups_of(first.topology)
        archive.save_manifest(CheckpointManifest("t", "t-1", 1, 0.0, 0.0, groups, tasks))
    spec, settings = instance_spec("spout", 1), EngineSettings()
    gateway = Gateway(spec, settings)
    if later is not None:
        gateway.data_in.put(PlanReceived(later))
    runner = SpoutRunner(Task(spec, settings, gateway, first, archive), When(lambda: until(gateway)), EndsAtOnce)
    runner.run(ended=False)
    return runner, gateway


def envelopes(gateway: Gateway) -> list[Envelope]:
    return [each for each in gateway.data_out.items if isinstance(each, Envelope)]


def test_a_checkpoint_has_the_end_that_a_paused_spout_has_declared() -> None:
    """Its task ends only when the topology resumes."""
    paused = TopologyState.PAUSED

    def saved(gateway: Gateway) -> list[bytes]:
        found = [each.checkpoint_report for each in envelopes(gateway)]
        return [each.snapshot for each in found if each.phase == pb.CHECKPOINT_PHASE_SAVED]

    runner, gateway = run_with_checkpoints(
        with_checkpoints(1, CheckpointPlan(), paused),
        with_checkpoints(2, CheckpointPlan(1), paused),
        lambda gateway: bool(saved(gateway)),
    )
    assert not runner.ended
    assert b'"ended":true' in saved(gateway)[0].replace(b" ", b"")


def test_a_task_whose_end_is_in_the_checkpoint_is_not_called() -> None:
    """Its process was killed, and starts from that checkpoint."""
    plan = with_checkpoints(2, CheckpointPlan(1, 1), TopologyState.RUNNING)
    ends = TaskSnapshot(1, "spout", ended=True)
    runner, _ = run_with_checkpoints(plan, None, lambda gateway: len(gateway.data_out.items) > 2, ends)
    assert runner.ended
    assert spout_of(runner).calls == 0
