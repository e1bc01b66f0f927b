"""Bounds of a profile: random topologies and loads never leave them, and what they do not permit is explained."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heron.spi.health_section import ComponentBounds
from heron.spi.health_values import ActionKind, ComponentShape, Subscription, TopologyShape
from heron_health_manager.diagnosing.policy_round import Round, run_round
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.observing.bounds import bounded
from heron_testing.topology_model.fluid_model import Model, Part

POLICY = Ds2Policy.open({})
NONE_SUCH = {"gone": ComponentBounds(min=5)}


class Bounded(Model):
    """A topology whose plan has the bounds of a profile."""

    bounds: dict[str, ComponentBounds]

    def shape(self) -> TopologyShape:
        return bounded(super().shape(), self.bounds)


def looked(model: Model, now_s: float) -> Round:
    found = run_round(POLICY, [model.observe(now_s + second) for second in range(4)])
    assert found is not None
    assert found.failed == ()
    return found


def rests(model: Model, most_steps: int = 6) -> bool:
    """Carry out what the policy wants; whether it wants nothing more in the end."""
    for step in range(most_steps):
        actions = [each.action for each in looked(model, 100.0 * step).findings if each.action is not None]
        updates = [each for each in actions if each.kind is ActionKind.UPDATE]
        if not updates:
            return True
        model.apply(updates[0].parallelism)
        inside(model)
    return False


def inside(model: Model) -> None:
    """No component that the policy may size is outside of its bounds."""
    for component in model.shape().components:
        if component.inputs:
            assert component.least <= component.parallelism, component
            assert component.most is None or component.parallelism <= component.most, component


bounds = st.builds(
    lambda least, more: ComponentBounds(min=least, max=None if more is None else least + more),
    st.integers(1, 5),
    st.none() | st.integers(0, 6),
)
bolts = st.lists(
    st.tuples(
        st.floats(1e-5, 2e-3),  # cost
        st.floats(0.05, 1.5),  # ratio
        st.none() | st.integers(1, 8),  # key groups
        bounds,
        st.integers(0, 3),  # tasks above the least
    ),
    min_size=1,
    max_size=5,
)


def model_of(drawn: list[tuple[float, float, int | None, ComponentBounds, int]], offered: float) -> Bounded:
    """A chain; each component begins within its bounds."""
    parts, tasks, limits, before = [Part("source", 1e-7, offered=offered)], {"source": 1}, dict(NONE_SUCH), "source"
    for number, (cost_s, ratio, groups, limit, above) in enumerate(drawn):
        name = f"bolt{number}"
        parts.append(Part(name, cost_s, (Subscription(before, "default"),), ratio, most=groups))
        most = min((each for each in (groups, limit.max) if each is not None), default=limit.min + above)
        tasks[name] = min(limit.min + above, most)
        limits[name], before = limit, name
    model = Bounded(tuple(parts), tasks)
    model.bounds = limits
    return model


@given(bolts, st.floats(1.0, 3000.0))
def test_no_plan_leaves_its_bounds_and_a_held_source_is_explained(
    drawn: list[tuple[float, float, int | None, ComponentBounds, int]], offered: float
) -> None:
    """Never below the least, above the greatest, or beyond the key groups; and it comes to rest."""
    model = model_of(drawn, offered)
    inside(model)
    assert rests(model)
    if model.shares()["source"] < 1 - 1e-9:
        evidence = [each.diagnosis.evidence[1:] for each in looked(model, 900.0).findings]
        assert any(evidence), "the source is throttled, and nothing says why"


def test_the_smaller_of_two_bounds_counts() -> None:
    """A topology with four key groups cannot have six tasks, whatever the profile says."""
    shape = TopologyShape(
        "t", (ComponentShape("count", "bolt", {1: 1}, most=4), ComponentShape("lines", "spout", {2: 1}))
    )
    (count, lines) = bounded(shape, {"count": ComponentBounds(min=6, max=9)}).components
    assert (count.least, count.most) == (4, 4)
    assert (lines.least, lines.most) == (1, None)
    (count, _) = bounded(shape, {"count": ComponentBounds(max=3)}).components
    assert (count.least, count.most) == (1, 3)
