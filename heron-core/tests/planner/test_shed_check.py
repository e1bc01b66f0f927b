"""What ``topology.shed`` needs of the streams of its spout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.api_constants import TOPOLOGY_COLUMNS, TOPOLOGY_SHED
from heron.api.definition import TopologyDefinition
from heron.errors import ConfigError, TopologyError
from heron.planner.runtime_config import with_changes
from heron.planner.shed_check import check_shedding, sheds_somewhere
from heron_testing.builders import bolt, spout, stream, subscription, topology

PLAIN = topology(spout("words", stream("word", "level")), bolt("count", subscription("words"), outputs=(stream("n"),)))


def with_shed(value: object, component: str = "words", **others: object) -> TopologyDefinition:
    """The topology whose component has the key."""
    return replace(
        PLAIN,
        components=tuple(
            replace(each, config={TOPOLOGY_SHED: value, **others}) if each.name == component else each
            for each in PLAIN.components
        ),
    )


def test_a_topology_that_fits_passes() -> None:
    """Also the policy none makes its bolts expect weights."""
    check_shedding(PLAIN)
    check_shedding(with_shed({"policy": "by-key", "rate": 1, "key": ["word", "level"]}))
    assert not sheds_somewhere(PLAIN)
    assert sheds_somewhere(with_shed({"policy": "none"}))


@pytest.mark.parametrize(
    ("value", "component", "others", "problem"),
    [
        ({"policy": "by-key", "rate": 1, "key": "wrod"}, "words", {}, "no field 'wrod'.*nearest: 'word'"),
        ({"policy": "priority", "rate": 1, "priority": "n"}, "words", {}, "no field 'n'"),
        ({"policy": "uniform", "rate": 1, "stream": "other"}, "words", {}, "no stream 'other'"),
        ({"policy": "uniform", "rate": 1}, "words", {TOPOLOGY_COLUMNS: True}, "only rows are shed"),
        ({"policy": "uniform", "rate": 1}, "count", {}, "only a spout sheds"),
    ],
)
def test_a_topology_that_does_not_fit_is_refused(
    value: object, component: str, others: dict[str, object], problem: str
) -> None:
    """At submission, before a process starts."""
    with pytest.raises(TopologyError, match=problem):
        check_shedding(with_shed(value, component, **others))


def test_shedding_changes_in_a_running_topology_that_expects_it() -> None:
    """Bolts learn at their start whether tuples may have weights."""
    change = {"words": {TOPOLOGY_SHED: {"policy": "uniform", "rate": 10}}}
    changed = with_changes(with_shed({"policy": "none"}), change)
    assert changed.component("words").config[TOPOLOGY_SHED] == {"policy": "uniform", "rate": 10}
    with pytest.raises(ConfigError, match="submitted with it"):
        with_changes(PLAIN, change)
    with pytest.raises(ConfigError, match="no field"):
        with_changes(
            with_shed({"policy": "none"}), {"words": {TOPOLOGY_SHED: {"policy": "by-key", "rate": 1, "key": "x"}}}
        )
