"""Makes the fixtures of `tests/servers` and `tests/builders` available to every test of this repository."""

from __future__ import annotations

pytest_plugins = ("servers.fixtures", "builders.distributions")
