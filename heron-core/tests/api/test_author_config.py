"""The check of configurations: known keys, conversions, refusals."""

from __future__ import annotations

import json

import pytest

from heron.api.config import CONFIG_KEYS, TopologyReliabilityMode, check_config, merged_config, setting
from heron.errors import ConfigError

ITSELF: list[object] = []
ITSELF.append(ITSELF)


def test_heronpys_strings_become_values_of_the_keys_type() -> None:
    """heronpy programs write numbers and truth values as strings."""
    given = {
        "topology.stmgrs": "2",
        "topology.message.timeout.secs": "2.5",
        "topology.debug": "TRUE",
        "topology.enable.message.timeouts": False,
        "topology.tick.tuple.freq.secs": 3,
        "topology.max.spout.pending": 10.0,
        "topology.component.output.bps": "-1",
        "topology.reliability.mode": TopologyReliabilityMode.ATLEAST_ONCE,
    }
    checked = check_config(given, "here")
    assert checked == {
        "topology.stmgrs": 2,
        "topology.message.timeout.secs": 2.5,
        "topology.debug": True,
        "topology.enable.message.timeouts": False,
        "topology.tick.tuple.freq.secs": 3.0,
        "topology.max.spout.pending": 10,
        "topology.component.output.bps": -1,
        "topology.reliability.mode": "ATLEAST_ONCE",
    }
    assert type(checked["topology.reliability.mode"]) is str


def test_an_authors_own_keys_are_left_alone() -> None:
    """A string of digits stays a string: a guess would change the author's data."""
    given = {"path": "007", "nested": {"list": [1, 2.5, None, True, ("a",)]}}
    assert check_config(given, "here") == {"path": "007", "nested": {"list": [1, 2.5, None, True, ["a"]]}}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"topology.stmgr": 1}, r"here: unknown key 'topology.stmgr' \(nearest: 'topology.stmgrs'\)"),
        ({"topology.stmgrs": "two"}, r"here: topology.stmgrs: 'two' is not a whole number; give one in containers"),
        ({"topology.stmgrs": 0}, r"topology.stmgrs: 0 containers is below the minimum, 1 containers"),
        ({"topology.stmgrs": 20_000}, "20000 containers is above the greatest value, 10000 containers"),
        ({"topology.stmgrs": 1.5}, r"1.5 is not a whole number"),
        ({"topology.stmgrs": True}, "True is not a whole number"),
        ({"topology.component.output.bps": -2}, "-2 bytes/s is below the minimum, 1 bytes/s; -1 switches it off"),
        ({"topology.component.output.bps": "1.5"}, "'1.5' is not a whole number; give one in bytes/s"),
        ({"topology.message.timeout.secs": "inf"}, "'inf' is not a number; give one in s"),
        ({"topology.message.timeout.secs": "nan"}, "'nan' is not a number"),
        ({"topology.max.spout.pending": 10**30}, "does not fit in 64 bits"),
        ({"topology.debug": "yes"}, r"topology.debug: 'yes' is not true or false"),
        ({"topology.team.name": 3}, r"topology.team.name: 3 is not a string"),
        (
            {"topology.reliability.mode": "ATLEAST"},
            r"'ATLEAST' \(nearest: 'ATLEAST_ONCE'\) is not a choice; give one of",
        ),
        (
            {"topology.reliability.mode": "EFFECTIVELY_ONCE", "topology.droptuples.upon.backpressure": True},
            "drops tuples, and a topology with checkpoints .* restores one after each loss",
        ),
        ({3: 1}, "the key 3 is a int, not a string"),
        ({"a": {1: 2}}, "here: a: the key 1 is a int, not a string"),
        ({"a": {"b": [0, {1}]}}, r"here: a.b\[1\]: a value of type set is not JSON; give None"),
        ({"a": ITSELF}, r"here: a\[0\]\[0\].*…: it contains itself, or is nested in more than 100 values"),
        ({"a": b"x"}, "here: a: a value of type bytes is not JSON"),
        ({"a": float("nan")}, "here: a: nan is not a JSON number"),
        ({"a": 2**64}, "does not fit in 64 bits"),
        ({"a": "\ud800"}, "lone surrogate"),
        ([("a", 1)], "is not a dict"),
    ],
)
def test_an_unusable_value_is_refused_with_its_path(config: dict[str, object], message: str) -> None:
    """The error names place, value and limit."""
    with pytest.raises(ConfigError, match=message):
        check_config(config, "here")


def test_a_component_may_not_set_a_key_of_the_topology() -> None:
    """The author would not notice an ignored key."""
    with pytest.raises(ConfigError, match=r"topology.stmgrs is a setting of the whole topology"):
        check_config({"topology.stmgrs": 2}, "component 'a'", component=True)
    assert check_config({"topology.tick.tuple.freq.secs": 1}, "component 'a'", component=True)


def test_acking_is_translated() -> None:
    """The deprecated key sets the mode; an explicit mode has precedence."""
    assert check_config({"topology.acking": "true"}, "here") == {"topology.reliability.mode": "ATLEAST_ONCE"}
    assert check_config({"topology.acking": False}, "here") == {"topology.reliability.mode": "ATMOST_ONCE"}
    both = {"topology.acking": True, "topology.reliability.mode": "ATMOST_ONCE"}
    assert check_config(both, "here") == {"topology.reliability.mode": "ATMOST_ONCE"}


def test_an_absent_setting_has_its_default() -> None:
    """Definitions hold only the keys that the author set."""
    assert setting({}, r"topology.max.spout.pending") == 60_000
    assert setting({"topology.max.spout.pending": 5}, r"topology.max.spout.pending") == 5


def test_a_components_configuration_overrides_the_topologys() -> None:
    """heronpy has the same precedence."""
    assert merged_config({"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2}


@pytest.mark.parametrize("key", CONFIG_KEYS.values(), ids=lambda key: key.name)
def test_each_default_passes_its_own_check(key: object) -> None:
    """Otherwise the first topology that needs a wrong default would find it."""
    name, default = getattr(key, "name"), getattr(key, "default")  # noqa: B009 - one parameter for the ids
    json.dumps(default)
    if default is not None and name != "topology.acking":
        checked = check_config({name: default}, "default")[name]
        assert checked == (list(default) if isinstance(default, tuple) else default)


def test_dropped_tuples_of_a_tree_need_its_timeout() -> None:
    """The roots of a dropped batch are unknown, so only timeouts can complete their trees."""
    given: dict[str, object] = {
        "topology.reliability.mode": "ATLEAST_ONCE",
        "topology.droptuples.upon.backpressure": True,
        "topology.enable.message.timeouts": False,
    }
    with pytest.raises(ConfigError, match=r"droptuples.upon.backpressure .* needs topology.enable.message.timeouts"):
        check_config(given, "here")
    assert check_config(given | {"topology.enable.message.timeouts": True}, "here")
    assert check_config(given | {"topology.reliability.mode": "ATMOST_ONCE"}, "here")
