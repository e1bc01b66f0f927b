"""Fixtures for tests of Heron and its plugins, known to pytest where heron-core is installed.

`eventually` waits for something that another process or thread does. A test marked ``leaks_nothing`` fails when it
leaves a child process or a thread behind. The real servers of `servers.fixtures` are fixtures too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from heron.clock import monotonic_s
from heron_testing.fake_clock import FakeClock

__all__ = ["Eventually", "eventually", "fake_clock", "leak_guard", "wait_until"]

T = TypeVar("T")

pytest.register_assert_rewrite("heron_testing.contracts")  # a failed clause shows its values

_POLL_S = 0.01
_SETTLE_S = 2.0  # a thread or process that was told to end may take so long to be gone


class Eventually(Protocol):
    """The type of the fixture `eventually`."""

    def __call__(self, predicate: Callable[[], T], timeout_s: float = 10.0, what: str = "") -> T:
        """Waits until `predicate` returns something true and returns that."""
        ...


def wait_until(predicate: Callable[[], T], timeout_s: float = 10.0, what: str = "") -> T:
    """Calls `predicate` every 10 ms until it returns something true, and returns that.

    Raises:
        AssertionError: when `timeout_s` seconds have passed; names `what` and the last value.
    """
    deadline = monotonic_s() + timeout_s
    pause = threading.Event()
    while not (value := predicate()):
        if monotonic_s() > deadline:
            msg = f"not within {timeout_s} s: {what or predicate}; last value {value!r}"
            raise AssertionError(msg)
        pause.wait(_POLL_S)
    return value


@pytest.fixture
def eventually() -> Eventually:
    """`wait_until` as a fixture."""
    return wait_until


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that the test moves."""
    return FakeClock()


@pytest.fixture(autouse=True)
def leak_guard(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test marked ``leaks_nothing`` when new threads or child processes remain."""
    if request.node.get_closest_marker("leaks_nothing") is None:
        yield
        return
    threads = set(threading.enumerate())
    children = _children()
    yield
    wait_until(lambda: set(threading.enumerate()) <= threads, _SETTLE_S, "threads left behind")
    wait_until(lambda: _children() <= children, _SETTLE_S, "child processes left behind")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line("markers", "leaks_nothing: fails when the test leaves a thread or child process behind")


def _children() -> set[int]:
    """The process ids of this process's children, where the system tells (Linux); zombies count."""
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").glob("*"):
        try:
            found.update(int(pid) for pid in (task / "children").read_text().split())
        except OSError:
            continue  # the thread ended in between
    return found
