"""`FirstFit` finds the same container as a linear search."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan, Resource
from heron_packing_kit.capacity import Capacity
from heron_packing_kit.first_fit import FirstFit
from heron_packing_kit.plan_draft import PlanDraft

_LIMIT = Resource(10.0, 10, 10)
_AMOUNTS = st.builds(Resource, st.integers(1, 10).map(float), st.integers(1, 10), st.integers(1, 10))


def _capacity(needs: dict[str, Resource], most: int = 4) -> Capacity:
    return Capacity(_LIMIT, NO_RESOURCE, most, needs)


def _fits(need: Resource, used: list[Resource], most: int) -> bool:
    total = sum(used, need)
    return len(used) < most and all(one <= limit for one, limit in zip(total.amounts(), _LIMIT.amounts(), strict=True))


@settings(max_examples=150)
@given(
    instances=st.lists(st.tuples(_AMOUNTS, st.integers(0, 12)), max_size=30),
    taken=st.lists(_AMOUNTS, max_size=12),
    most=st.integers(1, 6),
)
def test_takes_the_first_container_with_room_from_the_start_on(
    instances: list[tuple[Resource, int]], taken: list[Resource], most: int
) -> None:
    """Each resource and the number of instances can be exhausted. The search wraps around once."""
    plan = PackingPlan(
        "p",
        tuple(ContainerPlan(at + 1, (InstancePlan("old", at + 1, at, each),), each) for at, each in enumerate(taken)),
    )
    capacity = _capacity({str(at): need for at, (need, _) in enumerate(instances)}, most)
    first_fit = FirstFit(PlanDraft(plan), capacity, len(instances))
    used = [[each] for each in taken]
    for at, (need, wished) in enumerate(instances):
        start = min(wished, len(used))
        order = [*range(start, len(used)), *range(start)]
        expected = next((each for each in order if _fits(need, used[each], most)), len(used))
        assert first_fit.place(str(at), 0, start) == expected
        if expected == len(used):
            used.append([])
        used[expected].append(need)
    assert first_fit.containers() == len(used)


def test_free_resources_of_each_container() -> None:
    """The order is by position. A container above the present capacity has a negative amount."""
    large = Resource(12.0, 5, 5)
    plan = PackingPlan("p", (ContainerPlan(3, (InstancePlan("old", 1, 0, large),), large),))
    first_fit = FirstFit(PlanDraft(plan), _capacity({"a": Resource(1.0, 1, 1)}), 2)
    assert first_fit.free() == [Resource(-2.0, 5, 5)]
    assert first_fit.place("a", 0) == 1
    assert first_fit.free() == [Resource(-2.0, 5, 5), Resource(9.0, 9, 9)]
