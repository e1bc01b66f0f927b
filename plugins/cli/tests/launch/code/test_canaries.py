"""Which share of the tasks changes first, and what each task has done meanwhile."""

from __future__ import annotations

import pytest

from heron.errors import UsageError
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan
from heron_cli.launch.code.canaries import chosen_canaries, observed
from heron_cli.launch.code.task_health import TaskCounts
from heron_cli.topologies.running.code_request import parsed_share


@pytest.mark.parametrize(("text", "share"), [("10%", 0.1), ("0.25", 0.25), ("99%", 0.99)])
def test_a_share(text: str, share: float) -> None:
    assert parsed_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["0%", "100%", "1", "-1%", "many", ""])
def test_no_share(text: str) -> None:
    with pytest.raises(UsageError, match="above 0% and below 100%, such as 10%"):
        parsed_share(text)


def test_each_changed_component_has_a_canary() -> None:
    """The share is rounded, and at least one task."""
    many = tuple(InstancePlan("count", number, number - 2, NO_RESOURCE) for number in range(2, 22))
    instances = (InstancePlan("word", 1, 0, NO_RESOURCE), *many, InstancePlan("other", 22, 0, NO_RESOURCE))
    packing = PackingPlan("plan", (ContainerPlan(1, instances, NO_RESOURCE),))
    assert chosen_canaries(packing, ["word", "count"], 0.1) == (1, 20, 21)
    assert chosen_canaries(packing, ["count"], 0.01) == (21,)


def test_what_tasks_do_is_counted_until_nothing_goes_on() -> None:
    """A change that returns by itself is not observed to its end."""
    counts = iter([{1: TaskCounts(tuples=5)}, {1: TaskCounts(tuples=9), 2: TaskCounts(tuples=3)}])
    assert observed(lambda: next(counts), 60.0, lambda: False) == {1: TaskCounts(tuples=4), 2: TaskCounts(tuples=3)}
