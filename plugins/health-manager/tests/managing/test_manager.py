"""The loop of the health manager against a real store of records: it acts once, and bad input changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heron.errors import AccessError, HeronError, RefusedError, UnreachableError
from heron.spi.health import Resolver, Sensor
from heron.spi.health_section import ComponentBounds, HealthSection
from heron.spi.health_values import (
    Action,
    DecisionState,
    Diagnosis,
    Measurement,
    Measurements,
    Observation,
)
from heron.spi.statemgr import NodeKind
from heron.state_nodes.health_records import HealthRecords
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.managing.carrier import PlannedAction
from heron_health_manager.managing.manager import HealthManager
from heron_health_manager.managing.pace import Pace
from heron_health_manager.managing.policy_runner import PolicyRunner
from heron_health_manager.managing.record_book import RecordBook
from heron_health_manager.sensors.cause_sensors import LEAST_MOMENTS
from heron_testing.topology_model.manager_harness import RHYTHM, ManagerHarness

OPTIMUM = {"lines": 1, "split": 6, "count": 12}
ACT = HealthSection(mode="act", cool_down_s=5.0, effect_s=20.0)


def test_acts_once_and_says_why(tmp_path: Path) -> None:
    """The word count becomes as large as it must be in one step, and the record has the whole story."""
    harness = ManagerHarness(tmp_path, ACT)
    records = harness.runs(30)
    assert harness.topology.model.tasks == OPTIMUM
    assert harness.topology.done == [{"split": 6, "count": 12}]
    (decision,) = records.decisions
    assert decision.state is DecisionState.EFFECTIVE
    assert (decision.base, decision.target) == ("plan-1", "plan-2")
    assert decision.diagnosis.evidence[0] in decision.reason
    assert (records.mode, records.problem) == ("act", "")


def test_decides_nothing_before_its_window_is_full(tmp_path: Path) -> None:
    """After its start, and after each change of the plan by anybody, a round would compare what cannot be compared."""
    harness = ManagerHarness(tmp_path, ACT)
    assert harness.runs(3).decisions == ()
    harness.topology.model.apply({"split": 2})
    assert harness.runs(3).decisions == ()
    assert harness.runs(3).decisions != ()


def test_rounds_agree_again_after_a_change_of_the_plan(tmp_path: Path) -> None:
    """What the rounds before it wanted was for another plan: two rounds with the new one have to want the same."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(4)
    harness.topology.model.apply({"split": 2})
    harness.runs(4)
    assert harness.topology.done == []
    harness.runs(1)
    assert harness.topology.done == [{"split": 6, "count": 12}]


@pytest.mark.matrix
@pytest.mark.parametrize("instants", [range(1, 12)])
def test_a_successor_repeats_nothing(tmp_path: Path, instants: range) -> None:
    """A health manager that dies every second still acts once: all that it knows is recorded."""
    for seconds in instants:
        harness = ManagerHarness(tmp_path / str(seconds), ACT)
        for _ in range(6):
            harness.runs(seconds)
            harness.dies()
        harness.runs(30)
        assert harness.topology.done == [{"split": 6, "count": 12}], seconds


def test_advice_changes_nothing_and_is_recorded_once(tmp_path: Path) -> None:
    """The default mode: what it would do, for a person to approve."""
    harness = ManagerHarness(tmp_path, HealthSection(), control=False)
    records = harness.runs(60)
    assert harness.topology.done == []
    assert [(each.state, str(each.diagnosis.subject)) for each in records.decisions] == [
        (DecisionState.ADVISED, "count"),
        (DecisionState.ADVISED, "split"),
    ]
    assert (records.mode, records.problem) == ("advise", "")


def test_a_death_before_the_action_is_noticed_and_made_good(tmp_path: Path) -> None:
    """The plan is still the base of the decision, so nothing was begun: it is given up, and taken again later."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.topology.fails = UnreachableError("the process ends here")
    harness.runs(5)
    assert harness.states == [DecisionState.STARTED]
    harness.topology.fails = None
    harness.dies()
    harness.runs(1)
    assert harness.states == [DecisionState.ABANDONED]
    harness.runs(20)
    assert harness.topology.done == [{"split": 6, "count": 12}]
    assert harness.states == [DecisionState.ABANDONED, DecisionState.EFFECTIVE]


def test_an_action_whose_answer_is_lost_is_not_repeated(tmp_path: Path) -> None:
    """It was carried out, and the plan says so."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.topology.loses_answer = True
    harness.runs(30)
    assert harness.topology.done == [{"split": 6, "count": 12}]
    assert harness.states == [DecisionState.EFFECTIVE]


