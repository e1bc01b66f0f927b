"""Makes the servers of `tests/servers` known to every test of this repository."""

from __future__ import annotations

pytest_plugins = ("servers.fixtures",)
