"""What follows from an observation is kept with it, and is no part of its value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.spi.health_values import Observation, Sample, TopologyShape

SHAPE = TopologyShape("words", ())


@pytest.mark.parametrize(("samples", "computed"), [(10_000, 1), (10_001, 2)])
def test_what_follows_is_computed_once_except_of_many_samples(samples: int, computed: int) -> None:
    """The sums of a large topology would fill the memory."""
    observation = Observation(1.0, SHAPE, (Sample("emit-count", 1.0),) * samples)
    calls = []

    def count() -> int:
        calls.append(len(observation.named("emit-count")))
        return calls[-1]

    assert observation.kept("count", count) == observation.kept("count", count) == samples
    assert len(calls) == computed


def test_another_observation_has_nothing_kept() -> None:
    """A copy with other samples must not show what followed from the first ones; equality ignores it."""
    observation = Observation(1.0, SHAPE, (Sample("emit-count", 1.0),))
    assert observation.kept(("sum", "emit-count"), lambda: 1.0) == 1.0
    assert observation.kept(("sum", "ack-count"), lambda: 2.0) == 2.0
    assert observation == replace(observation)
    other = replace(observation, samples=(Sample("emit-count", 3.0),))
    assert other.kept(("sum", "emit-count"), lambda: 3.0) == 3.0
    assert other.named("emit-count")[0].value == 3.0
