"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = ["PostgresqlOptions"]

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class PostgresqlOptions(msgspec.Struct, frozen=True):
    """Where the server is, and as whom the driver uses it.

    `host` may be the folder of a Unix socket. `password_file` has the password of `user`; "" leaves it to libpq, which
    knows ``~/.pgpass``. `ca_file` has the certificates for `sslmode`. The tables are in `schema`. A call takes at most
    `timeout_s` seconds.
    """

    dbname: _Text
    user: _Text
    host: _Text = "localhost"
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 5432
    password_file: str = ""
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    ca_file: str = ""
    schema: Annotated[str, msgspec.Meta(pattern=r"^[a-z_][a-z0-9_]{0,62}$")] = "heron"
    timeout_s: Annotated[float, msgspec.Meta(ge=1.0, le=25.0)] = 20.0

    @property
    def where(self) -> str:
        """The server and database as messages name them."""
        return f"PostgreSQL at {self.host}:{self.port}, database {self.dbname}"
