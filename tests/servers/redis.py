"""A Redis server with a password that writes each change to its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.install import debian_programs, installed, with_libraries
from servers.server_process import ServerProcess, free_port, listens
from servers.serving import serving

__all__ = ["FIXTURES", "RedisServer", "redis_cluster", "redis_server"]

FIXTURES = ("redis_server", "redis_cluster")


class RedisServer(ServerProcess):
    """Keeps its data in `folder`, so they survive a kill."""

    password = "to-be-tested"  # for a server on the loopback address that ends with the tests

    def __init__(self, folder: Path, *settings: str) -> None:
        """Install Debian's Redis into the cache; `settings` are more arguments of the server.

        Raises:
            ServerNotInstalledError: when it is not available.
        """
        self.address = ("127.0.0.1", free_port())
        """The address for clients: host and port."""
        place = installed("redis-debian", debian_programs("redis-server"))
        command = [*with_libraries(place), str(place / "usr" / "bin" / "redis-server")]
        command += ["--bind", "127.0.0.1", "--port", str(self.address[1]), "--dir", str(folder)]
        command += ["--requirepass", self.password, "--appendonly", "yes", "--save", "", *settings]
        super().__init__(command, folder / "redis.log", lambda: listens(self.address[1]))


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A running Redis, shared by the session: use your own prefix, and restart it after a kill."""
    yield from serving("redis", request.config, lambda: RedisServer(tmp_path_factory.mktemp("redis")))


@pytest.fixture(scope="session")
def redis_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis in cluster mode, which owns no slots yet."""
    settings = ("--cluster-enabled", "yes")
    yield from serving("redis", request.config, lambda: RedisServer(tmp_path_factory.mktemp("cluster"), *settings))
