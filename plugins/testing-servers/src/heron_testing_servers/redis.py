"""A Redis server with a password that keeps each change before it answers."""

from __future__ import annotations

import socket
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import debian_programs, installed, with_libraries
from heron_testing_servers.server_process import ServerProcess

__all__ = ["FIXTURES", "RedisServer"]

FIXTURES = ("redis_server",)

_PROBE_S = 2.0


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
        command += ["--bind", "127.0.0.1", "--port", str(self.address[1]), "--dir", str(folder), "--save", ""]
        command += ["--requirepass", self.password, "--appendonly", "yes", "--appendfsync", "always", *settings]
        super().__init__(command, folder / "redis.log", lambda: self.command("PING") == b"+PONG")

    def command(self, *words: str) -> bytes:
        """Run a command as an operator does; return the first line of the answer, or b"" while it does not answer."""
        request = "".join(f"{' '.join(each)}\r\n" for each in (("AUTH", self.password), words))
        try:
            with socket.create_connection(self.address, _PROBE_S) as connection, connection.makefile("rb") as answers:
                connection.sendall(request.encode())
                answers.readline()
                return answers.readline().rstrip()
        except OSError:
            return b""
