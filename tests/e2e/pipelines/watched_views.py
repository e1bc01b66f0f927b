"""A run that writes a view, and what a reader sees of it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef
from heron.spi.store import ViewStore
from heron_simulator import Simulation
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_streamlet.views import ViewReader
from heron_streamlet.views.sides import HistorySide, for_side
from heron_testing.fake_clock import FakeClock
from test_pipelines import kill_one

if TYPE_CHECKING:
    from types import ModuleType

    import pytest

    from heron_testing.heron_run import HeronRun

__all__ = ["VIEW_STAGE", "WatchedView", "author_file", "ends_exactly_after_kills", "publish_history", "recount"]

_KEYS = [f"k{number}" for number in range(20)]
VIEW_STAGE = "/view"


class WatchedView:
    """The view as a reader sees it. Counts never shrink: what a batch replaces, it contains."""

    def __init__(self, program: ModuleType, ref: DriverRef) -> None:
        self.ref = ref
        self.store = open_driver(ref, ViewStore)
        self._reader: ViewReader[int] = ViewReader(program.VIEW, self.store)
        self._before: Counter[Any] = Counter()

    def counts(self) -> Counter[Any]:
        """The present counts."""
        found = Counter(dict(self._reader.read(_KEYS).values))
        assert all(found[key] >= self._before[key] for key in _KEYS), (self._before, found)
        self._before = found
        return found

    def total(self) -> int:
        """The number of elements that a reader sees."""
        return self.counts().total()


def author_file(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the author's file again."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "topologies"))
    for name in ("viewed_counts", "gated", "recording"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import viewed_counts  # noqa: PLC0415  # only with the path

    return viewed_counts


def recount() -> Counter[str]:
    """The counts from scratch. The program is on the path."""
    from gated import PARTITIONS, elements  # noqa: PLC0415  # only there

    return Counter(key for partition in PARTITIONS for _, key in elements(partition))


def publish_history(program: ModuleType, view: WatchedView) -> None:
    """The batch over history, in this process."""
    graph = for_side(program.pipeline(None).graph(), HistorySide(view.ref), {})
    with Simulation(compile_topology("history", graph, {}), clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        assert not simulation.errors()


def ends_exactly_after_kills(run: HeronRun, program: ModuleType, view: WatchedView) -> None:
    """Kill tasks and a stream manager, before and after a batch replaces a part of what is live."""
    run.until(lambda: view.total() == 6000, "the first half")
    for role, name in (("instance", VIEW_STAGE), ("stmgr", "")):
        kill_one(run, role, name)
        view.counts()
    publish_history(program, view)
    assert view.total() >= 6000
    (run.out / "hold").touch()
    (run.out / "go").touch()
    for role, name in (("instance", "/source"), ("instance", VIEW_STAGE)):
        kill_one(run, role, name)
        view.counts()
    (run.out / "hold").unlink()
    run.finished()
    assert view.counts() == recount()
