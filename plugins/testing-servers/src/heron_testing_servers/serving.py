"""Serve a server to the tests of a session; handle servers that cannot be installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import pytest

from heron_testing_servers.absence import not_here
from heron_testing_servers.install import ServerNotInstalledError

__all__ = ["list_missing", "serving"]

_MISSING = pytest.StashKey[dict[str, str]]()  # the reason why a server could not be installed, by its name


class _Server(Protocol):
    def start(self) -> None: ...

    def kill(self) -> None: ...


S = TypeVar("S", bound=_Server)


def serving(name: str, config: pytest.Config, make: Callable[[], S]) -> Iterator[S]:
    """The body of a fixture: make and start a server, and kill it when the session ends.

    A server that cannot be installed skips the test; in continuous integration it fails the test.
    """
    try:
        server = make()
    except ServerNotInstalledError as error:
        config.stash.setdefault(_MISSING, {})[name] = str(error)
        not_here(f"{name} cannot be installed: {error}")
    server.start()
    yield server
    server.kill()


def list_missing(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the servers that could not be installed, with the reasons."""
    missing = config.stash.get(_MISSING, {})
    if missing:
        terminalreporter.section("servers that could not be installed", sep="!", red=True, bold=True)
        for name, reason in missing.items():
            terminalreporter.line(f"{name}: its tests did not run: {reason}", red=True)
