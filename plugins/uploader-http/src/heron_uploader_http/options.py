"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from heron.spi.options import Secret

__all__ = ["HttpOptions"]


class HttpOptions(msgspec.Struct, frozen=True):
    """Where the packages are: `url` is that of their folder. Without user and token, ``~/.netrc`` is asked."""

    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^/?#]+")]
    username: str = ""
    password: Secret = ""
    token: Secret = ""
    ca_file: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if "@" in parts.netloc:
            msg = "url holds a user or a password, which URLs of packages would show; use username and password"
            raise ValueError(msg)
        if parts.query or parts.fragment:
            msg = "url ends with a query or fragment; give the address of a folder"
            raise ValueError(msg)
        if bool(self.username) != bool(self.password):
            msg = "username and password belong together; give both or neither"
            raise ValueError(msg)
        if self.token and self.username:
            msg = "a token and a username are two ways to sign in; give one"
            raise ValueError(msg)
