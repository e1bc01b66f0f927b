"""Makes servers, and a network, known to pytest as fixtures: one of each per session.

A module of this folder that has `FIXTURES` holds a server and its fixtures; `FIXTURES` lists their names. To add a
server, add a module. pytest adds the mark ``servers`` to each test that uses such a fixture. Where a server cannot be
installed, pytest skips its tests and names them at the end of the run. In continuous integration (``CI`` is set) these
tests fail.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

_NAMES = {path.stem for path in Path(__file__).parent.glob("*.py")} - {"__init__", "pytest_plugin", "kafka_topics"}
_MODULES = tuple(f"heron_testing_servers.{name}" for name in sorted(_NAMES))
pytest.register_assert_rewrite(*_MODULES)  # before the import, else pytest warns
_FIXTURES = {module: getattr(import_module(module), "FIXTURES", ()) for module in _MODULES}
_SERVERS = frozenset(name for names in _FIXTURES.values() for name in names)

pytest_plugins = ("heron_testing_servers.serving", *(module for module, names in _FIXTURES.items() if names))


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "servers: needs a server beyond Python (./dev contract)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a server, before ``-m`` is applied."""
    for item in items:
        if isinstance(item, pytest.Function) and not _SERVERS.isdisjoint(item.fixturenames):
            item.add_marker("servers")
