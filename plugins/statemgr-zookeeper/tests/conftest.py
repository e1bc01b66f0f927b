"""State managers on a real ZooKeeper. Each test has a different root."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager

__all__ = ["Open"]

Open = Callable[..., ZookeeperStateManager]


@pytest.fixture
def open_manager(tmp_path: Path) -> Iterator[Open]:
    """Open managers for the servers at ``host:port,…``, with the test's root and short timeouts; close them all."""
    opened: list[ZookeeperStateManager] = []
    root = f"/heron-{secrets.token_hex(8)}"

    def open_one(servers: str, **options: object) -> ZookeeperStateManager:
        chosen = {"root": root, "session_timeout_s": 2.0, "timeout_s": 5.0, "lock_dir": str(tmp_path / "locks")}
        opened.append(ZookeeperStateManager.open({**chosen, "hosts": servers, **options}))
        return opened[-1]

    yield open_one
    for manager in opened:
        manager.close()
