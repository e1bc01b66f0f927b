"""Calls of third-party code on a thread with a time limit."""

from __future__ import annotations

import sys
import threading

import pytest

from heron.errors import ConfigError, PluginError
from heron_cli.catalog.third_party import within


def test_result_and_error_pass_through() -> None:
    """An error keeps its type."""
    assert within(10, "it", lambda: 5) == 5
    assert within(10, "it", lambda: None) is None
    with pytest.raises(ConfigError, match="wrong key"):
        within(10, "it", lambda: _raise(ConfigError("wrong key")))


def test_exit_is_an_error() -> None:
    """A plugin that calls `sys.exit` must not end the command without an error."""
    with pytest.raises(PluginError, match="it: raised SystemExit: 3; a plugin must not end the process"):
        within(10, "it", lambda: sys.exit(3))


def test_a_call_that_takes_too_long_is_abandoned() -> None:
    """The thread cannot be stopped; it ends with the process."""
    gate = threading.Event()
    with pytest.raises(PluginError, match=r"it: not done after 0\.05 s"):
        within(0.05, "it", lambda: gate.wait(30))
    gate.set()


def _raise(error: Exception) -> None:
    raise error
