"""The values that the parts of a health policy exchange. All are frozen, and none refers to a process or a socket.

Those of which a round has thousands are structs of msgspec, which are made ten times as fast as frozen dataclasses;
`msgspec.structs.replace` copies them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

import msgspec

__all__ = [
    "Action",
    "ActionKind",
    "ComponentShape",
    "Decision",
    "DecisionState",
    "Diagnosis",
    "Expectation",
    "Measurement",
    "Measurements",
    "Observation",
    "Rhythm",
    "Sample",
    "Subject",
    "Subscription",
    "Symptom",
    "TopologyShape",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a policy is asked, and how many seconds of observations it gets, at least one period.

    Raises:
        ValueError: when the period is not above 0 s, or the look-back window is shorter.
    """

    period_s: float
    look_back_s: float

    def __post_init__(self) -> None:
        """Check both."""
        if not 0 < self.period_s <= self.look_back_s:
            msg = f"period_s {self.period_s:g} s and look_back_s {self.look_back_s:g} s are not 0 < period <= look back"
            raise ValueError(msg)


class Subject(msgspec.Struct, frozen=True, order=True, gc=False):
    """What a value is about: a component, one of its tasks, a container, or the topology (all empty)."""

    component: str = ""
    task_id: int = 0
    container_id: int = 0

    def __str__(self) -> str:
        """Return the subject as people read it: ``count/3``, ``count``, ``container 2``, ``the topology``."""
        if self.component:
            return f"{self.component}/{self.task_id}" if self.task_id else self.component
        return f"container {self.container_id}" if self.container_id else "the topology"


@dataclass(frozen=True, slots=True)
class Subscription:
    """An input of a component. `divides`: each tuple goes to one task, so that more tasks have less each.

    Otherwise each tuple goes to all tasks, or with `lowest` to the task with the lowest id.
    """

    component: str
    stream: str
    divides: bool = True
    lowest: bool = False


@dataclass(frozen=True, slots=True)
class ComponentShape:
    """A component of the plan: its tasks by container, its inputs, and the bounds of its parallelism.

    `kind` is ``spout`` or ``bolt``. `tasks` is the container of each task. `most` includes the number of key groups
    where an input is grouped by key; None without a bound. `groups` is that number, which tasks divide evenly; None
    where no input is grouped by key. `most_pending` is the number of incomplete roots that each task of a spout may
    have (`topology.max.spout.pending`); None of a bolt. `keys_moved`: an update has moved key groups between tasks, so
    their totals since their start do not compare.
    """

    name: str
    kind: str
    tasks: Mapping[int, int]
    inputs: tuple[Subscription, ...] = ()
    least: int = 1
    most: int | None = None
    groups: int | None = None
    most_pending: int | None = None
    keys_moved: bool = False

    @property
    def parallelism(self) -> int:
        """The number of tasks."""
        return len(self.tasks)


@dataclass(frozen=True, slots=True)
class TopologyShape:
    """The plan of a topology: its components, each behind those that it reads from.

    `version` differs between plans with other tasks, or other owners of key groups. `changing`: an update is under way,
    so rates say little about either plan. `loses`: a process that ends loses the tuples that it has, because delivery
    is at most once. `objectives` are those that the topology itself sets (``topology.objectives``), as text.
    """

    name: str
    components: tuple[ComponentShape, ...]
    version: int = 0
    changing: bool = False
    loses: bool = False
    objectives: tuple[str, ...] = ()

    def component(self, name: str) -> ComponentShape:
        """Return the component of that name.

        Raises:
            KeyError: when the plan has no such component.
        """
        for each in self.components:
            if each.name == name:
                return each
        raise KeyError(name)

    def containers(self) -> tuple[int, ...]:
        """Return the ids of the containers that have tasks, ascending."""
        return tuple(sorted({container for each in self.components for container in each.tasks.values()}))


