"""Runs of pipelines on Spark of this machine: their profiles, and the processes that tests kill."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pathlib import Path

    from example_tables import ExampleTable
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = [
    "BATCH",
    "RUN_S",
    "STREAMING",
    "check_table",
    "kill_jvm",
    "kill_python_workers",
    "kill_task",
    "spark_processes",
]

RUN_S = 400.0
STREAMING = ("--profile", "spark-streaming", "--set", "engine.master=local[2]")
BATCH = ("--profile", "spark-batch", "--set", "engine.master=local[2]")


def spark_processes(run: HeronRun, word: str, task: str = "") -> list[psutil.Process]:
    """The processes of Spark below the task, whose command line has the word."""
    found = []
    for each in run.the("instance", task).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            found += [each] if word in " ".join(each.cmdline()) else []
    return found


def kill_jvm(run: HeronRun) -> None:
    """The driver of Spark; on one machine it is its executor too."""
    spark_processes(run, "java")[0].kill()


def kill_python_workers(run: HeronRun) -> None:
    """The workers and the process that forks them."""
    for process in spark_processes(run, "pyspark.daemon"):
        process.kill()


def kill_task(run: HeronRun) -> None:
    """The task of Heron, with which Spark ends."""
    run.the("instance").kill()


def check_table(sandbox: Sandbox, folder: Path, table: ExampleTable, profile: tuple[str, ...]) -> None:
    """An example prints on Spark what it prints on Heron, byte by byte; its file names no engine."""
    arguments = table.arguments(folder)
    here = sandbox.run(table.path, args=arguments)
    there = sandbox.start(table.path, *profile, args=arguments)
    there.finished(RUN_S)
    assert there.stdout == here.stdout
    assert len(table.lines(here.stdout)) >= 6
