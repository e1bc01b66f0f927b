"""A registry of OCI artifacts over a folder: distribution, which Debian has as docker-registry."""

from __future__ import annotations

from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import debian_package, installed
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["FIXTURES", "OciRegistry"]

FIXTURES = ("oci_registry",)

_CONF = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {folder}/data}}
  delete: {{enabled: {delete}}}
http:
  addr: 127.0.0.1:{port}
  secret: to-be-tested
auth:
  {auth}
"""
_PASSWORD_HASH = "$2b$05$abcdefghijklmnopqrstuuk6UETDPEL/U9WbNc0hp4rHQt/c2Jxhm"  # bcrypt of `password`


class OciRegistry(ServerProcess):
    """Keeps blobs and tags in `folder`, so they survive a kill. It knows one user."""

    user = "heron"
    password = "to-be-tested"  # for a server on the loopback address that ends with the tests

    def __init__(self, folder: Path, *, auth: str = "", delete: bool = True) -> None:
        """Install Debian's registry into the cache.

        `auth` is a section of its configuration in one line of YAML, such as ``token: {…}``. Without it, the registry
        asks for user and password (Basic). Without `delete` it refuses to remove manifests.

        Raises:
            ServerNotInstalledError: when it is not available.
        """
        self.address = ("127.0.0.1", free_port())
        """The address for clients: host and port."""
        self._folder = folder
        program = installed("docker-registry-debian", debian_package("docker-registry"))
        (folder / "users").write_text(f"{self.user}:{_PASSWORD_HASH}\n", encoding="ascii")
        auth = auth or f"htpasswd: {{realm: test, path: {folder}/users}}"
        conf = _CONF.format(folder=folder, port=self.address[1], auth=auth, delete=str(delete).lower())
        (folder / "registry.yml").write_text(conf, encoding="utf-8")
        command = [str(program / "usr" / "bin" / "docker-registry"), "serve", str(folder / "registry.yml")]
        super().__init__(command, folder / "registry.log", self._serves)

    @property
    def host(self) -> str:
        """Return host and port, as in the names of images."""
        return f"127.0.0.1:{self.address[1]}"

    def blob_file(self, digest: str) -> Path:
        """Return the file in which it keeps a blob; `digest` has 64 hexadecimal digits."""
        return self._folder / "data/docker/registry/v2/blobs/sha256" / digest[:2] / digest / "data"

    def _serves(self) -> bool:
        return answers(f"http://{self.host}/")  # which needs no password
