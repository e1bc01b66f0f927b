"""The contract of state managers on a real ZooKeeper, with a user and password."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager
from heron_testing.contracts.statemgr import StateManagerContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.zookeeper import ZooKeeperServer


class TestZookeeperStateManager(StateManagerContract):
    name = "zookeeper"
    driver_class = ZookeeperStateManager

    @pytest.fixture
    def relay(self, zookeeper: ZooKeeperServer) -> Iterator[Relay]:
        """A relay between the driver and the server."""
        relay = Relay(zookeeper.address)
        yield relay
        relay.close()

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    @pytest.fixture
    def options(self, relay: Relay, tmp_path: Path) -> dict[str, object]:
        host, port = relay.address
        return {
            "hosts": f"{host}:{port}",
            "root": f"/heron-{secrets.token_hex(8)}",
            "username": "heron",
            "password": "open sesame",
            "session_timeout_s": 2.0,
            "timeout_s": 3.0,
            "lock_dir": str(tmp_path / "locks"),
        }

    @pytest.fixture
    def fresh_options(self, options: dict[str, object]) -> Sequence[dict[str, object]]:
        """A new root is a new store."""
        return [{**options, "root": f"{options['root']}-{number}"} for number in range(10)]
