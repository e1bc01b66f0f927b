"""The driver's section of a profile, and the place that it names."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Annotated

import msgspec

from heron.errors import ConfigError
from heron.spi.options import Secret

__all__ = ["OciOptions", "tls_context"]

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"(?P<host>[A-Za-z0-9.-]+(?::\d+)?|\[[0-9a-f:]+\](?::\d+)?)/(?P<path>{_PART}(?:/{_PART})*)")
_HUB = "docker.io"
_HUB_SERVER = "registry-1.docker.io"


class OciOptions(msgspec.Struct, frozen=True):
    """Without username and password, the configuration of Docker is read when the registry asks for credentials."""

    repository: str
    username: str = ""
    password: Secret = ""
    plain_http: bool = False
    ca_file: str = ""
    delete: bool = True
    check_layers: bool = False
    sign_key_file: str = ""
    verify_key: Annotated[str, msgspec.Meta(max_length=64 * 1024)] = ""

    def __post_init__(self) -> None:
        if not _REPOSITORY.fullmatch(self.repository):
            msg = (
                "repository is not of the form HOST[:PORT]/PATH, in which PATH has lower-case letters, digits, and "
                "'.', '_', '-' and '/' between them, such as registry.example.org/team/heron"
            )
            raise ValueError(msg)
        if bool(self.username) != bool(self.password):
            msg = "username and password belong together; give both or neither"
            raise ValueError(msg)

    @property
    def host(self) -> str:
        """The registry, with its port if the option has one."""
        return self.repository.partition("/")[0]

    @property
    def path(self) -> str:
        """The name of the repository in its registry."""
        return self.repository.partition("/")[2]

    @property
    def url(self) -> str:
        """The URL of the registry's interface."""
        host = _HUB_SERVER if self.host == _HUB else self.host
        return f"{'http' if self.plain_http else 'https'}://{host}/v2/"


def tls_context(ca_file: str) -> ssl.SSLContext:
    """Return what checks the registry's certificate.

    Raises:
        ConfigError: when the file cannot be used.
    """
    path = Path(ca_file).expanduser()
    try:
        return ssl.create_default_context(cafile=path if ca_file else None)
    except OSError as error:
        msg = f"uploader.ca_file: {path} cannot be used: {error}; give a file of certificates (PEM)"
        raise ConfigError(msg) from error
