"""A view with real processes: a reader sees each element once, whatever dies, moves or is published meanwhile."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_pipelines import kill_one

from heron.clock import wall_s
from heron.spi.driver import DriverRef
from heron_simulator import Simulation
from heron_store_sqlite import SqliteViewStore
from heron_streamlet.lambda_ import ViewReader
from heron_streamlet.lambda_.sides import HistorySide, for_side
from heron_streamlet.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock

if TYPE_CHECKING:
    from types import ModuleType

    from conftest import HeronRun, Sandbox

KEYS = [f"k{number}" for number in range(20)]
_VIEW_STAGE = "/view"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The author's file."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "topologies"))
    import viewed_counts  # noqa: PLC0415  # only here

    yield viewed_counts
    for name in ("viewed_counts", "gated", "recording"):
        sys.modules.pop(name, None)


class Watched:
    """The view as a reader sees it. Counts never shrink: what a batch replaces, it contains."""

    def __init__(self, program: ModuleType, folder: Path) -> None:
        self.ref = DriverRef("store", "sqlite", "heron_store_sqlite:SqliteViewStore", {"folder": str(folder)})
        self._reader: ViewReader[int] = ViewReader(program.VIEW, SqliteViewStore.open(self.ref.options))
        self._before: Counter[Any] = Counter()

    def counts(self) -> Counter[Any]:
        """The present counts."""
        found = Counter(dict(self._reader.read(KEYS).values))
        assert all(found[key] >= self._before[key] for key in KEYS), (self._before, found)
        self._before = found
        return found

    def total(self) -> int:
        """The number of elements that a reader sees."""
        return self.counts().total()


def recount() -> Counter[str]:
    """The counts from scratch. The program is on the path."""
    from gated import PARTITIONS, elements  # noqa: PLC0415  # only there

    return Counter(key for partition in PARTITIONS for _, key in elements(partition))


def start(sandbox: Sandbox, program: ModuleType) -> tuple[HeronRun, Watched]:
    folder = sandbox.home / "views"
    run = sandbox.start("viewed_counts.py", "--set", f"store.folder={folder}")
    return run, Watched(program, folder)


def publish_history(program: ModuleType, view: Watched) -> None:
    """The batch over history, in this process."""
    graph = for_side(program.pipeline(None).graph(), HistorySide(view.ref), {})
    with Simulation(compile_topology("history", graph, {}), clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        assert not simulation.errors()


def test_a_view_is_exact_whatever_dies(sandbox: Sandbox, program: ModuleType) -> None:
    """Tasks and a stream manager die, before and after a batch replaces a part of what is live."""
    run, view = start(sandbox, program)
    run.until(lambda: view.total() == 6000, "the first half")
    for role, name in (("instance", _VIEW_STAGE), ("stmgr", "")):
        kill_one(run, role, name)
        view.counts()
    publish_history(program, view)
    assert view.total() >= 6000
    (run.out / "go").touch()
    for role, name in (("instance", "/source"), ("instance", _VIEW_STAGE)):
        kill_one(run, role, name)
        view.counts()
    run.finished()
    assert view.counts() == recount()


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
    published_us = SqliteViewStore.open(view.ref.options).read("keys", []).live_at_us
    assert published_us is not None
    assert published_us > begun_us
