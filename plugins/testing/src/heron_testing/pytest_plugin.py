"""The pytest plugin of heron-testing; pytest loads it in every environment that has heron-testing.

The fixture `eventually` waits for a change that another process or thread makes. A test with the mark
``leaks_nothing`` fails if it leaves a child process or a thread behind. The fixture `sandbox` runs topologies.

Every run of pytest in such an environment pays for this module. Hence it imports only small modules, and it has no
autouse fixture: tests without the mark run unchanged. A test that asks for a sandbox loads `heron_testing.sandbox`.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.fake_clock import FakeClock
from heron_testing.waiting import Eventually, wait_until

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["eventually", "fake_clock", "sandbox", "sandbox_programs"]

pytest.register_assert_rewrite("heron_testing.contracts")  # a failed clause shows its values

_SETTLE_S = 2.0  # the time that a thread or process may take to end


@pytest.fixture
def eventually() -> Eventually:
    """`wait_until` as a fixture."""
    return wait_until


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that only the test moves."""
    return FakeClock()


@pytest.fixture
def sandbox_programs() -> Path | None:
    """The folder of the topologies that `Sandbox.start` finds by a relative path; override it to have one."""
    return None


@pytest.fixture
def sandbox(request: pytest.FixtureRequest, sandbox_programs: Path | None) -> Iterator[Sandbox]:
    """A sandbox for one test (`heron_testing.sandbox`); the test fails if it leaves anything in it.

    Raises:
        UsageError: when ``heron-testing[sandbox]`` is not installed.
    """
    sandbox_at = import_module(f"{__package__}.sandbox").sandbox_at
    with sandbox_at(Path(tempfile.mkdtemp(prefix="he2e-")), request, sandbox_programs) as box:
        yield box


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "leaks_nothing: fails when the test leaves a thread or child process behind")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Look for threads and processes before the first fixture of a marked test starts some."""
    if fixturedef.scope == "function" and isinstance(request.node, pytest.Item):
        _begin_watch(request.node)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Look for threads and processes before a marked test without such fixtures."""
    _begin_watch(item)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail a marked test that leaves threads or child processes behind, after its fixtures have ended."""
    yield
    before = item.stash.get(_BEFORE, None)
    if before is not None:
        wait_until(lambda: set(threading.enumerate()) <= before.threads, _SETTLE_S, "threads left behind")
        wait_until(lambda: _children() <= before.children, _SETTLE_S, "child processes left behind")


@dataclass(frozen=True, slots=True)
class _Running:
    """The threads and child processes of this process at one moment."""

    threads: frozenset[threading.Thread]
    children: frozenset[int]


_BEFORE = pytest.StashKey[_Running]()


def _begin_watch(item: pytest.Item) -> None:
    if item.get_closest_marker("leaks_nothing") is not None and _BEFORE not in item.stash:
        item.stash[_BEFORE] = _Running(frozenset(threading.enumerate()), frozenset(_children()))


def _children() -> set[int]:
    """Return the process ids of this process's children (Linux), zombies included."""
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").glob("*"):
        try:
            found.update(int(pid) for pid in (task / "children").read_text().split())
        except OSError:
            continue  # the thread ended in between
    return found