class Sample(msgspec.Struct, frozen=True, gc=False):
    """A metric at one moment, as `heron metrics` shows it.

    `component` is "" and `task_id` is 0 for a process of the engine, whose `process` is its name, such as ``stmgr``.
    `rate_per_s` is the growth of a counter in its last export period; None if it was not measured. A process that has
    not reported for some periods is *stale*: it has no gauges and no rates.
    """

    name: str
    value: float
    component: str = ""
    task_id: int = 0
    container_id: int = 0
    process: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    rate_per_s: float | None = None
    p99: float | None = None


_MOST_SAMPLES_KEPT = 10_000
"""With more samples, results are computed again, because keeping them would fill the memory."""


class _Derived:
    """Holds what is derived from an observation. It is no field, so it is neither compared nor stored."""

    __slots__ = ("_index", "_kept")


@dataclass(frozen=True, slots=True)
class Observation(_Derived):
    """A topology at one moment. `at_s` is monotonic seconds of the observer.

    `restarts` counts the restarts of each task, and `recent_restarts` those of the last 10 min that the observer knows
    of. `culprits` are the tasks whose full buffers throttle spouts now. `silent` are the containers that their peers do
    not reach, with the seconds. `blocked` are the containers whose host is known, with the seconds for which it has
    been on the list of blocked hosts; 0 if it is not.
    """

    at_s: float
    shape: TopologyShape
    samples: tuple[Sample, ...] = ()
    restarts: Mapping[int, int] = field(default_factory=dict)
    culprits: frozenset[int] = frozenset()
    silent: Mapping[int, float] = field(default_factory=dict)
    recent_restarts: Mapping[int, int] = field(default_factory=dict)
    blocked: Mapping[int, float] = field(default_factory=dict)

    def named(self, name: str) -> Sequence[Sample]:
        """Return the samples of that metric, in their order. Only the first call looks at all samples."""
        index: dict[str, list[Sample]] | None = getattr(self, "_index", None)
        if index is None:
            index = {}
            for sample in self.samples:
                index.setdefault(sample.name, []).append(sample)
            object.__setattr__(self, "_index", index)
        return index.get(name, ())

    def kept(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what was computed for that key before, or compute it now and keep it if nothing is raised.

        The key names the computation and all of its input besides this observation. All rounds that have the
        observation in their window share the result, so nobody may change it. With more than 10,000 samples nothing is
        kept.
        """
        if len(self.samples) > _MOST_SAMPLES_KEPT:
            return compute()
        known: dict[Hashable, object] | None = getattr(self, "_kept", None)
        if known is None:
            known = {}
            object.__setattr__(self, "_kept", known)
        if key not in known:
            known[key] = compute()
        return cast("T", known[key])


class Measurement(msgspec.Struct, frozen=True, gc=False):
    """A number about a subject. `detail` tells several of the same name apart, such as the streams of a component."""

    name: str
    subject: Subject
    value: float
    detail: str = ""


class _AboutSubject(Protocol):
    @property
    def subject(self) -> Subject: ...


class Measurements:
    """The measurements of one round, by name and subject, and the plan that they are about. Immutable.

    `kept` lets the parts of a round share what follows from them.
    """

    __slots__ = ("_by_name", "_kept", "shape")

    def __init__(self, shape: TopologyShape, measured: Iterable[Measurement] = ()) -> None:
        self.shape = shape
        self._by_name: dict[str, dict[tuple[Subject, str], Measurement]] = {}
        for each in measured:
            self._by_name.setdefault(each.name, {})[each.subject, each.detail] = each
        self._kept: dict[Hashable, object] = {}

    def kept(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what was computed for that key before, or compute it now and keep it if nothing is raised.

        The key names the computation and all of its input besides these measurements.
        """
        if key not in self._kept:
            self._kept[key] = compute()
        return cast("T", self._kept[key])

    def of(self, name: str) -> Iterator[Measurement]:
        """Yield every measurement of that name."""
        return iter(self._by_name.get(name, {}).values())

    def value(self, name: str, subject: Subject, detail: str = "") -> float | None:
        """Return one value, or None if it was not measured."""
        found = self._by_name.get(name, {}).get((subject, detail))
        return None if found is None else found.value

    def of_tasks(self, name: str, component: str) -> dict[int, float]:
        """Return the values of a component's tasks by task; tasks without a value are missing."""
        found = self._by_name.get(name, {})
        subjects = {task: Subject(component, task) for task in self.shape.component(component).tasks}
        return {task: found[each, ""].value for task, each in subjects.items() if (each, "") in found}


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something that is out of its range: its name, and the value and the limit as numbers."""

    name: str
    subject: Subject
    value: float
    limit: float


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A cause: its name (``slow-host``), what suffers from it, and a confidence from 0 (excluded) to 1.

    `evidence` are statements for people, the strongest first, each with the numbers that show it.
    """

    name: str
    subject: Subject
    confidence: float
    evidence: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check the confidence and the evidence."""
        if not 0.0 <= self.confidence <= 1.0:
            msg = f"diagnosis {self.name!r}: confidence {self.confidence} is not within 0 and 1"
            raise ValueError(msg)
        if not self.evidence:
            msg = f"diagnosis {self.name!r} of {self.subject} has no evidence; say what shows it"
            raise ValueError(msg)


class ActionKind(enum.Enum):
    """What an action changes."""

    UPDATE = "update"
    """The parallelism of components and the number of containers, all in one plan."""
    RESTART = "restart"
    """One container is stopped and started again; the scheduler may choose another host."""
    REBALANCE = "rebalance"
    """Key groups of a component move to other tasks."""
    CONFIGURE = "configure"
    """Values of the configuration, which take effect while the topology runs."""
    ADVISE = "advise"
    """Nothing: a person has to act, as `command` or `text` says."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The effect of an action: a measurement of a subject will be at least or at most a value."""

    measurement: str
    subject: Subject
    at_least: float | None = None
    at_most: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value is as expected."""
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True, slots=True)
class Action:
    """A proposal against a diagnosis.

    `parallelism` are absolute numbers of tasks (UPDATE), and `before` those that it replaces. `containers` is a number
    of containers with tasks (UPDATE), which replaces `containers_before`; 0 leaves it to the packing. `container_id` is
    a container (RESTART), `component` a component (REBALANCE). `settings` are new values by component and key
    (CONFIGURE), and `settings_before` those that they replace. `elsewhere`: the container should start again on another
    host, if the scheduler can avoid hosts (RESTART). `text` is one line for people. `command` does the same
    by hand; "" if there is none.
    """

    kind: ActionKind
    text: str
    command: str = ""
    parallelism: Mapping[str, int] = field(default_factory=dict)
    before: Mapping[str, int] = field(default_factory=dict)
    containers: int = 0
    containers_before: int = 0
    container_id: int = 0
    component: str = ""
    settings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    settings_before: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    elsewhere: bool = False
    expected: Expectation | None = None


class DecisionState(enum.Enum):
    """How far a decision has come."""

    ADVISED = "advised"
    """It is shown, and a person may approve it."""
    STARTED = "started"
    """It is being carried out, or its effect is awaited."""
    EFFECTIVE = "effective"
    """Its effect was seen."""
    INEFFECTIVE = "ineffective"
    """Its effect did not come; it is undone if it has a former value, and not tried again for a while."""
    UNMEASURED = "unmeasured"
    """It was carried out, and its effect could not be measured; nothing is undone."""
    FAILED = "failed"
    """It could not be carried out."""
    ABANDONED = "abandoned"
    """It was recorded, and the health manager ended before it began it. Nothing was changed."""
    SUPERSEDED = "superseded"
    """Somebody else has changed the plan meanwhile, so its effect says nothing."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The record of what was decided, and why. `at_s` is wall-clock seconds; `number` grows with each decision.

    `base` and `target` are the ids of the packing plans before and after an action that changes the plan; "" for
    others. An action that was begun can only change the plan `base`. `undoes` is the number of the decision that this
    one undoes, or 0. `carried_out_at_s` is when its action was complete; None before, or if nobody has seen it.
    """

    number: int
    at_s: float
    policy: str
    diagnosis: Diagnosis
    action: Action
    state: DecisionState
    reason: str
    base: str = ""
    target: str = ""
    undoes: int = 0
    carried_out_at_s: float | None = None
