"""The loop of the health manager after an action: when its effect is judged, undone, and what has its turn next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heron.errors import SchedulerError, UnreachableError
from heron.spi.health import Diagnoser, Sensor
from heron.spi.health_section import HealthSection
from heron.spi.health_values import DecisionState, Measurement, Observation, Sample, Subject
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.managing.carrier import PlannedAction
from heron_health_manager.managing.policy_runner import PolicyRunner
from heron_testing.topology_model.fluid_model import Model
from heron_testing.topology_model.manager_harness import RHYTHM, ManagerHarness
from heron_testing.topology_model.restart_policy import RestartPolicy, StuckDiagnoser

ACT = HealthSection(mode="act", cool_down_s=5.0, effect_s=20.0)


class Unmoved(Model):
    """A topology whose plan can change without any effect on what its sources emit."""

    def shares(self) -> dict[str, float]:
        return {"lines": 0.1}


def unmoved(folder: Path, takes_s: float = 0.0) -> ManagerHarness:
    """A health manager of such a topology, whose actions take that long."""
    harness = ManagerHarness(folder, ACT)
    harness.topology.model = Unmoved(harness.topology.model.parts, harness.topology.model.tasks)
    harness.topology.takes = lambda: harness.clock.advance(takes_s)
    return harness


def test_an_effect_is_awaited_from_the_end_of_the_action(tmp_path: Path) -> None:
    """An update that takes longer than its effect may take is not undone at once."""
    harness = unmoved(tmp_path, takes_s=60.0)
    (decision,) = harness.runs(20).decisions
    assert decision.state is DecisionState.STARTED
    assert decision.carried_out_at_s == decision.at_s + 60.0
    assert harness.runs(10).decisions[0].state is DecisionState.INEFFECTIVE


def test_a_successor_awaits_an_effect_from_when_it_first_sees_the_plan(tmp_path: Path) -> None:
    """Nobody has seen when the update was complete."""
    harness = unmoved(tmp_path, takes_s=60.0)
    harness.topology.loses_answer = True
    harness.runs(5)
    harness.dies()
    harness.runs(1)
    assert harness.records.decisions[0].carried_out_at_s == harness.clock.wall_s()
    assert harness.runs(15).decisions[0].state is DecisionState.STARTED
    assert harness.runs(10).decisions[0].state is DecisionState.INEFFECTIVE


@pytest.mark.parametrize("jump_s", [3600.0, -200.0])
def test_a_clock_that_jumps_undoes_nothing(tmp_path: Path, jump_s: float) -> None:
    """The effect has as much time as ever: the machine's clock was set, and no time has passed."""
    harness = unmoved(tmp_path)
    assert harness.runs(5).decisions[0].state is DecisionState.STARTED
    harness.clock.jump_wall(jump_s)
    harness.runs(15)
    assert harness.states == [DecisionState.STARTED]
    assert harness.runs(10).decisions[0].state is DecisionState.INEFFECTIVE


