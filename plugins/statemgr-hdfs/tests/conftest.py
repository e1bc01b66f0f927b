"""State managers on a folder of the test's own, in a real HDFS."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest

from heron_statemgr_hdfs.driver import HdfsStateManager
from heron_testing.relay import Relay
from servers.hdfs import HdfsServer

Opener = Callable[..., HdfsStateManager]


@pytest.fixture
def relay(hdfs: HdfsServer) -> Iterator[Relay]:
    """What stands between the driver and the name node."""
    relay = Relay(hdfs.address)
    yield relay
    relay.close()


@pytest.fixture
def options(hdfs: HdfsServer, relay: Relay) -> dict[str, object]:
    """A folder for each test, of a user who has no other rights."""
    folder = f"/{secrets.token_hex(8)}"
    hdfs.make_folder(folder, owner="heron")
    host, port = relay.address
    return {"url": f"http://{host}:{port}", "root": f"{folder}/state", "user": "heron"}


@pytest.fixture
def opened(options: dict[str, object]) -> Iterator[Opener]:
    """Opens managers of the same folder, with other options where they are given; closes them at the end."""
    managers: list[HdfsStateManager] = []

    def open_one(**others: object) -> HdfsStateManager:
        managers.append(HdfsStateManager.open({**options, **others}))
        return managers[-1]

    yield open_one
    for each in managers:
        each.close()
