"""The value of ``topology.shed``, and what it needs of a topology."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from heron.api.api_constants import TOPOLOGY_SHED
from heron.api.config import check_config
from heron.api.shedding import Shedding, SheddingPolicy, shedding_of
from heron.errors import ConfigError


def test_each_policy_is_read() -> None:
    """The config carries plain JSON."""
    found = [
        shedding_of({TOPOLOGY_SHED: value})
        for value in (
            {"policy": "uniform", "rate": 1000},
            {"policy": "by-key", "latency": 0.5, "key": "word", "stream": "words"},
            {"policy": "by-key", "rate": 5, "key": ["a", "b"]},
            {"policy": "priority", "rate": 2.5, "priority": "level"},
            {"policy": "none"},
        )
    ]
    assert found == [
        Shedding(SheddingPolicy.UNIFORM, 1000.0),
        Shedding(SheddingPolicy.BY_KEY, None, 0.5, ("word",), stream="words"),
        Shedding(SheddingPolicy.BY_KEY, 5.0, None, ("a", "b")),
        Shedding(SheddingPolicy.PRIORITY, 2.5, priority="level"),
        Shedding(SheddingPolicy.NONE),
    ]
    assert shedding_of({}) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (7, "not an object"),
        ({"policy": "uniform"}, "one target"),
        ({"policy": "uniform", "rate": 1, "latency": 1}, "one target"),
        ({"policy": "none", "rate": 1}, "has no target"),
        ({"policy": "unifrom", "rate": 1}, "nearest: 'uniform'"),
        ({"policy": "uniform", "rate": 0}, "above 0"),
        ({"policy": "uniform", "rate": "fast"}, "above 0"),
        ({"policy": "by-key", "rate": 1}, "names of its fields"),
        ({"policy": "uniform", "rate": 1, "key": "word"}, "belongs to the policy by-key"),
        ({"policy": "uniform", "rate": 1, "priority": "level"}, "for the policy priority"),
        ({"policy": "by-key", "rate": 1, "key": 7}, "list of names"),
        ({"policy": "uniform", "rates": 1}, "nearest: 'rate'"),
    ],
)
def test_a_wrong_value_is_refused_when_it_is_given(value: object, problem: str) -> None:
    """The error names the component, the path of the key, and the remedy."""
    config: Mapping[str, object] = {TOPOLOGY_SHED: value}
    with pytest.raises(ConfigError, match=problem) as refused:
        check_config(config, "component 'words'", component=True)
    assert str(refused.value).startswith(f"component 'words': {TOPOLOGY_SHED}")