def test_the_plan_of_an_operator_is_respected(tmp_path: Path) -> None:
    """The plan changes while an effect is awaited: nothing is undone, and nothing is decided before there are rates."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(6)
    assert harness.topology.done == [{"split": 6, "count": 12}]
    harness.topology.model.apply({"split": 7})
    harness.runs(1)
    (decision,) = harness.records.decisions
    assert decision.state is DecisionState.SUPERSEDED
    cause, _, change = decision.reason.partition("; ")
    assert cause.startswith("under-provisioned of ")
    assert change == "the plan was changed by somebody else meanwhile"
    assert harness.topology.model.tasks["split"] == 7


def test_a_plan_that_changes_under_a_decision_ends_it(tmp_path: Path) -> None:
    """It was decided for another number of tasks; the next round sees the new plan."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(4)
    real, operator = harness.topology.plan, {"split": 2}

    def plan(action: Action) -> PlannedAction:
        harness.topology.model.apply(operator)
        return real(action)

    harness.topology.plan = plan  # type: ignore[method-assign]  # the change comes in the middle of a round
    harness.runs(1)
    harness.topology.plan = real  # type: ignore[method-assign]
    assert harness.topology.done == []
    assert harness.records.decisions == ()
    harness.runs(10)
    assert harness.topology.done == [{"split": 6, "count": 12}]


def test_without_the_control_key_it_says_so_and_advises(tmp_path: Path) -> None:
    """The executor gave the read-only key, though the section says `act`."""
    harness = ManagerHarness(tmp_path, ACT, control=False)
    records = harness.runs(10)
    assert harness.topology.done == []
    assert records.mode == "advise"
    assert records.problem.startswith("mode `act` needs the control key, and this process has the read-only key")
    assert set(harness.states) == {DecisionState.ADVISED}


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("the state cannot be divided"),
        pytest.param(AccessError("these are other keys"), marks=pytest.mark.matrix),
    ],
)
def test_a_refusal_is_named_and_not_repeated_at_once(tmp_path: Path, error: HeronError) -> None:
    """Nothing was changed, and the next attempt comes after a while."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.topology.fails_to_plan = error
    records = harness.runs(6)
    assert [each.state for each in records.decisions] == [DecisionState.FAILED]
    assert records.decisions[0].reason == str(error)
    harness.topology.fails_to_plan = None
    harness.runs(60)
    assert harness.topology.done == []
    harness.runs(600)
    assert harness.topology.done == [{"split": 6, "count": 12}]


def test_an_update_whose_process_died_before_it_asked_for_containers_is_withdrawn_and_begun_again(
    tmp_path: Path,
) -> None:
    """It would wait until its time limit, and count as one that does not work. A process that lives has 15 s."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.topology.fails = UnreachableError("it has died")
    while not harness.states:
        harness.runs(1)
    (begun,) = harness.records.decisions
    assert begun.state is DecisionState.STARTED
    harness.dies()
    harness.topology.fails, harness.topology.prepared = None, begun.target
    assert harness.runs(15).decisions == (begun,)
    records = harness.runs(10)
    assert harness.topology.withdrawn == begun.target
    assert [each.state for each in records.decisions] == [DecisionState.ABANDONED, DecisionState.EFFECTIVE]
    assert harness.topology.done == [{"split": 6, "count": 12}]


def test_while_the_state_manager_is_away_nothing_begins(tmp_path: Path) -> None:
    """An action without a record could be repeated. When the store is back, it acts."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(3)
    harness.store.away = True
    for _ in range(10):
        harness.clock.advance(1.0)
        harness.manager.round()
    assert harness.topology.done == []
    harness.store.away = False
    harness.runs(3)
    assert harness.topology.done == [{"split": 6, "count": 12}]
    assert harness.records.problem == ""


def test_a_record_that_cannot_be_written_stops_the_action(tmp_path: Path) -> None:
    """The store answers questions and refuses writes, as one without space does."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(3)
    harness.store.writes_fail = True
    for _ in range(5):
        harness.clock.advance(1.0)
        harness.manager.round()
    assert harness.topology.done == []


