"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["RedisOptions"]

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class RedisOptions(msgspec.Struct, frozen=True):
    """Where the server is, and as whom the driver uses it.

    `password_file` has the password of `user`; without a user that of Redis's user ``default``. `ca_file` has the
    certificates for `tls`; "" means those of the machine. All keys begin with `prefix`. The server may take `timeout_s`
    seconds for an answer, and a call twice as long. With `require_aof`, a server without an append-only file is
    refused.
    """

    host: _Text = "localhost"
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 6379
    database: Annotated[int, msgspec.Meta(ge=0)] = 0
    user: str = ""
    password_file: str = ""
    tls: bool = False
    ca_file: str = ""
    prefix: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.:-]{1,100}\Z")] = "heron"
    require_aof: bool = True
    timeout_s: Annotated[float, msgspec.Meta(ge=0.5, le=12.0)] = 10.0

    @property
    def where(self) -> str:
        """The server and database as messages name them."""
        return f"Redis at {self.host}:{self.port}, database {self.database}"
