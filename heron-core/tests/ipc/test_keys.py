"""The keys of a topology: the part of each process, and hidden secrets."""

from __future__ import annotations

import logging

import pytest

from heron.ipc.keys import ClientKeys, KeyPair, ServerKeys, Speaker, new_keys


def test_each_process_gets_only_the_keys_it_needs() -> None:
    """A server has no secret of a client, a client none of the server, and a reader no other secret."""
    keys = new_keys()
    server = keys.listening_to(Speaker.MEMBER, Speaker.READER)
    assert server == ServerKeys(keys.server, {keys.member.public: Speaker.MEMBER, keys.reader.public: Speaker.READER})
    assert keys.connecting_as(Speaker.CONTROL) == ClientKeys(keys.server.public, keys.control)


def test_no_log_or_message_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    """An object that holds keys may end up in a traceback, a log line or an assertion."""
    keys = new_keys()
    server, client = keys.listening_to(*Speaker), keys.connecting_as(Speaker.MEMBER)
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("%s %r", keys, [server, {"client": client}])
    shown = f"{caplog.text} {keys} {server!r} {client}"
    for pair in (keys.server, keys.member, keys.control, keys.reader):
        assert pair.secret not in shown
    assert keys.member.public in shown


def test_every_topology_gets_its_own_keys_of_the_right_length() -> None:
    """CURVE keys in Z85 have 40 characters."""
    assert new_keys() != new_keys()
    with pytest.raises(ValueError, match="must have 40"):
        KeyPair("short", "x" * 40)
