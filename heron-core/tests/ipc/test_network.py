"""The network address at which a process listens."""

from __future__ import annotations

import socket

import pytest

from heron.errors import HeronError
from heron.ipc.network import listen_endpoint


@pytest.mark.parametrize(
    ("host", "endpoint"),
    [
        ("127.0.0.1", "tcp://127.0.0.1:*"),
        ("::1", "tcp://[::1]:*"),
        (socket.if_nameindex()[0][1], f"tcp://{socket.if_nameindex()[0][1]}:*"),
    ],
)
def test_addresses_and_interfaces_are_used_unchanged(host: str, endpoint: str) -> None:
    """An interface has another address on each host, so one profile serves many hosts."""
    assert listen_endpoint(host) == endpoint


def test_a_name_is_resolved() -> None:
    """A socket is bound to an address, not to a name."""
    assert listen_endpoint("localhost") in {"tcp://127.0.0.1:*", "tcp://[::1]:*"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104  # they are refused
def test_the_unspecified_address_is_refused(host: str) -> None:
    """It would be published, and peers cannot connect to it."""
    with pytest.raises(HeronError, match=r"heron.network.host: peers cannot connect to "):
        listen_endpoint(host)


def test_an_unknown_name_is_refused_with_a_list_of_interfaces() -> None:
    """The error lists the possible values of the setting."""
    with pytest.raises(HeronError, match=f"'no.such.invalid' is neither.*'{socket.if_nameindex()[0][1]}'"):
        listen_endpoint("no.such.invalid")
