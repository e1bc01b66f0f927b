"""Pipelines on Spark of this machine are exact whatever dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from spark_run import BATCH, RUN_S, STREAMING, kill_jvm, kill_python_workers, kill_task, spark_processes
from test_pipelines import expected, kill_one, lines, meaning
from test_views import program, sqlite_ref
from watched_views import WatchedView, recount

if TYPE_CHECKING:
    from types import ModuleType

    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["expected", "meaning", "program"]

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900), pytest.mark.usefixtures("java")]


@pytest.mark.parametrize("harm", [kill_jvm, kill_python_workers, kill_task])
def test_windows_are_exact_whatever_dies(
    sandbox: Sandbox, expected: dict[str, list[str]], harm: Callable[[HeronRun], None]
) -> None:
    """A query goes on behind its last complete batch."""
    run = sandbox.start("timed_counts.py", *STREAMING, "--set", "engine.batch_rows=400")
    run.until(lambda: len(lines(run, "counts")) > 40, "windows of the first half", RUN_S)
    harm(run)
    (run.out / "go").touch()
    run.finished(RUN_S)
    assert {folder: lines(run, folder) for folder in expected} == expected


def test_a_batch_begins_again_when_spark_dies(sandbox: Sandbox, expected: dict[str, list[str]]) -> None:
    """Nothing of a batch is visible before it is complete."""
    run = sandbox.start("timed_counts.py", *BATCH)
    run.until(
        lambda: list((run.out / "counts").glob(".open-*")) or spark_processes(run, "pyspark.daemon"), "a worker", RUN_S
    )
    kill_jvm(run)
    (run.out / "go").touch()
    run.finished(RUN_S)
    assert {folder: lines(run, folder) for folder in expected} == expected


def test_a_view_of_both_engines_counts_each_element_once(sandbox: Sandbox, program: ModuleType) -> None:
    """History by Spark, whose JVM dies before the end; live by Heron, whose task dies. The program is one."""
    folder, gate = sandbox.home / "views", sandbox.root / "go"
    own = ("--set", f"store.folder={folder}")
    batch = sandbox.start("viewed_counts.py", *BATCH, *own, args=("--history", str(gate)))
    live = sandbox.start("viewed_counts.py", *own)
    view = WatchedView(program, sqlite_ref(folder))
    live.until(lambda: view.total() == 6000, "the first half")
    batch.until(lambda: spark_processes(batch, "pyspark.daemon", "/spark-batch"), "workers of Spark", RUN_S)
    spark_processes(batch, "java", "/spark-batch")[0].kill()
    assert view.total() == 6000
    gate.touch()
    batch.finished(RUN_S)
    assert view.total() >= 6000
    kill_one(live, "instance", "/view")
    (live.out / "go").touch()
    live.finished()
    assert view.counts() == recount()
