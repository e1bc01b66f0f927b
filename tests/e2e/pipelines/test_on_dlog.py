"""A pipeline from logs to logs: its results are a recount of the input, each once, whatever dies."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from heron_testing_servers.distributedlog import DistributedLogCluster

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_LOGS, _SPAN_S, _EACH = 3, 100, 600
_END_S = 10_000  # an element of this time closes all windows before it
_SEEN_S = 90.0
_SOURCE, _TARGET = "clicks", "counts"


def half(number: int) -> list[list[str]]:
    """The records of each log: their times ascend, and no log is behind another one for long."""
    begin, end = number * _EACH // 2, (number + 1) * _EACH // 2
    return [
        [f"{index * _SPAN_S / _EACH:.3f} k{(index * 7 + log) % 5}" for index in range(begin, end)]
        for log in range(_LOGS)
    ]


def recount() -> list[str]:
    """What the results have to be."""
    counts: Counter[tuple[int, str]] = Counter()
    for record in itertools.chain(*half(0), *half(1)):
        time, key = record.split()
        counts[int(float(time)) // 10 * 10, key] += 1
    return sorted(f"{start} {key} {count}" for (start, key), count in counts.items())


class Logs:
    """The logs of the run, as their other side sees them."""

    def __init__(self, cluster: DistributedLogCluster) -> None:
        cluster.start()
        self.streams = cluster.streams
        for number in range(_LOGS):
            self.streams.make(f"{_SOURCE}-{number}")

    def fill(self, records: list[list[str]]) -> None:
        """Write to each log."""
        for number, texts in enumerate(records):
            self.streams.write(f"{_SOURCE}-{number}", texts)

    def results(self) -> list[str]:
        """What readers see."""
        return sorted(text for number in range(2) for text in self.streams.read(f"{_TARGET}-{number}"))


@pytest.fixture
def logs(distributedlog: DistributedLogCluster) -> Logs:
    return Logs(distributedlog)


def kill_one(run: HeronRun, role: str, name: str) -> None:
    """Kill a process, and wait for the one that replaces it."""
    before = {process.pid for process in run.processes(role, name)}
    run.processes(role, name)[0].kill()
    run.until(lambda: {each.pid for each in run.processes(role, name)} - before, f"another {role}{name}")


def kill_client(run: HeronRun, name: str) -> bool:
    """Kill a JVM beside a task of a component; whether there was one."""
    for task in run.processes("instance", name):
        try:
            for child in task.children():
                if "heron.dlog.Main" in child.cmdline():
                    child.kill()
                    return True
        except psutil.NoSuchProcess:  # of a task that was killed before
            continue
    return False


def test_results_are_a_recount_whatever_dies(
    sandbox: Sandbox, distributedlog: DistributedLogCluster, logs: Logs, tmp_path: Path
) -> None:
    """Tasks, the client of a writer, the client of a reader, a bookie, a stream manager."""
    sandbox.environ["XDG_CACHE_HOME"] = str(distributedlog.cache)
    logs.fill(half(0))
    words = ("--uri", distributedlog.uri, "--jars", f"{distributedlog.jars}/*", "--staging", str(tmp_path / "staging"))
    run = sandbox.start("dlog_counts.py", args=(*words, "--source", _SOURCE, "--target", _TARGET))
    run.until(lambda: len(logs.results()) > 5, "results of the first half", _SEEN_S)
    for role, name in (("instance", "/counts"), ("instance", "/records"), ("stmgr", "")):
        kill_one(run, role, name)
    distributedlog.bookies[0].kill()
    logs.fill(half(1))
    for name in ("/counts", "/records"):
        run.until(partial(kill_client, run, name), f"a client of {name}", _SEEN_S)
    logs.fill([[f"{_END_S} end"]] * _LOGS)
    wanted = recount()
    run.until(lambda: len(logs.results()) >= len(wanted), "all results", _SEEN_S)
    assert logs.results() == wanted
    distributedlog.start()
