"""The keys of a topology: who gets which part, and that no secret shows by accident."""

from __future__ import annotations

import json
import logging

import pytest

from heron.errors import StateError
from heron.ipc.keys import ClientKeys, KeyPair, ServerKeys, Speaker, decode_keys, encode_keys, new_keys


def test_keys_survive_the_state_manager() -> None:
    """The command writes them, executors of other hosts read them."""
    keys = new_keys()
    assert decode_keys(encode_keys(keys), "wc") == keys
    assert new_keys() != keys


def test_each_process_gets_the_part_it_needs() -> None:
    """Who listens has no client's secret, who connects not the server's, and a reader no other's."""
    keys = new_keys()
    server = keys.listening_to(Speaker.MEMBER, Speaker.READER)
    assert server == ServerKeys(keys.server, {keys.member.public: Speaker.MEMBER, keys.reader.public: Speaker.READER})
    assert keys.connecting_as(Speaker.CONTROL) == ClientKeys(keys.server.public, keys.control)


def test_no_secret_shows_in_a_log_or_a_message(caplog: pytest.LogCaptureFixture) -> None:
    """An object that holds keys may end up in a traceback, a log line or an assertion."""
    keys = new_keys()
    server, client = keys.listening_to(*Speaker), keys.connecting_as(Speaker.MEMBER)
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("%s %r", keys, [server, {"client": client}])
    shown = f"{caplog.text} {keys} {server!r} {client}"
    for pair in (keys.server, keys.member, keys.control, keys.reader):
        assert pair.secret not in shown
    assert keys.member.public in shown


def test_keys_that_are_none_are_refused_without_being_shown() -> None:
    """The node may have been changed by hand; what it holds is a secret still."""
    document = json.loads(encode_keys(new_keys()))
    document["member"]["secret"] = "hush"
    for data in (b"", b"{}", json.dumps(document).encode()):
        with pytest.raises(StateError, match="keys of topology 'wc' cannot be read") as caught:
            decode_keys(data, "wc")
        assert "hush" not in str(caught.value)
    with pytest.raises(ValueError, match="must have 40"):
        KeyPair("short", "x" * 40)
