"""The null engine in a separate process: ``python -m bench.yardstick`` runs a job on it and prints the rate."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from time import process_time

from bench.findings import Pace
from bench.job import LAST, Job
from bench.records import BenchError
from heron.api import Bolt, Spout, TopologyBuilder, Tuple
from heron.api.definition import ComponentKind, GroupingKind
from heron.instance.user.user_component import specialise
from heron_simulator.null_engine import run_null_engine

__all__ = ["measure_null", "measure_user_code"]

_WARM_UP_S = 0.5
_SPOUT_CALLS = 500_000


def measure_null(job: Job, pace: Pace) -> float:
    """Return the tuples a second at the last bolt with the same classes joined by direct calls.

    Raises:
        BenchError: when it fails.
    """
    return _measure("null", job, pace.window_s)


def measure_user_code(job: Job, pace: Pace) -> float:
    """Return the processor seconds of the user code alone per million tuples at the last bolt.

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
    """Time each component of a chain on the output of the one before; its own emits do nothing."""
    with tempfile.TemporaryDirectory() as folder:
        values: list[Sequence[object]] = []
        used_s = 0.0
        for component in job.definition().components:
            if any(each.grouping.kind is GroupingKind.ALL for each in component.inputs):
                values *= component.parallelism
            nowhere = _nowhere(component.kind) if job.acked else deque[object](maxlen=0).append
            used_s += _timed(_calls(job.builder(folder), component.name, values, nowhere))
            if component.name != LAST:
                emitted: list[Sequence[object]] = []
                _timed(_calls(job.builder(folder), component.name, values, _collect(emitted)))
                values = emitted
        return used_s / (len(values) / 1e6)


def _nowhere(kind: ComponentKind) -> Callable[..., object]:
    """Return a built-in that accepts the arguments of an emit with an id or anchors and costs almost nothing."""
    return operator.is_ if kind is ComponentKind.SPOUT else "".format


def _collect(emitted: list[Sequence[object]]) -> Callable[..., None]:
    def emit(values: Sequence[object], tup_id: object = None, anchors: object = None) -> None:
        emitted.append(values)

    return emit


def _calls(
    topology: TopologyBuilder, name: str, values: list[Sequence[object]], emit: Callable[..., object]
) -> Callable[[], None]:
    """Return a loop over one component: a spout until it has emitted enough, a bolt once per tuple of these values."""
    component = run_null_engine(topology, calls=1).components[name][0]
    if isinstance(component, Bolt):
        settled = deque[object](maxlen=0).append
        specialise(component, {"emit": emit, "ack": settled, "fail": settled})
        source = Tuple.source("before", "default", 1)
        tuples = [source(None, tuple(each)) for each in values]
        return lambda: _process_all(component, tuples)
    specialise(component, {"emit": emit})
    return lambda: _call_often(component)


def _process_all(bolt: Bolt, tuples: list[Tuple]) -> None:
    process = bolt.process
    for each in tuples:
        process(each)


def _call_often(spout: Spout) -> None:
    next_tuple = spout.next_tuple
    for _ in repeat(None, _SPOUT_CALLS):
        next_tuple()


def _timed(action: Callable[[], None]) -> float:
    start_s = process_time()
    action()
    return process_time() - start_s


def main(arguments: Sequence[str]) -> None:
    """Print one number as JSON."""
    what, seconds, topology, *rest = arguments
    measure = {"null": _null, "user": _user_code}[what]
    print(json.dumps(measure(Job(topology, tuple(rest)), float(seconds))))


if __name__ == "__main__":
    main(sys.argv[1:])
