"""State managers on a real HDFS. Each test has a different folder."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest

from heron_statemgr_hdfs.driver import HdfsStateManager
from heron_testing.relay import Relay
from heron_testing_servers.hdfs import HdfsServer

Opener = Callable[..., HdfsStateManager]


@pytest.fixture
def relay(hdfs: HdfsServer) -> Iterator[Relay]:
    """A relay between the driver and the name node."""
    relay = Relay(hdfs.address)
    yield relay
    relay.close()


@pytest.fixture
def options(hdfs: HdfsServer, relay: Relay) -> dict[str, object]:
    """Options with a folder that belongs to a user without other rights."""
    folder = f"/{secrets.token_hex(8)}"
    hdfs.make_folder(folder, owner="heron")
    host, port = relay.address
    return {"url": f"http://{host}:{port}", "root": f"{folder}/state", "user": "heron"}


@pytest.fixture
def opened(options: dict[str, object]) -> Iterator[Opener]:
    """Open managers of the same folder, with changed options if given; close them at the end."""
    managers: list[HdfsStateManager] = []

    def open_one(**others: object) -> HdfsStateManager:
        managers.append(HdfsStateManager.open({**options, **others}))
        return managers[-1]

    yield open_one
    for each in managers:
        each.close()
