"""Random pipelines give the same results on all engines: those of their meaning, also when processes die in the middle.

The short form runs some on real processes of Heron. `./dev soak` runs more, on the simulator and on Spark too.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

from heron.clock import monotonic_s
from heron.errors import UsageError
from heron_spark_kit.java import check_java
from heron_streamlet import Config
from heron_testing.pipelines.drawn_chains import described, expected_lines, simulated_lines, written_lines
from heron_testing_servers.absence import not_here
from spark_run import kill_jvm, kill_python_workers, kill_task, spark_processes
from test_pipelines import kill_one

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

SOAK_MINUTES = float(os.environ.get("HERON_SOAK_MINUTES", "10"))
RUN_S = 240.0
ENGINES = ("spark-batch", "spark-streaming")
AT_ONCE = 6
"""Pipelines of one run on Spark, which needs seconds to start; Heron runs them in parts, for it has a process for each
task."""

EXACTLY_ONCE = ("--delivery", str(Config.EFFECTIVELY_ONCE))
SEVERAL_CHECKPOINTS = 2


@pytest.fixture
def _java() -> None:
    try:
        check_java()
    except UsageError as error:
        not_here(str(error))


@pytest.mark.parametrize(
    ("number", "options"),
    [(4, ()), pytest.param(9, (), marks=pytest.mark.guarantee), (13, ()), (20, ()), (38, EXACTLY_ONCE)],
    ids=str,
)
def test_processes_give_the_results_of_the_meaning(sandbox: Sandbox, number: int, options: tuple[str, ...]) -> None:
    """With a watermark behind every few elements; 9 is a pipeline of columns.

    Guarantee: processes give the results that the meaning of a pipeline has.
    """
    assert expected_lines(number).total() > 3
    check(start(sandbox, number, number, "--breaks", "1", *options), number, number)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_MINUTES * 60 + 1200)
@pytest.mark.usefixtures("_java")
def test_all_engines_give_the_results_of_the_meaning(sandbox: Sandbox) -> None:
    """One input for the simulator, Heron, Spark batch and Structured Streaming, cut anywhere."""
    chance = random.Random(1)
    for first in numbers(SOAK_MINUTES):
        last = first + AT_ONCE - 1
        for number in range(first, last + 1):
            assert simulated_lines(number) == expected_lines(number), described(number)
        for part in range(first, last, 2):
            check(start(sandbox, part, part + 1, "--breaks", "1"), part, part + 1)
        for engine in ENGINES:
            cut = ("--set", f"engine.batch_rows={chance.randint(5, 60)}") if engine == "spark-streaming" else ()
            check(start(sandbox, first, last, options=(*on_spark(engine), *cut)), first, last)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_MINUTES * 60 + 1200)
def test_processes_that_die_change_no_result(sandbox: Sandbox) -> None:
    """Kill tasks and a stream manager of Heron while the sources wait in their middle."""
    chance = random.Random(2)
    for first in numbers(SOAK_MINUTES / 4):
        run = start(sandbox, first, first + 1, "--wait", "1", "--breaks", "1", *EXACTLY_ONCE)
        run.until(lambda: any(run.out.iterdir()), "tasks")  # noqa: B023  # called here only
        run.until(lambda: _complete(sandbox) >= SEVERAL_CHECKPOINTS, "checkpoints")
        for role in (*chance.choices(("instance", "stmgr"), (3, 1), k=2), "instance"):
            kill_one(run, role, "")
        (run.out / "go").touch()
        check(run, first, first + 1)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_MINUTES * 60 + 1200)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("_java")
def test_spark_that_dies_changes_no_result(sandbox: Sandbox, engine: str) -> None:
    """Kill the JVM, the workers or the task while the sources wait in their middle."""
    chance = random.Random(3)
    for first in numbers(SOAK_MINUTES / 4):
        kept = sandbox.root / f"kept{first}"
        own = ("--set", f"engine.checkpoint={kept}", "--set", "engine.batch_rows=20") if "stream" in engine else ()
        last = first + AT_ONCE - 1
        run = start(sandbox, first, last, "--wait", "1", options=(*on_spark(engine), *own))
        if own:
            run.until(lambda: len(list(kept.glob("batches/*"))) >= SEVERAL_CHECKPOINTS, "batches", RUN_S)  # noqa: B023  # called here only
        else:
            run.until(lambda: spark_processes(run, "pyspark.daemon"), "workers of Spark", RUN_S)  # noqa: B023
        chance.choice((kill_jvm, kill_python_workers, kill_task))(run)
        (run.out / "go").touch()
        check(run, first, last)


def numbers(minutes: float) -> Iterator[int]:
    """The first numbers of groups of pipelines, at least one, until the time is over."""
    end_s = monotonic_s() + minutes * 60
    for group in count(100, AT_ONCE):
        yield group
        if monotonic_s() >= end_s:
            return


def on_spark(engine: str) -> tuple[str, ...]:
    """The options of a run on Spark of this machine."""
    return ("--profile", engine, "--set", "engine.master=local[2]")


def start(sandbox: Sandbox, first: int, last: int, *arguments: str, options: tuple[str, ...] = ()) -> HeronRun:
    """Start the pipelines of these numbers."""
    return sandbox.start("drawn.py", *options, args=("--first", str(first), "--last", str(last), *arguments))


def check(run: HeronRun, first: int, last: int) -> None:
    """Wait for the end, and compare with the meaning."""
    run.finished(RUN_S)
    for number in range(first, last + 1):
        found, expected = written_lines(run.out, number), expected_lines(number)
        assert found == expected, f"{described(number)}: {found - expected} too much, {expected - found} missing"


def _complete(sandbox: Sandbox) -> int:
    shown: int = sandbox.checkpoints("drawn")["complete"]
    return shown
