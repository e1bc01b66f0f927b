"""A live view with real processes whose store is a PostgreSQL server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from heron.spi.driver import DriverRef
from heron_testing_servers.postgresql import PostgresqlServer
from watched_views import WatchedView, author_file, ends_exactly_after_kills

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


def test_a_view_is_exact_whatever_dies(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, postgresql: PostgresqlServer
) -> None:
    """Tasks and a stream manager die, before and after a batch replaces a part of what is live."""
    password_file = sandbox.home / "password"
    password_file.write_text(postgresql.password)
    password_file.chmod(0o600)
    host, port = postgresql.address
    options: dict[str, object] = {
        "host": host,
        "port": port,
        "password_file": str(password_file),
        "dbname": "postgres",
        "user": postgresql.user,
    }
    store = json.dumps({"driver": "postgresql", **options})
    here = sandbox.write_profile("with-postgresql", f"extends: local\nstore: {store}\n")
    program = author_file(monkeypatch)
    view = WatchedView(program, DriverRef("store", "postgresql", "heron_store_postgresql:PostgresqlViewStore", options))
    ends_exactly_after_kills(sandbox.start("viewed_counts.py", *here), program, view)
    assert postgresql.password not in sandbox.log_text()
    view.store.close()
