"""The contract of state managers on a real etcd, and the cases of this driver alone.

The environment variable `ETCD_URL` names the etcd. Without it the tests use http://127.0.0.1:2379.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import pytest
from heron.errors import StateError, StateUnavailableError
from heron.spi.statemgr import NodeKind
from heron_testing.contracts.statemgr import StateManagerContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay

from heron_statemgr_etcd.driver import EtcdStateManager

ETCD_URL = os.environ.get("ETCD_URL", "http://127.0.0.1:2379")


class TestEtcdStateManager(StateManagerContract):
    """Runs the whole suite of the family."""

    name = "etcd"
    driver_class = EtcdStateManager

    @pytest.fixture
    def relay(self) -> Iterator[Relay]:
        """The connection between the driver and etcd, which the faults break."""
        address = urlsplit(ETCD_URL)
        relay = Relay((address.hostname or "127.0.0.1", address.port or 2379))
        yield relay
        relay.close()

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        """The faults that the flag ``server`` asks for."""
        return relay_faults(relay)

    @pytest.fixture
    def options(self, relay: Relay) -> dict[str, object]:
        """The driver's section of a profile: a new prefix for each test, and the shortest lease that etcd allows."""
        host, port = relay.address
        return {"url": f"http://{host}:{port}", "prefix": f"/{secrets.token_hex(8)}", "lease_s": 2}

    @pytest.fixture
    def fresh_options(self, options: dict[str, object]) -> Sequence[dict[str, object]]:
        """A new prefix is a new store."""
        return [{**options, "prefix": f"{options['prefix']}-{number}"} for number in range(10)]


def test_an_etcd_that_is_away_is_named() -> None:
    """The error names the server that is down."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    manager = EtcdStateManager.open({"url": url})
    with pytest.raises(StateUnavailableError, match=url):
        manager.get(NodeKind.TOPOLOGY, "t")
    manager.close()


def test_a_value_that_is_too_large_is_refused_with_the_limit() -> None:
    """etcd refuses it too, with a message that does not name the topology's limit."""
    manager = EtcdStateManager.open({})
    with pytest.raises(StateError, match="1048577 bytes is above the limit of etcd, 1048576 bytes"):
        manager.set(NodeKind.TOPOLOGY, "t", b"x" * (1024 * 1024 + 1))
    manager.close()
