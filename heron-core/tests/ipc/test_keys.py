"""The keys of a topology: the part of each process, and hidden secrets."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from heron.ipc.keys import ClientKeys, ClientKind, KeyPair, KeyRing, ServerKeys, keys_of_server, new_keys


def test_each_process_gets_only_the_keys_it_needs() -> None:
    """A server has no secret of a client, a client none of the server, and a reader no other secret."""
    keys = new_keys()
    server = keys.listening_to(ClientKind.MEMBER, ClientKind.READER)
    assert server == ServerKeys(
        keys.server, {keys.member.public: ClientKind.MEMBER, keys.reader.public: ClientKind.READER}
    )
    assert keys.connecting_as(ClientKind.CONTROL) == ClientKeys(keys.server.public, keys.control)


def test_no_log_or_message_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    """An object that holds keys may end up in a traceback, a log line or an assertion."""
    keys = new_keys()
    server, client = keys.listening_to(*ClientKind), keys.connecting_as(ClientKind.MEMBER)
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


def test_a_rotation_has_both_sets_and_then_the_new_one() -> None:
    """A ring follows those that a rotation leads from, also if a process has missed one of its steps."""
    old, new = KeyRing.of(new_keys()), new_keys()
    both = old.beginning(new)
    after = both.completed()
    assert [each.server for each in both.sets()] == [old.server, new.server]
    assert after == replace(KeyRing.of(new), former=old.server.public)
    assert old.completed() is old
    assert both.follows(old)
    assert after.follows(both)
    assert after.follows(old)
    assert old.follows(old)
    assert not KeyRing.of(new_keys()).follows(old)


def test_the_public_key_of_a_server_selects_the_keys_of_its_set() -> None:
    """A location of an earlier version names no key, and means the first set."""
    known = [new_keys().connecting_as(ClientKind.MEMBER) for _ in range(2)]
    assert [keys_of_server(each.server_public, known) for each in known] == known
    assert keys_of_server("", known) == known[0]
    assert keys_of_server(new_keys().server.public, known) is None
