"""What the benches of services share: topologies that only answer, and the processes that ask them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import psutil

from bench.findings import Pace
from bench.records import BenchError
from heron.clock import monotonic_s

__all__ = ["answering", "cores", "line_with", "running"]

_ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def answering(pace: Pace, home: Path, topologies: int, tasks: int, largest: int = 0) -> Iterator[None]:
    """A process that answers for topologies of that many tasks, whose nodes are in the folder ``state``.

    The first topology has `largest` tasks, unless that is 0.
    """
    words = [pace.engine.python, "-m", "bench.topologies_in_name_only", str(home / "state")]
    with running([*words, str(topologies), str(tasks), str(largest)], pace, home) as process:
        if line_with(process, "ready") is None:
            msg = "the process that answers for the topologies did not start"
            raise BenchError(msg)
        yield


@contextmanager
def running(words: list[str], pace: Pace, home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process for the time of the context."""
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=_ROOT,
        env=pace.engine.environment(home),
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def line_with(process: subprocess.Popen[str], text: str) -> str | None:
    """The next line of output with a text; None when the process ends first."""
    return next((line for line in cast("IO[str]", process.stdout) if text in line), None)


def cores(process: psutil.Process, window_s: float) -> float:
    """The processor time of a process within the next seconds, as a share of one processor."""
    before, start_s = process.cpu_times(), monotonic_s()
    time.sleep(window_s)
    after, took_s = process.cpu_times(), monotonic_s() - start_s
    return (after.user + after.system - before.user - before.system) / took_s
