"""What people tell the health manager: approve, pause, resume, and what `history` shows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from heron.errors import SchedulerError, UsageError
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan
from heron.spi.health_values import Action, ActionKind, Decision, DecisionState, Diagnosis, Subject
from heron.state_nodes.health_records import HealthRecords
from heron_cli.launch.update import TopologyUpdate
from heron_health_manager.managing.acting import Attempt
from heron_health_manager.managing.carrier import PlannedAction
from heron_health_manager.managing.history_text import history_text
from heron_health_manager.managing.record_book import RecordBook
from heron_health_manager.managing.record_commands import OpenRecords, approve, set_paused
from heron_statemgr_localfs.state_manager import LocalFsStateManager

UPDATE = Action(ActionKind.UPDATE, "split 1 -> 3", parallelism={"split": 3}, before={"split": 1})
CAUSE = Diagnosis("under-provisioned", Subject("split"), 0.8, ("split does 500% of what it can",))
ADVICE = Decision(4, 1_700_000_000.0, "ds2", CAUSE, UPDATE, DecisionState.ADVISED, "the confidence is low")
PERSONS = replace(ADVICE, number=5, action=Action(ActionKind.ADVISE, "get a faster disk"))


def packing(split: int) -> PackingPlan:
    instances = tuple(InstancePlan("split", task, task - 1, NO_RESOURCE) for task in range(1, split + 1))
    return PackingPlan(f"plan-{split}", (ContainerPlan(1, instances, NO_RESOURCE),), split)


@dataclass
class ModelTopology:
    """Carries updates out on a topology that has some tasks of `split`."""

    split: int = 1
    fails: SchedulerError | None = None
    done: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def plan(self, action: Action) -> PlannedAction:
        after = packing(action.parallelism["split"])
        return PlannedAction(action, TopologyUpdate("t", packing(self.split), after, {}))

    def carry_out(self, planned: PlannedAction) -> None:
        if self.fails is not None:
            raise self.fails
        self.meanwhile()
        self.done.append(planned.action.text)

    def give_up(self, containers: Collection[int]) -> None:
        """Commands wait for their updates."""


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[ModelTopology], OpenRecords]:
    """The records of a topology with two pieces of advice."""

    def open_with(topology: ModelTopology) -> OpenRecords:
        book = RecordBook(LocalFsStateManager.open({"root": str(tmp_path)}), "t", "t-1")
        book.change(lambda each: replace(each, mode="advise").with_decisions(ADVICE, PERSONS))
        return OpenRecords("t", book, topology)

    return open_with


def states(records: OpenRecords) -> dict[int, DecisionState]:
    return {each.number: each.state for each in records.book.read().records.decisions}


def test_approved_advice_is_carried_out_under_its_record(opened: Callable[[ModelTopology], OpenRecords]) -> None:
    """The health manager then awaits its effect, as that of its own actions."""
    topology = ModelTopology()
    records = opened(topology)
    assert approve(records, 4) == (Attempt.CARRIED_OUT, "")
    assert topology.done == ["split 1 -> 3"]
    decision = records.book.read().records.decisions[0]
    assert (decision.state, decision.base, decision.target) == (DecisionState.STARTED, "plan-1", "plan-3")
    assert decision.reason.startswith("approved by ")
    assert decision.carried_out_at_s is not None
    with pytest.raises(UsageError, match="decision 4 is started; only advice can be approved"):
        approve(records, 4)


def test_a_judgement_of_the_health_manager_stays(opened: Callable[[ModelTopology], OpenRecords]) -> None:
    """The plan was changed, its effect was seen, and only then the command could remove the last container."""
    topology = ModelTopology()
    records = opened(topology)
    judged = replace(ADVICE, state=DecisionState.EFFECTIVE)
    topology.meanwhile = lambda: records.book.change(lambda each: each.with_decisions(judged))
    assert approve(records, 4) == (Attempt.CARRIED_OUT, "")
    assert states(records)[4] is DecisionState.EFFECTIVE


def test_advice_for_another_plan_is_refused(opened: Callable[[ModelTopology], OpenRecords]) -> None:
    """Somebody has changed the plan since the advice was given."""
    topology = ModelTopology(split=2)
    records = opened(topology)
    with pytest.raises(UsageError, match="decision 4: the plan was changed meanwhile: split has 2 tasks, not 1"):
        approve(records, 4)
    assert (topology.done, states(records)[4]) == ([], DecisionState.ADVISED)


@pytest.mark.parametrize(
    ("number", "message"),
    [(9, "topology 't' has no decision 9; it has '4', '5'"), (5, "only a person can do this: get a faster disk")],
)
def test_what_cannot_be_approved_is_explained(
    opened: Callable[[ModelTopology], OpenRecords], number: int, message: str
) -> None:
    """The number is wrong, or the action is not one of the engine's."""
    with pytest.raises(UsageError, match=message):
        approve(opened(ModelTopology()), number)


def test_one_action_at_a_time(opened: Callable[[ModelTopology], OpenRecords]) -> None:
    """Two updates together could not be told apart by their effect."""
    records = opened(ModelTopology())
    records.book.change(lambda each: each.with_decisions(replace(ADVICE, number=6, state=DecisionState.STARTED)))
    with pytest.raises(UsageError, match="decision 6 is under way, and one action is carried out at a time"):
        approve(records, 4)


def test_a_failure_is_recorded(opened: Callable[[ModelTopology], OpenRecords]) -> None:
    """It is not tried again by itself for a while."""
    records = opened(ModelTopology(fails=SchedulerError("no room")))
    assert approve(records, 4) == (Attempt.FAILED, "no room")
    assert states(records)[4] is DecisionState.FAILED


def test_pause_and_resume_change_nothing_else(opened: Callable[[ModelTopology], OpenRecords]) -> None:
    """The decisions stay, and both can be repeated."""
    records = opened(ModelTopology())
    before = records.book.read().records
    assert set_paused(records, paused=True) == set_paused(records, paused=True) == replace(before, paused=True)
    assert set_paused(records, paused=False) == before


def test_the_history_shows_mode_problem_and_reasons() -> None:
    """A person sees at once what was done, why, and what keeps the health manager from its work."""
    records = HealthRecords("t-1", "act", paused=True, problem="the store is away", decisions=(ADVICE,))
    head, problem, empty, decision, cause, reason = history_text("t", records).splitlines()
    assert head == "topology t: health manager in mode act, paused; `heron health t resume`"
    assert problem == "it cannot work now: the store is away"
    assert (empty, decision[:3], decision[22:]) == ("", "4  ", "  advised  split 1 -> 3")
    assert cause == "   under-provisioned: split (ds2): split does 500% of what it can"
    assert reason == "   the confidence is low"
    acted = replace(ADVICE, reason="under-provisioned of split: split does 500% of what it can")
    assert history_text("t", replace(records, decisions=(acted,))).splitlines()[-1] == cause, "the evidence once"
    assert "no health manager has begun" in history_text("t", HealthRecords("t-1"))