def test_missing_metrics_undo_nothing(tmp_path: Path) -> None:
    """Without rates of the spout nobody can say that an update did not help."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(5)
    full = harness.topology.model.observe
    harness.topology.model.observe = lambda at_s: replace(full(at_s), samples=())  # type: ignore[method-assign]
    harness.runs(30)
    assert harness.states == [DecisionState.UNMEASURED]
    assert harness.topology.done == [{"split": 6, "count": 12}]


def test_an_update_whose_end_failed_is_undone_like_any_other(tmp_path: Path) -> None:
    """The plan was changed, and the scheduler could not remove a container then. The plan does not help, and goes."""
    harness = unmoved(tmp_path)
    harness.topology.fails_to_end = SchedulerError("container 3 cannot be removed")
    harness.runs(6)
    assert harness.states == [DecisionState.STARTED]
    harness.topology.fails_to_end = None
    harness.runs(25)
    assert harness.states[:2] == [DecisionState.INEFFECTIVE, DecisionState.STARTED]
    assert harness.topology.model.tasks == {"lines": 1, "split": 1, "count": 1}


def test_what_did_not_help_while_it_was_paused_is_undone_afterwards(tmp_path: Path) -> None:
    """A person looks at the topology meanwhile, and nothing changes under their hands."""
    harness = unmoved(tmp_path)
    harness.runs(6)
    harness.book.change(lambda each: replace(each, paused=True))
    harness.runs(60)
    assert harness.topology.model.tasks["split"] == 6
    harness.book.change(lambda each: replace(each, paused=False))
    harness.runs(2)
    assert harness.topology.model.tasks["split"] == 1


class _MeanRate(Sensor):
    def measure(self, window: Sequence[Observation]) -> Iterator[Measurement]:
        rates = [each.samples[0].value for each in window]
        yield Measurement("rate-in", Subject("split", 2), sum(rates) / len(rates))


class RestartsAndMeasures(RestartPolicy):
    """A policy that restarts a container until a task executes tuples."""

    def sensors(self) -> Sequence[Sensor]:
        return (_MeanRate(),)


def stuck(folder: Path, *, control: bool = True) -> ManagerHarness:
    """A health manager of a topology with a task that executes tuples for 3 s, and then no more."""
    harness = ManagerHarness(folder, ACT, control=control)
    harness.policies = (PolicyRunner("p", RestartsAndMeasures.open(RHYTHM)),)
    full, end_s = harness.topology.model.observe, harness.clock.monotonic_s() + 3.0

    def observe(at_s: float) -> Observation:
        return replace(full(at_s), samples=(Sample("execute-count", 100.0 if at_s <= end_s else 0.0),))

    harness.topology.model.observe = observe  # type: ignore[method-assign]
    harness.topology.plan = PlannedAction  # type: ignore[method-assign]  # a restart needs no plan
    harness.dies()
    return harness


def test_an_effect_is_seen_only_in_what_comes_after_the_action(tmp_path: Path) -> None:
    """The window has rates from before the task got stuck. They do not show that its restart has helped."""
    harness = stuck(tmp_path)
    harness.runs(15)
    assert harness.states == [DecisionState.STARTED]
    harness.runs(20)
    assert harness.states[0] is DecisionState.INEFFECTIVE


@pytest.mark.parametrize("jump_s", [0.0, 3600.0, -200.0])
def test_what_a_person_carries_out_is_judged_by_what_comes_after_it(tmp_path: Path, jump_s: float) -> None:
    """The command `approve` acts in another process, and has the time of the machine, which may have been set."""
    harness = stuck(tmp_path, control=False)
    harness.runs(4)
    harness.clock.jump_wall(jump_s)
    (advised,) = harness.runs(1).decisions
    begun = replace(advised, state=DecisionState.STARTED, at_s=harness.clock.wall_s())
    harness.book.change(lambda each: each.with_decisions(begun))
    harness.runs(1)
    assert harness.states == [DecisionState.STARTED]
    done = replace(begun, carried_out_at_s=harness.clock.wall_s())
    harness.book.change(lambda each: each.with_decisions(done))
    harness.runs(10)
    assert harness.states == [DecisionState.STARTED]


def test_a_restart_is_carried_out_at_most_once(tmp_path: Path) -> None:
    """It has no fence: nobody can see whether it was begun, so it is not repeated at once."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.policies = (PolicyRunner("p", RestartPolicy.open(RHYTHM)),)
    begun: list[int] = []
    harness.topology.plan = PlannedAction  # type: ignore[method-assign]  # a restart needs no plan

    def carry_out(planned: PlannedAction) -> None:
        begun.append(planned.action.container_id)
        msg = "the process ends here"
        raise UnreachableError(msg)

    harness.topology.carry_out = carry_out  # type: ignore[method-assign]
    harness.dies()
    harness.runs(6)
    assert (begun, harness.states) == ([1], [DecisionState.STARTED])
    for _ in range(3):
        harness.dies()
        harness.runs(6)
    assert begun == [1]
    harness.runs(20)
    assert begun == [1]
    assert harness.states[0] is DecisionState.INEFFECTIVE


class LessSure(Ds2Policy):
    """The policy `ds2`, which also finds a stuck task, and is less sure of it."""

    def diagnosers(self) -> Sequence[Diagnoser]:
        return (*super().diagnosers(), StuckDiagnoser(0.75))


@pytest.mark.parametrize("policies", [(LessSure,), (Ds2Policy, RestartPolicy)])
def test_what_a_bound_does_not_permit_keeps_nothing_else_from_its_turn(
    tmp_path: Path, policies: Sequence[type[Ds2Policy]]
) -> None:
    """The topology needs more containers than it may have, all day. A stuck task is restarted all the same."""
    harness = ManagerHarness(tmp_path, HealthSection(mode="act", max_containers=4))
    harness.policies = [PolicyRunner(each.__name__, each.open(RHYTHM)) for each in policies]
    harness.dies()
    harness.book.change(lambda each: replace(each, paused=True))
    harness.runs(6)  # all rounds want the same
    harness.book.change(lambda each: replace(each, paused=False))
    harness.runs(2)
    assert [each.action.container_id for each in harness.records.decisions if each.state is DecisionState.STARTED] == [
        1
    ]
    assert harness.topology.done == [{}], "a restart changes no number of tasks"
