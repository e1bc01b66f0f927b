"""A pipeline with real processes: exact windows in each delivery mode, and exactly once whatever dies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from heron_streamlet import Config
from heron_testing.pipelines.reference_engine import results_of

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

TOPOLOGIES = Path(__file__).parents[1] / "topologies"

FIRST_HALF = 6_000  # elements that the file `gated.py` lets through, in both partitions


@pytest.fixture
def meaning(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, list[str]]]]:
    """Gives what the sinks of a file's pipeline receive, by the meaning of the pipeline."""
    monkeypatch.syspath_prepend(str(TOPOLOGIES))

    def of(file: str) -> dict[str, list[str]]:
        results = results_of(_loaded(TOPOLOGIES / file).pipeline(Path("unused"), None).graph())
        return {name: sorted(map(str, values)) for name, values in results.items() if name.startswith("sink")}

    yield of
    for name in ("pipelines_program", "recording"):
        sys.modules.pop(name, None)


@pytest.fixture
def expected(meaning: Callable[[str], dict[str, list[str]]]) -> dict[str, list[str]]:
    """The lines of each folder."""
    results = meaning("timed_counts.py")
    return {"counts": results["sink-1"], "late": results["sink-2"]}


def _loaded(path: Path) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location  # noqa: PLC0415  # only here

    spec = spec_from_file_location("pipelines_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines(run: HeronRun, folder: str) -> list[str]:
    """The committed lines."""
    paths = (run.out / folder).glob("*.txt")
    return sorted(line for path in paths for line in path.read_text(encoding="utf-8").splitlines())


def kill_one(run: HeronRun, role: str, name: str) -> None:
    """Kill a process, and wait for the one that replaces it."""
    before = {process.pid for process in run.processes(role, name)}
    run.processes(role, name)[0].kill()
    run.until(lambda: {each.pid for each in run.processes(role, name)} - before, f"another {role}{name}")


@pytest.mark.parametrize("delivery", [Config.ATMOST_ONCE, Config.ATLEAST_ONCE])
def test_windows_are_exact_when_nothing_dies(sandbox: Sandbox, expected: dict[str, list[str]], delivery: int) -> None:
    """Two source tasks, two containers; results depend on the order within partitions only."""
    run = sandbox.start("timed_counts.py", args=("--delivery", str(delivery)))
    (run.out / "go").touch()
    run.finished()
    assert {folder: lines(run, folder) for folder in expected} == expected


@pytest.mark.parametrize(
    ("form", "windows"),
    [
        pytest.param("records", "/reducebykeyandwindow", marks=pytest.mark.guarantee),
        ("columns", "/countbykeyandwindow"),
    ],
)
def test_windows_are_exact_whatever_dies(
    sandbox: Sandbox, expected: dict[str, list[str]], form: str, windows: str
) -> None:
    """Positions, event times, windows and transactions come back from one checkpoint.

    Guarantee: windows of a pipeline are exactly once whatever dies.
    """
    run = sandbox.start("timed_counts.py", args=("--form", form))
    run.until(lambda: len(lines(run, "counts")) > 40, "windows of the first half")
    for role, name in (("instance", windows), ("instance", "/source"), ("stmgr", "")):
        kill_one(run, role, name)
    (run.out / "go").touch()
    run.finished()
    assert {folder: lines(run, folder) for folder in expected} == expected


@pytest.mark.guarantee
def test_windows_are_exact_when_tasks_come_and_go(sandbox: Sandbox, expected: dict[str, list[str]]) -> None:
    """An update moves windows with their keys, and partitions with their positions and event times.

    Guarantee: windows of a pipeline move with their keys.
    """
    run = sandbox.start("timed_counts.py")
    run.until(lambda: len(lines(run, "counts")) > 40, "windows of the first half")
    for source, windows in ((1, 3), (3, 1)):
        changes = (f"source-1-to-keyby-1:{source}", f"reducebykeyandwindow-1-to-sink-1:{windows}")
        options = [word for each in changes for word in ("--component-parallelism", each)]
        sandbox.output_of("update", "timed_counts", *options)
    (run.out / "go").touch()
    run.finished()
    assert {folder: lines(run, folder) for folder in expected} == expected


@pytest.mark.guarantee
def test_early_results_come_long_before_the_window_ends(
    sandbox: Sandbox, meaning: Callable[[str], dict[str, list[str]]]
) -> None:
    """Each key has its count so far while the hour is open, and again when the task that counts was restored.

    Guarantee: early results come before the window ends, and the final one last.
    """
    expected = meaning("early_counts.py")
    keys = {line.split()[0] for line in expected["sink-1"]}
    run = sandbox.start("early_counts.py")
    run.until(lambda: sum(counts_so_far(run).values()) == FIRST_HALF, "early results of all that comes before the gate")
    seen, half = lines(run, "early"), counts_so_far(run)
    assert len(seen) == len(set(seen))
    assert half.keys() == keys
    kill_one(run, "instance", "/countbykeyandwindow")
    run.until(lambda: len(lines(run, "early")) > len(set(lines(run, "early"))), "early results again")
    assert lines(run, "counts") == []
    (run.out / "go").touch()
    run.finished()
    assert lines(run, "counts") == expected["sink-1"]
    assert [line for line in lines(run, "early") if line.endswith("final")] == expected["sink-2"]
    assert counts_so_far(run) == {key: int(count) for key, count in (line.split() for line in expected["sink-1"])}
    assert all(half[key] < counts_so_far(run)[key] for key in keys)


def counts_so_far(run: HeronRun) -> dict[str, int]:
    """The largest count of each key in an early or final result."""
    found: dict[str, int] = {}
    for line in lines(run, "early"):
        key, count, _ = line.split()
        found[key] = max(int(count), found.get(key, 0))
    return found


def test_the_example_prints_the_table_of_its_meaning(sandbox: Sandbox, examples: Path) -> None:
    """Windows of windows, with two tasks that count."""
    trends = _loaded(examples / "pipelines" / "trends.py")
    run = sandbox.run(examples / "pipelines" / "trends.py", args=("--seconds", "20"))
    assert run.process.returncode == 0, run.all_output
    printed = [line for line in run.stdout.splitlines() if "#topic" in line]
    assert printed == sorted(results_of(trends.trends(20).graph())["map-2"], key=printed.index)
