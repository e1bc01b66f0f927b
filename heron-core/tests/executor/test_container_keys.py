"""The keys that an executor follows in the state manager."""

from __future__ import annotations

import logging

import pytest

from heron.executor.container_keys import ContainerKeys
from heron.ipc.keys import ClientKind, KeyRing, new_keys
from heron.spi.statemgr import Versioned
from heron.state_nodes.topology_keys import encode_keys


def test_each_step_of_a_rotation_is_taken_once() -> None:
    """A watch may report a value again, and an older one late."""
    old, new = KeyRing.of(new_keys()), new_keys()
    both = old.beginning(new)
    keys = ContainerKeys(old, 1)
    assert keys.of_server(new.server.public) is None
    assert keys.follow(Versioned(encode_keys(old), 1), "wc") is None
    assert keys.follow(Versioned(encode_keys(both), 2), "wc") == old
    assert keys.of_server(old.server.public) == old.connecting_as(ClientKind.MEMBER)
    assert keys.of_server(new.server.public) == new.connecting_as(ClientKind.MEMBER)
    assert keys.follow(Versioned(encode_keys(old), 1), "wc") is None
    assert keys.follow(Versioned(encode_keys(both.completed()), 3), "wc") == both
    assert (keys.ring, keys.version) == (both.completed(), 3)


@pytest.mark.parametrize("replaced", [True, False])
def test_keys_that_no_rotation_leads_to_are_refused(replaced: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A node that is damaged, or replaced by a stranger, must not cut the connections of a running topology."""
    old = KeyRing.of(new_keys())
    keys = ContainerKeys(old, 1)
    with caplog.at_level(logging.ERROR):
        value = encode_keys(new_keys()) if replaced else b"{}"
        assert keys.follow(Versioned(value, 2), "wc") is None
    assert keys.follow(None, "wc") is None
    assert keys.ring == old
    assert "the keys stay as they are" in caplog.text
