"""A PostgreSQL server with a password."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from heron_testing.ports import free_port
from heron_testing_servers.install import ServerNotInstalledError, debian_programs, installed, with_libraries
from heron_testing_servers.server_process import ServerProcess

__all__ = ["FIXTURES", "PostgresqlServer"]

FIXTURES = ("postgresql",)

_PROGRAMS = "usr/lib/postgresql/*/bin"
# PostgreSQL refuses to run as root. In a user namespace root has another number, and its files have it too.
_NOT_ROOT = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "GMT",
    "log_timezone": "GMT",
    "max_connections": "50",
    "shared_buffers": "32MB",
    "jit": "off",
}


class PostgresqlServer(ServerProcess):
    """Keeps its data in `folder`, so they survive a kill. It has the database ``postgres``."""

    user = "heron"
    password = "to-be-tested"  # for a server on the loopback address that ends with the tests

    def __init__(self, folder: Path) -> None:
        """Use the machine's PostgreSQL, else install Debian's into the cache.

        Raises:
            ServerNotInstalledError: when there is neither, or when it cannot make its data folder.
        """
        self.address = ("127.0.0.1", free_port())
        """The address for clients: host and port."""
        begin, programs = _programs()
        begin = [*(_NOT_ROOT if os.geteuid() == 0 else []), *begin]
        password = folder / "password"
        password.write_text(self.password)
        data = folder / "data"
        options = ["--auth=scram-sha-256", f"--username={self.user}", f"--pwfile={password}", "--no-sync"]
        made = subprocess.run(
            [*begin, str(programs / "initdb"), "-E", "UTF8", "--locale=C", *options, "-D", str(data)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            msg = f"initdb ended with {made.returncode}: {made.stderr.strip()}"
            raise ServerNotInstalledError(msg)
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        command = [*begin, str(programs / "postgres"), "-D", str(data), "-p", str(self.address[1]), *settings]
        probe = [*begin, str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.address[1])]
        super().__init__(command, folder / "postgresql.log", lambda: subprocess.run(probe, check=False).returncode == 0)

    def kill(self) -> None:
        """End it with SIGKILL, and the processes of its connections, which would answer for a moment; idempotent."""
        connections = psutil.Process(self.pid).children(recursive=True) if self.pid else []
        super().kill()
        for each in connections:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(connections)


def _programs() -> tuple[list[str], Path]:
    """Return the beginning of a command, and the folder of the programs."""
    if found := list(Path("/").glob(_PROGRAMS)):
        return [], max(found)
    folder = installed("postgresql-debian", debian_programs("postgresql"))
    return with_libraries(folder), max(folder.glob(_PROGRAMS))
