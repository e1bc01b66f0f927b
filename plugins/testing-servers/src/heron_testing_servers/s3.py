"""An S3 server of one process over a folder: versitygw, with multipart uploads, conditional puts and signatures."""

from __future__ import annotations

import subprocess
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import go_program, installed
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["FIXTURES", "S3Server"]

FIXTURES = ("s3",)

_VERSION = "v1.8.0"


class S3Server(ServerProcess):
    """Keeps its buckets in `folder`, so stored data survives a kill."""

    region = "us-east-1"
    access_key = "testkey"
    secret_key = "testsecret"  # for a server on the loopback address that ends with the tests

    def __init__(self, folder: Path) -> None:
        """Build the server into the cache if it is absent.

        Raises:
            ServerNotInstalledError: when there is no Go, or the build fails.
        """
        self.address = ("127.0.0.1", free_port())
        """The address for clients: host and port."""
        self.url = f"http://127.0.0.1:{self.address[1]}"
        """The same address as a URL: the ``endpoint_url`` of clients."""
        self.data = folder / "data"
        """The folder of the data: one folder per bucket, with one file per object."""
        self.data.mkdir(parents=True, exist_ok=True)
        program = installed(f"versitygw-{_VERSION}", go_program("github.com/versity/versitygw/cmd/versitygw", _VERSION))
        keys = f"ROOT_ACCESS_KEY={self.access_key}", f"ROOT_SECRET_KEY={self.secret_key}"
        (folder / "users").mkdir(exist_ok=True)
        listen = "--port", f"127.0.0.1:{self.address[1]}", "--region", self.region, "--health", "/health"
        users = "--iam-dir", str(folder / "users")
        self._program = str(program / "bin" / "versitygw")
        command = ["env", *keys, self._program, *listen, *users, "posix", str(self.data)]
        super().__init__(command, folder / "s3.log", self._healthy)

    def add_user(self, access_key: str, secret_key: str) -> None:
        """Make a user without rights in the buckets of others."""
        admin = "admin", "--access", self.access_key, "--secret", self.secret_key, "--endpoint-url", self.url
        user = "--access", access_key, "--secret", secret_key, "--role", "user"
        subprocess.run([self._program, *admin, "create-user", *user], check=True, capture_output=True)

    def _healthy(self) -> bool:
        return answers(f"{self.url}/health")