def test_another_writer_wins(tmp_path: Path) -> None:
    """Two health managers of one topology, after a network that was cut: only one of them carries the decision out."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(3)
    other = HealthManager(ACT, harness.policies, harness.book, harness.look, harness.topology, harness.clock, Pace(1.0))
    real = harness.topology.plan

    def plan(action: Action) -> PlannedAction:
        harness.topology.plan = real  # type: ignore[method-assign]
        for _ in range(5):  # the other one decides between the reading of this one and its writing
            harness.clock.advance(1.0)
            other.round()
        return real(action)

    harness.topology.plan = plan  # type: ignore[method-assign]
    harness.runs(1)
    harness.runs(20)
    assert harness.topology.done == [{"split": 6, "count": 12}]
    assert harness.states == [DecisionState.EFFECTIVE]


def test_a_topology_manager_that_is_away_is_named_until_it_is_back(tmp_path: Path) -> None:
    """`heron health NAME history` shows why nothing happens."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.looks_fail = UnreachableError("its topology manager is being restarted")
    assert harness.runs(3).problem == "its topology manager is being restarted"
    harness.looks_fail = None
    assert harness.runs(10).problem == ""
    assert harness.topology.done == [{"split": 6, "count": 12}]


def test_a_gap_in_the_observations_begins_the_window_again(tmp_path: Path) -> None:
    """The topology manager was away, or the process was stopped: rates from before the gap say nothing about now."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(3)
    harness.clock.advance(60.0)
    assert harness.runs(3).decisions == ()
    assert harness.runs(2).decisions != ()


def test_a_topology_that_is_observed_seldom_has_a_longer_window(tmp_path: Path) -> None:
    """With rounds that are 5 s apart, a look-back window of 3 s would always have only one observation.

    A round takes time too, so observations are further apart than the pace, and not equally far.
    """
    harness = ManagerHarness(tmp_path, ACT)
    harness.pace.took(0.2)  # s of a processor: then rounds are 5 s apart
    for gap_s in (5.5, 7.0):
        harness.clock.advance(gap_s)
        harness.manager.round()
    assert harness.topology.done == []  # two rounds have to agree
    harness.clock.advance(6.0)
    harness.manager.round()
    assert harness.topology.done == [{"split": 6, "count": 12}]


class Counting(Ds2Policy):
    """Notes how many observations each of its rounds gets."""

    def sensors(self) -> Sequence[Sensor]:
        self.counts: list[int] = getattr(self, "counts", [])
        return (CountingSensor(self.counts),)


class CountingSensor(Sensor):
    """Measures nothing."""

    metrics = frozenset({"resident-bytes"})

    def __init__(self, counts: list[int]) -> None:
        self._counts = counts

    def measure(self, window: Sequence[Observation]) -> Sequence[Measurement]:
        self._counts.append(len(window))
        return ()


def test_a_window_of_the_usual_rhythm_shows_a_growth_of_memory(tmp_path: Path) -> None:
    """Each of its gaps of 2.5 s is longer by a round, which may take half a second."""
    harness = ManagerHarness(tmp_path, ACT)
    policy = Counting.open({})
    harness.policies = (PolicyRunner("counting", policy),)
    harness.dies()
    for _ in range(20):
        harness.clock.advance(2.98)
        harness.manager.round()
    assert policy.counts == [LEAST_MOMENTS] * 7  # every second round, since the window was full


def test_missing_metrics_decide_nothing(tmp_path: Path) -> None:
    """After the start of a topology manager there are no rates yet, and none is invented."""
    harness = ManagerHarness(tmp_path, ACT)
    full = harness.topology.model.observe

    def without_samples(at_s: float) -> Observation:
        return replace(full(at_s), samples=())

    harness.topology.model.observe = without_samples  # type: ignore[method-assign]
    assert harness.runs(20).decisions == ()


def test_without_rates_of_the_spout_nothing_is_sized(tmp_path: Path) -> None:
    """What the source offers is not known then, and no number of tasks follows from what the bolts do now."""
    harness = ManagerHarness(tmp_path, ACT)
    full = harness.topology.model.observe

    def without_spout(at_s: float) -> Observation:
        seen = full(at_s)
        return replace(seen, samples=tuple(each for each in seen.samples if each.component != "lines"))

    harness.topology.model.observe = without_spout  # type: ignore[method-assign]
    harness.runs(8)
    assert harness.topology.done == []
    harness.topology.model.observe = full  # type: ignore[method-assign]
    harness.runs(8)
    assert harness.topology.done == [{"split": 6, "count": 12}]


class HangingResolver(Resolver):
    """Returns when the event is set."""

    def __init__(self, returns: threading.Event) -> None:
        self._returns = returns

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        self._returns.wait(30.0)
        return None


class Undecided(Ds2Policy):
    """A policy whose resolver hangs."""

    returns = threading.Event()

    def resolvers(self) -> Sequence[Resolver]:
        return (HangingResolver(self.returns),)


def test_a_resolver_that_hangs_is_named_and_changes_nothing(tmp_path: Path) -> None:
    """As soon as it returns, its policy is asked again."""
    harness = ManagerHarness(tmp_path, ACT)
    policy = Undecided.open(RHYTHM)
    harness.policies = (PolicyRunner("undecided", policy, limit_s=0.2),)
    harness.dies()
    who = "part HangingResolver of policy 'undecided'"
    assert harness.runs(6).problem == f"{who} has not returned yet; the policy is left out until it does"
    assert harness.topology.done == []
    policy.returns.set()


class Stubborn(Ds2Policy):
    """A policy of a third party that raises or hangs."""

    raises = False
    hangs: threading.Event | None = None

    def sensors(self) -> Sequence[Sensor]:
        if self.raises:
            msg = "it has a bug"
            raise RuntimeError(msg)
        if self.hangs is not None:
            self.hangs.wait(30.0)
        return super().sensors()


def test_a_policy_that_raises_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    """One bad policy must not switch the health manager off."""
    harness = ManagerHarness(tmp_path, ACT)
    bad = Stubborn.open(RHYTHM)
    bad.raises = True
    harness.policies = (PolicyRunner("bad", bad), *harness.policies)
    harness.dies()
    records = harness.runs(10)
    assert records.problem == "policy 'bad' failed: RuntimeError: it has a bug"
    assert harness.topology.done == [{"split": 6, "count": 12}]


def test_a_problem_is_shown_until_the_next_round_of_its_policy(tmp_path: Path) -> None:
    """A policy is asked less often than the topology is observed. In between, its problem is not gone."""
    harness = ManagerHarness(tmp_path, ACT)
    bad = Stubborn.open({"period_s": 2, "look_back_s": 3})
    bad.raises = True
    harness.policies = (PolicyRunner("bad", bad),)
    harness.dies()
    harness.runs(4)
    assert {harness.runs(1).problem for _ in range(6)} == {"policy 'bad' failed: RuntimeError: it has a bug"}
    bad.raises = False
    assert harness.runs(2).problem == ""


def test_a_policy_that_hangs_is_left_out_until_it_returns(tmp_path: Path) -> None:
    """A call cannot be ended from outside, so its thread is abandoned, and it is not called again meanwhile."""
    harness = ManagerHarness(tmp_path, ACT)
    bad = Stubborn.open(RHYTHM)
    bad.hangs = threading.Event()
    harness.policies = (PolicyRunner("bad", bad, limit_s=0.05), *harness.policies)
    harness.dies()
    records = harness.runs(10)
    assert records.problem == "policy 'bad' has not returned yet; the policy is left out until it does"
    assert harness.topology.done == [{"split": 6, "count": 12}]
    bad.hangs.set()


def test_bounds_of_the_section_are_kept(tmp_path: Path) -> None:
    """The policy sizes the rest for what then arrives, and nothing exceeds a bound."""
    bounds = {"split": ComponentBounds(max=3), "count": ComponentBounds(min=10)}
    harness = ManagerHarness(tmp_path, HealthSection(mode="act", components=bounds, cool_down_s=5.0))
    harness.runs(30)
    assert harness.topology.model.tasks == {"lines": 1, "split": 3, "count": 10}


def test_too_many_containers_are_only_advised(tmp_path: Path) -> None:
    """The packing decides how many there are, so the plan is made before it is judged."""
    harness = ManagerHarness(tmp_path, HealthSection(mode="act", max_containers=4))
    harness.runs(6)
    (decision,) = harness.records.decisions
    assert decision.state is DecisionState.ADVISED
    assert decision.reason == "the topology would have 10 containers, and the limit is 4"
    assert harness.topology.done == []


def test_while_paused_it_advises(tmp_path: Path) -> None:
    """A person works on the topology; what was found is still recorded."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.book.change(lambda each: replace(each, paused=True))
    harness.runs(10)
    assert harness.topology.done == []
    assert set(harness.states) == {DecisionState.ADVISED}
    harness.book.change(lambda each: replace(each, paused=False))
    harness.runs(6)
    assert harness.topology.done == [{"split": 6, "count": 12}]


def test_records_of_an_earlier_run_count_as_none(tmp_path: Path) -> None:
    """The next topology of that name begins without history."""
    harness = ManagerHarness(tmp_path, ACT)
    harness.runs(10)
    assert RecordBook(harness.store, "model", "model-2").read().records == HealthRecords("model-2")
    assert harness.store.get(NodeKind.HEALTH, "model") is not None
