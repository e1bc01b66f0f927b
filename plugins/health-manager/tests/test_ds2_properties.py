"""Random topologies, loads, bounds and faults of metrics: `ds2` converges or says why not, and leaves no bound."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from heron.spi.health_section import ComponentBounds, HealthSection
from heron.spi.health_values import Action, ActionKind, Observation, Subscription
from heron_health_manager.diagnosing.policy_round import Round, run_round
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.managing.manager import Observed
from heron_testing.topology_model.fluid_model import Model, Part
from heron_testing.topology_model.managed_model import ManagedModel
from heron_testing.topology_model.running_model import RunningModel

POLICY = Ds2Policy.open({})
MOST = 0.97
_STEPS = 3
_TASKS = 10_000  # of a topology; the engine refuses more, and the model of a million needs gigabytes


@dataclass(frozen=True)
class Bolt:
    """A bolt as it is drawn; `reads` counts earlier components back, and has a grouping for each."""

    cost_s: float
    ratio: float
    reads: tuple[tuple[int, str], ...]
    groups: int
    most: int | None
    tasks: int


groupings = st.sampled_from(["shuffle", "fields", "all", "lowest"])
bolts = st.lists(
    st.builds(
        Bolt,
        st.floats(1e-5, 2e-3),
        st.floats(0.05, 1.5),
        st.lists(st.tuples(st.integers(0, 3), groupings), min_size=1, max_size=3).map(tuple),
        st.sampled_from([1, 4, 7, 16, 1024]),
        st.none() | st.integers(1, 12),
        st.integers(1, 12),
    ),
    min_size=1,
    max_size=5,
)


def model_of(drawn: list[Bolt], offered: list[float]) -> Model:
    """Sources that offer that much, and bolts that each read some of what is before them."""
    parts = [Part(f"source{number}", 1e-7, offered=load) for number, load in enumerate(offered)]
    tasks = {each.name: 1 for each in parts}
    for number, bolt in enumerate(drawn):
        inputs = {}
        for back, kind in bolt.reads:
            name = parts[max(0, len(parts) - 1 - back)].name
            inputs[name] = Subscription(name, "default", kind in ("shuffle", "fields"), lowest=kind == "lowest")
        keyed = any(kind == "fields" for _, kind in bolt.reads)
        part = Part(
            f"bolt{number}",
            bolt.cost_s,
            tuple(inputs.values()),
            bolt.ratio,
            most=bolt.most,
            groups=bolt.groups if keyed else None,
        )
        parts.append(part)
        tasks[part.name] = min(bolt.tasks, part.bound or bolt.tasks)
    return Model(tuple(parts), tasks)


def looked(model: Model, now_s: float) -> Round:
    found = run_round(POLICY, [model.observe(now_s + second) for second in range(4)])
    assert found is not None
    assert found.failed == ()
    return found


def updates_of(found: Round) -> list[Action]:
    return [each.action for each in found.findings if each.action and each.action.kind is ActionKind.UPDATE]


def in_bounds(model: Model) -> bool:
    return all(1 <= model.tasks[each.name] <= (each.bound or 10**9) for each in model.parts)


@settings(max_examples=60, deadline=None)
@given(bolts, st.lists(st.floats(1.0, 1000.0), min_size=1, max_size=2))
def test_any_topology_comes_to_rest_within_few_steps_or_is_explained(drawn: list[Bolt], offered: list[float]) -> None:
    """Costs are constant, so one step is enough, unless bounds limit several components: then a step shows the next."""
    model = model_of(drawn, offered)
    for step in range(_STEPS):
        if not (updates := updates_of(looked(model, 100.0 * step))):
            break
        assume(sum({**model.tasks, **updates[0].parallelism}.values()) <= _TASKS)
        model.apply(updates[0].parallelism)
        assert in_bounds(model)
    found = looked(model, 1000.0)
    assert updates_of(found) == []
    for source, share in model.shares().items():
        if share < 1 - 1e-9:
            limits = [each.diagnosis for each in found.findings if each.diagnosis.evidence[1:]]
            assert limits, f"{source} emits {share:.0%} of what it is offered, and nothing says why"
    if not any(each.diagnosis.evidence[1:] for each in found.findings):
        for part in model.parts:
            scales = any(each.divides for each in part.inputs)
            assert not scales or model.used()[part.name] <= MOST + 1e-6


Fault = Callable[[Observation, "Faulty"], Observation]


def _missing(seen: Observation, model: Faulty) -> Observation:
    return replace(seen, samples=tuple(each for each in seen.samples if model.chance.random() < 0.5))


def _none(seen: Observation, model: Faulty) -> Observation:
    return replace(seen, samples=())


def _late(seen: Observation, model: Faulty) -> Observation:
    """The values of the time before the fault."""
    return replace(seen, samples=model.last.samples)


def _contradictory(seen: Observation, model: Faulty) -> Observation:
    samples = []
    for each in seen.samples:
        factor = model.chance.choice((0.0, 0.01, 5.0, -3.0))
        samples.append(each if each.rate_per_s is None else structs.replace(each, rate_per_s=each.rate_per_s * factor))
    return replace(seen, samples=tuple(samples))


def _from_before_a_restart(seen: Observation, model: Faulty) -> Observation:
    """A task begins to count again, and has no rate yet."""
    restarted = model.chance.choice([task for each in seen.shape.components for task in each.tasks])
    samples = [
        structs.replace(each, value=0.0, rate_per_s=None) if each.task_id == restarted else each
        for each in seen.samples
    ]
    return replace(seen, samples=tuple(samples), restarts={restarted: int(seen.at_s)})


def _clock_jumps(seen: Observation, model: Faulty) -> Observation:
    model.jump_wall(model.chance.choice((-7200.0, -30.0, 30.0, 7200.0)))
    return seen


FAULTS: dict[str, Fault] = {
    "missing": _missing,
    "none": _none,
    "late": _late,
    "contradictory": _contradictory,
    "from before a restart": _from_before_a_restart,
    "clock jumps": _clock_jumps,
}


@dataclass
class Faulty(ManagedModel):
    """A model whose observations have a fault now and then."""

    fault: str = ""
    chance: random.Random = field(default_factory=random.Random)
    last: Observation = field(init=False)

    def look(self) -> Observed:
        """`ManagedModel.look`, with the fault."""
        seen = super().look()
        if not self.fault:
            self.last = seen.observation
            return seen
        return replace(seen, observation=FAULTS[self.fault](seen.observation, self))


@pytest.mark.matrix
@settings(max_examples=8, deadline=None)
@given(st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=3), st.integers(0, 10**6))
def test_faults_of_metrics_never_leave_a_bound_and_end_in_the_right_size(faults: list[str], seed: int) -> None:
    """Each fault lasts 30 s. A wrong action is undone or corrected after it, within the waits of the safety net."""
    parts = (
        Part("lines", 1e-6),
        Part("split", 0.005, (Subscription("lines", "default"),), ratio=20.0),
        Part("count", 0.0005, (Subscription("split", "default"),), ratio=0.0, groups=64),
    )
    running = RunningModel(Model(parts, {"lines": 1, "split": 2, "count": 3}), {"lines": lambda _: 500.0}, update_s=2)
    bounds = {"split": ComponentBounds(min=2, max=9), "count": ComponentBounds(max=20)}
    section = HealthSection(mode="act", components=bounds, cool_down_s=5.0, effect_s=20.0, blacklist_s=20.0)
    policy = Ds2Policy.open({"period_s": 2, "look_back_s": 6})
    model = Faulty(running, policy, section, period_s=2, chance=random.Random(seed))

    def runs(seconds: int) -> None:
        for _ in range(seconds):
            model.second()
            tasks = running.model.tasks
            assert 2 <= tasks["split"] <= 9
            assert 1 <= tasks["count"] <= 20
            assert tasks["lines"] == 1

    runs(30)
    for fault in faults:
        model.fault = fault
        runs(30)
        model.fault = ""
        runs(20)
    runs(600)
    assert not running.behind()
    optimum = running.optimum(0.85)
    assert all(0 <= running.model.tasks[name] - needed <= 1 for name, needed in optimum.items()), running.model.tasks
