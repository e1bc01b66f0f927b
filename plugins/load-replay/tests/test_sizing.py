"""The tasks and cores that an objective needs, from observations of the model of a topology."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.spi.health_values import Observation, Sample, Subscription
from heron_load_replay.sizing import size_for
from heron_testing.topology_model.fluid_model import Model, Part


def observed(seconds: int, p99_s: float = 0.18, **tasks: int) -> list[Observation]:
    """DS2's scenario, 1,000 lines/s: the optimum is 6 tasks of `split` and 12 of `count`."""
    parts = (
        Part("lines", 1e-6, offered=1000.0),
        Part("split", 0.005, (Subscription("lines", "default"),), ratio=20.0),
        Part("count", 0.000_5, (Subscription("split", "default"),), ratio=0.0),
    )
    model = Model(parts, {"lines": 1, "split": 1, "count": 1, **tasks})
    latency = Sample("complete-latency", 0.0, "lines", 1, 1, "lines-1", p99=p99_s)
    window = [model.observe(float(second)) for second in range(seconds)]
    return [replace(each, samples=(*each.samples, latency)) for each in window]


def test_a_topology_that_is_too_small_gets_the_tasks_for_its_load() -> None:
    """Observations of the first seconds do not count; cores are what the tuples need, whatever the tasks."""
    advice = size_for(observed(12), 10.0)
    assert advice is not None
    assert advice.plan == {"lines": 1, "split": 6, "count": 12}
    assert advice.present == {"lines": 1, "split": 1, "count": 1}
    assert advice.cores == pytest.approx(15.0, rel=0.02)
    assert 0.0 < advice.p99_s <= 10.0


def test_a_shorter_latency_needs_more_tasks() -> None:
    """The model aims at nine tenths of the limit, if that is possible."""
    advice = size_for(observed(12, split=6, count=12), 0.1)
    assert advice is not None
    assert advice.plan is not None
    assert advice.plan["split"] > 6
    assert advice.p99_s <= 0.09


def test_an_objective_below_one_tuple_has_no_plan() -> None:
    """The reason is that of the model."""
    advice = size_for(observed(12, split=6, count=12), 0.001)
    assert advice is not None
    assert advice.plan is None
    assert "with any number of tasks" in advice.reason


@pytest.mark.parametrize("seconds", [0, 1, 9])
def test_a_short_replay_shows_nothing(seconds: int) -> None:
    """Its rates would be noise."""
    assert size_for(observed(seconds), 1.0) is None
