"""A model that a health manager looks after: its whole loop, on a clock that the model moves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heron.errors import StateConflictError
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan
from heron.spi.health import HealthPolicy
from heron.spi.health_section import HealthSection
from heron.spi.health_values import Action
from heron.state_nodes.health_records import HealthRecords
from heron_cli.launch.update import TopologyUpdate
from heron_health_manager.managing.carrier import PlannedAction
from heron_health_manager.managing.manager import HealthManager, Observed
from heron_health_manager.managing.pace import Pace
from heron_health_manager.managing.policy_runner import PolicyRunner
from heron_health_manager.managing.record_book import KeptRecords, RecordBook
from heron_health_manager.managing.recovery import PlanFacts
from heron_health_manager.observing.bounds import bounded
from heron_testing.fake_clock import FakeClock
from heron_testing.topology_model.running_model import RunningModel

__all__ = ["Change", "ManagedModel", "packing_of"]


def packing_of(tasks: Mapping[str, int], number: int) -> PackingPlan:
    """The packing plan of these tasks, with two instances in each container."""
    instances = [InstancePlan(name, 0, index, NO_RESOURCE) for name, many in tasks.items() for index in range(many)]
    placed = [replace(each, task_id=task) for task, each in enumerate(instances, 1)]
    containers = tuple(
        ContainerPlan(1 + first // 2, tuple(placed[first : first + 2]), NO_RESOURCE)
        for first in range(0, len(placed), 2)
    )
    return PackingPlan(f"plan-{number}", containers, len(placed))


class RecordsInMemory(RecordBook):
    """The records of one health manager, which nobody else writes."""

    def __init__(self) -> None:
        self._kept = KeptRecords(HealthRecords("model-1"), 0)

    def read(self) -> KeptRecords:
        """`RecordBook.read`."""
        return self._kept

    def write(self, kept: KeptRecords, records: HealthRecords) -> KeptRecords:
        """`RecordBook.write`."""
        if kept.version != self._kept.version:
            msg = "the records have changed"
            raise StateConflictError(msg)
        self._kept = KeptRecords(records, kept.version + 1)
        return self._kept


@dataclass(frozen=True)
class Change:
    """An update: when it was complete, and the number of tasks of the components that it changed."""

    at_s: float
    parallelism: Mapping[str, int]


@dataclass
class ManagedModel:
    """Carries the actions of a policy out. It is observed each `period_s` seconds, with its section `health`."""

    running: RunningModel
    policy: HealthPolicy
    section: HealthSection = field(default_factory=lambda: HealthSection(mode="act"))
    period_s: int = 1
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin the loop."""
        self._clock = FakeClock(0.0)
        self.book = RecordsInMemory()
        policies: Sequence[PolicyRunner] = (PolicyRunner("policy", self.policy),)
        pace = Pace(self.period_s)
        self._manager = HealthManager(self.section, policies, self.book, self.look, self, self._clock, pace)

    def give_up(self, containers: Collection[int]) -> None:
        """`Carries.give_up`: its updates are complete at once."""

    def second(self) -> None:
        """Let a second pass; the health manager sees the topology at the end of a period."""
        self.running.second()
        self._follow_time()
        if self.running.now_s % self.period_s == 0:
            self._manager.round()

    def runs(self, seconds: int) -> list[Change]:
        """Let time pass; return the changes of the plan in it."""
        end_s, before = self.running.now_s + seconds, len(self.changes)
        while self.running.now_s < end_s:
            self.second()
        return self.changes[before:]

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock."""
        self._clock.jump_wall(seconds)

    def look(self) -> Observed:
        """What the health manager sees."""
        seen = self.running.observe()
        shape = bounded(seen.shape, self.section.components)
        packing = packing_of(self.running.model.tasks, self.running.model.version)
        return Observed(replace(seen, shape=shape), PlanFacts(shape, packing.id))

    def plan(self, action: Action) -> PlannedAction:
        """`Carries.plan`."""
        model = self.running.model
        before = packing_of(model.tasks, model.version)
        after = packing_of({**model.tasks, **action.parallelism}, model.version + 1)
        return PlannedAction(action, TopologyUpdate("model", before, after, {}))

    def carry_out(self, planned: PlannedAction) -> None:
        """`Carries.carry_out`: it returns when the update is complete."""
        self.running.update(planned.action.parallelism)
        self._follow_time()
        self.changes.append(Change(self.running.now_s, dict(planned.action.parallelism)))

    def _follow_time(self) -> None:
        self._clock.advance(self.running.now_s - self._clock.monotonic_s())
