"""Which values of a running topology may change."""

from __future__ import annotations

import pytest

from heron.errors import ConfigError, RemoteProtocolError
from heron.planner.runtime_config import decode_changes, encode_changes, with_changes
from heron_testing.builders import bolt, spout, stream, subscription, topology

WORDS = topology(
    spout("read", stream("word"), config={"path": "/data"}),
    bolt("count", subscription("read"), config={"limit": 5}),
    config={"limit": 1, "topology.reliability.mode": "ATLEAST_ONCE"},
)


def test_a_component_and_the_topology_get_new_values() -> None:
    """Other values stay; a value of the engine has the type of its key."""
    changed = with_changes(WORDS, {"": {"limit": 2, "topology.message.timeout.secs": "7"}, "count": {"limit": 6}})
    assert changed.config == {**WORDS.config, "limit": 2, "topology.message.timeout.secs": 7}
    assert changed.component("count").config == {"limit": 6}
    assert changed.component("read") == WORDS.component("read")
    assert with_changes(WORDS, {}) == WORDS


@pytest.mark.parametrize(
    ("component", "key", "value", "message"),
    [
        ("cuont", "limit", 1, "topology 't': has no component 'cuont'.*nearest: 'count'"),
        ("", "topology.reliability.mode", "ATMOST_ONCE", "cannot change while the topology runs; known: .*output.bps"),
        ("", "topology.tick.tuple.freq.secs", 1, "topology.tick.tuple.freq.secs cannot change while"),
        ("", "topology.nothing", 1, "topology.nothing cannot change"),
        ("", "topology.message.timeout.secs", "soon", "'soon' is not a .*number"),
        ("count", "topology.message.timeout.secs", 3, "is a setting of the whole topology"),
        ("read", "value", {1}, "component 'read'.*type set is not JSON"),
    ],
)
def test_other_changes_are_refused(component: str, key: str, value: object, message: str) -> None:
    """The error names the place, and what may change."""
    with pytest.raises(ConfigError, match=message):
        with_changes(WORDS, {component: {key: value}})


def test_the_document_of_a_request_is_read_again() -> None:
    """A document of another form is refused."""
    changes: dict[str, dict[str, object]] = {"": {"a": [1, None]}, "count": {"b": "x"}}
    assert decode_changes(encode_changes(changes)) == changes
    for garbled in (b"", b"[]", b'{"a":1}', b"[" * 5000):
        with pytest.raises(RemoteProtocolError, match="is not readable"):
            decode_changes(garbled)
