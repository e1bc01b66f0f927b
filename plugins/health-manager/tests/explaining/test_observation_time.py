"""`heron explain` looks for as long as the causes need that may be under way, and no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from msgspec import structs

from heron.spi.health_values import Observation, Sample
from heron_health_manager.diagnosing.policy_round import run_round
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.explaining.enough import observed
from heron_testing.contracts.health import busy_topology

MOST = 16  # observations, of 15 s


def at_work(sample: Sample, at_s: int) -> Sample:
    """A task that does something: its counts grow. One call of task 3 has never returned."""
    return structs.replace(sample, value=1e6 + 250.0 * at_s) if sample.name.endswith("-count") else sample


def stuck(sample: Sample, at_s: int) -> Sample:
    return sample if sample.task_id == 3 else at_work(sample, at_s)


def stuck_for_four_seconds(sample: Sample, at_s: int) -> Sample:
    return at_work(sample, max(at_s, 6) if sample.task_id == 3 else at_s)


def leak(sample: Sample, at_s: int) -> Sample:
    """One name of the fake becomes the memory of its tasks; that of task 3 grows by 5 MB/s."""
    if sample.name != "in-queue-bytes":
        return at_work(sample, at_s)
    return structs.replace(sample, name="resident-bytes", value=5e7 + (5e6 * at_s if sample.task_id == 3 else 0.0))


def moments(change: Callable[[Sample, int], Sample], period_s: int = 1) -> Iterator[Observation]:
    (moment,) = busy_topology(moments=1)
    for at_s in range(0, MOST, period_s):
        samples = tuple(change(each, at_s) for each in moment.samples)
        yield replace(moment, at_s=float(at_s), samples=samples, culprits=frozenset())


@pytest.mark.parametrize(
    ("change", "seconds", "name"),
    [
        (at_work, 5.0, "under-provisioned"),
        (stuck, 10.0, "stuck-task"),
        (stuck_for_four_seconds, 7.0, "under-provisioned"),
        (leak, 5.0, "memory-growth"),
    ],
)
def test_it_looks_until_the_cause_is_known(change: Callable[[Sample, int], Sample], seconds: float, name: str) -> None:
    """A stuck task is no slow service, and growth is seen at all; a healthy topology is quick to explain."""
    window = observed(moments(change))
    assert window[-1].at_s == seconds
    found = run_round(Ds2Policy.open({"wanted_utilisation": 1.0, "most_utilisation": 1.0}), window)
    assert found is not None
    assert name in [each.diagnosis.name for each in found.findings]


def test_growth_needs_some_observations() -> None:
    """A topology with thousands of tasks takes seconds to answer."""
    assert [each.at_s for each in observed(moments(leak, 2))] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert [each.at_s for each in observed(moments(at_work, 2))] == [0.0, 2.0, 4.0, 6.0]


def test_it_ends_with_the_observations() -> None:
    """`--observe` bounds them."""
    assert len(observed(list(moments(stuck))[:8])) == 8
