"""The null engine in a process of its own: ``python -m bench.yardstick`` runs a job on it and prints the rate."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from time import process_time

from bench.findings import Pace
from bench.job import LAST, Job
from bench.records import BenchError
from heron.api import Bolt, Spout, Tuple
from heron.instance.user_component import specialise
from heron.simulator.null_engine import run_null_engine

__all__ = ["measure_null", "measure_user_code"]

_WARM_UP_S = 0.5


def measure_null(job: Job, pace: Pace) -> float:
    """Tuples a second at the last bolt, with the same classes joined by direct calls.

    Raises:
        BenchError: when it fails.
    """
    return _measure("null", job, pace.window_s)


def measure_user_code(job: Job, pace: Pace) -> float:
    """Processor seconds that the user code alone takes per million tuples at the last bolt.

    Raises:
        BenchError: when it fails.
    """
    return _measure("user", job, pace.window_s)


def _measure(what: str, job: Job, seconds: float) -> float:
    command = [sys.executable, "-m", "bench.yardstick", what, str(seconds), job.topology, *job.arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        msg = f"the yardstick of {job.topology} failed: {result.stderr.strip()[-2000:]}"
        raise BenchError(msg)
    return float(json.loads(result.stdout))


def _null(job: Job, seconds: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        run_null_engine(job.builder(folder), seconds=_WARM_UP_S)
        run = run_null_engine(job.builder(folder), seconds=seconds)
        return sum(map(_count, run.components[LAST])) / run.elapsed_s


def _count(component: object) -> int:
    counts = getattr(component, "counts", None)
    return sum(counts.values()) if counts is not None else int(component.count)  # type: ignore[attr-defined]


def _user_code(job: Job, _seconds: float) -> float:
    """Each component of a chain in turn, on what the one before has emitted; emits go nowhere while it is timed."""
    raise NotImplementedError


def main(arguments: Sequence[str]) -> None:
    """Prints one number as JSON."""
    what, seconds, topology, *rest = arguments
    measure = {"null": _null, "user": _user_code}[what]
    print(json.dumps(measure(Job(topology, tuple(rest)), float(seconds))))


if __name__ == "__main__":
    main(sys.argv[1:])
