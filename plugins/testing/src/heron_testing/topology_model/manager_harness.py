"""A health manager with a model of a topology and a real store of records, for tests of its loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from heron.errors import HeronError, StateUnavailableError, UnreachableError
from heron.planner.packing_plan import PackingPlan
from heron.spi.health_section import HealthSection
from heron.spi.health_values import (
    Action,
    DecisionState,
    Subscription,
    TopologyShape,
)
from heron.spi.statemgr import NodeKind, Versioned
from heron.state_nodes.health_records import HealthRecords
from heron_cli.launch.update import TopologyUpdate
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.managing.carrier import PlannedAction
from heron_health_manager.managing.manager import HealthManager, Observed
from heron_health_manager.managing.pace import Pace
from heron_health_manager.managing.policy_runner import PolicyRunner
from heron_health_manager.managing.record_book import RecordBook
from heron_health_manager.managing.recovery import INTERRUPTED, PlanFacts
from heron_health_manager.observing.bounds import bounded
from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_testing.fake_clock import FakeClock
from heron_testing.topology_model.fluid_model import Model, Part
from heron_testing.topology_model.managed_model import packing_of

__all__ = ["RHYTHM", "ManagerHarness", "ModelTopology", "Store", "word_count"]

RHYTHM = {"period_s": 1, "look_back_s": 3}


def word_count(offered: float = 1000.0) -> Model:
    """Lines, split into words, which are counted; `offered` lines per second."""
    lines, words = Subscription("lines", "default"), Subscription("split", "default")
    parts = (
        Part("lines", 1e-6, offered=offered),
        Part("split", 0.005, (lines,), ratio=20.0),
        Part("count", 0.0005, (words,), ratio=0.0),
    )
    return Model(parts, {"lines": 1, "split": 1, "count": 1})


@dataclass
class ModelTopology:
    """The topology, and what carries actions out against it; `fails` is raised by the next plan or update.

    `fails_to_end` is raised after the change of the plan. `takes` is called while an action is carried out: it lets
    time pass. `prepared` is the target of an update that waits for containers, `withdrawn` that of one that was given
    up.
    """

    model: Model
    fails_to_plan: HeronError | None = None
    fails: HeronError | None = None
    fails_to_end: HeronError | None = None
    loses_answer: bool = False
    takes: Callable[[], None] = lambda: None
    done: list[dict[str, int]] = field(default_factory=list)
    prepared: str = ""
    withdrawn: str = ""

    @property
    def packing(self) -> PackingPlan:
        """The present packing plan."""
        return packing_of(self.model.tasks, self.model.version)

    def plan(self, action: Action) -> PlannedAction:
        """`Carries.plan`."""
        if self.fails_to_plan is not None:
            raise self.fails_to_plan
        after = packing_of({**self.model.tasks, **action.parallelism}, self.model.version + 1)
        return PlannedAction(action, TopologyUpdate("model", self.packing, after, {}))

    def carry_out(self, planned: PlannedAction) -> None:
        """`Carries.carry_out`."""
        if self.fails is not None:
            raise self.fails
        self.takes()
        if planned.action.parallelism:  # a restart keeps the plan
            self.model.apply(planned.action.parallelism)
        self.done.append(dict(planned.action.parallelism))
        if self.fails_to_end is not None:
            raise self.fails_to_end
        if self.loses_answer:
            msg = "no answer"
            raise UnreachableError(msg)

    def give_up(self, containers: Collection[int]) -> None:
        """`Carries.give_up`: the scheduler has none of them."""
        self.prepared, self.withdrawn = "", self.prepared

    def facts(self, shape: TopologyShape) -> PlanFacts:
        """What is known of the plan and its update."""
        why = INTERRUPTED if self.withdrawn else ""
        shape = replace(shape, changing=shape.changing or bool(self.prepared))
        return PlanFacts(shape, self.packing.id, self.withdrawn, why, self.prepared)


class Store(LocalFsStateManager):
    """A state manager that can be away."""

    away = False
    writes_fail = False

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        """`StateManager.get`."""
        _check(self.away)
        return super().get(kind, topology)

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """`StateManager.set`."""
        _check(self.away or self.writes_fail)
        return super().set(kind, topology, value, expected=expected)


def _check(away: bool) -> None:
    if away:
        msg = "the store is away"
        raise StateUnavailableError(msg)


class ManagerHarness:
    """A health manager with its topology and its store; `dies` makes a new one, which knows only the records."""

    def __init__(self, folder: Path, section: HealthSection, *, control: bool = True) -> None:
        self.store = Store.open({"root": str(folder)})
        self.topology = ModelTopology(word_count())
        self.clock = FakeClock()
        self.section, self.control = section, control
        self.policies: Sequence[PolicyRunner] = (PolicyRunner("ds2", Ds2Policy.open(RHYTHM)),)
        self.looks_fail: HeronError | None = None
        self.dies()

    def dies(self) -> None:
        """Replace the health manager by a new one, which knows only the records."""
        self.book = RecordBook(self.store, "model", "model-1")
        carrier = self.topology if self.control else None
        self.pace = Pace(1.0)
        self.manager = HealthManager(self.section, self.policies, self.book, self.look, carrier, self.clock, self.pace)

    def look(self) -> Observed:
        """What the health manager sees; raises `looks_fail` if it is set."""
        if self.looks_fail is not None:
            raise self.looks_fail
        seen = self.topology.model.observe(self.clock.monotonic_s())
        shape = bounded(seen.shape, self.section.components)
        facts = self.topology.facts(shape)
        return Observed(replace(seen, shape=facts.shape), facts)

    def runs(self, seconds: int) -> HealthRecords:
        """Let a number of rounds pass, one each second; return the records."""
        for _ in range(seconds):
            self.clock.advance(1.0)
            self.manager.round()
        return self.records

    @property
    def records(self) -> HealthRecords:
        """The records of the store."""
        return self.book.read().records

    @property
    def states(self) -> list[DecisionState]:
        """The states of the decisions."""
        return [each.state for each in self.records.decisions]
