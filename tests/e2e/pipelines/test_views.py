"""A view with real processes: a reader sees each element once, whatever dies, moves or is published meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron.clock import wall_s
from heron.spi.driver import DriverRef
from watched_views import WatchedView, author_file, ends_exactly_after_kills, publish_history, recount

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The author's file."""
    return author_file(monkeypatch)


def sqlite_ref(folder: Path) -> DriverRef:
    """The store of the profile ``local`` in that folder."""
    return DriverRef("store", "sqlite", "heron_store_sqlite:SqliteViewStore", {"folder": str(folder)})


def start(sandbox: Sandbox, program: ModuleType) -> tuple[HeronRun, WatchedView]:
    folder = sandbox.home / "views"
    run = sandbox.start("viewed_counts.py", "--set", f"store.folder={folder}")
    return run, WatchedView(program, sqlite_ref(folder))


@pytest.mark.guarantee
def test_a_view_is_exact_whatever_dies(sandbox: Sandbox, program: ModuleType) -> None:
    """Tasks and a stream manager die, before and after a batch replaces a part of what is live.

    Guarantee: a view shows each element once, whatever dies.
    """
    run, view = start(sandbox, program)
    ends_exactly_after_kills(run, program, view)


def test_a_view_is_exact_when_tasks_come_and_go(sandbox: Sandbox, program: ModuleType) -> None:
    """Keys move between writers, and a writer that goes leaves nothing behind."""
    run, view = start(sandbox, program)
    run.until(lambda: view.total() == 6000, "the first half")
    for tasks in (3, 1):
        sandbox.output_of("update", "viewed_counts", "--component-parallelism", f"view-1-to-sink-1:{tasks}")
        view.counts()
    publish_history(program, view)
    begun_us = wall_s() * 1_000_000
    (run.out / "go").touch()
    run.finished()
    assert view.counts() == recount()
    published_us = view.store.read("keys", []).live_at_us
    assert published_us is not None
    assert published_us > begun_us
