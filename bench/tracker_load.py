"""Measure the tracker with the pages of the web UI: its processor time, memory and answers for many topologies.

Its process, the sockets with their encryption, the state manager and the history are real. The topologies are not: one
other process answers for all topology managers, with as many values as real ones.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.live_clients import LiveClients
from bench.named_topologies import answering, cores, line_with, running
from bench.records import BenchError
from heron.clock import monotonic_s

__all__ = ["TrackerLoad"]

_WITHIN_S = 60.0
_SETTLED_S = 10.0  # the first questions of all topologies come at once
_WINDOW_S = 60.0  # at the usual pace: the points of tasks are written once a minute
_REQUESTS = 600
_BETWEEN_S = 0.02  # requests fall into all parts of a period
_TOPOLOGIES = "/api/v1/clusters/load/topologies"
_PROFILE = "extends: local\nstatemgr:\n  driver: localfs\n  root: {root}\n"
_PATHS = ("", "/tasks?limit=1000", "/flow", "/events", "/metrics?component=count")


@dataclass(frozen=True)
class TrackerLoad(Bench):
    """`topologies` of `tasks` each, the first of `largest`; they are looked at when their answers are measured.

    Meanwhile `clients` follow the live values of the first one.
    """

    name: str
    topologies: int
    tasks: int
    largest: int = 0
    clients: int = 0

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for _ in range(max(1, pace.pairs // 2)):
            with tempfile.TemporaryDirectory(prefix="hb-tracker-") as folder:
                home = Path(folder)
                size = self.topologies, self.tasks, self.largest
                with answering(pace, home, *size), self._serving(pace, home) as (process, url):
                    self._wait_until_known(url)
                    time.sleep(_SETTLED_S)
                    window_s = _WINDOW_S * pace.window_s / Pace().window_s
                    found["nobody looks", "cores"].append(cores(process, window_s))
                    with LiveClients(f"{url}{_TOPOLOGIES}/load-00/live", self.clients) as clients:
                        answers = self._answers(url)
                        delays_s = clients.delays_s()
                    for subject, answers_s in answers.items():
                        found[f"{subject}, p50", "ms"].append(1e3 * statistics.median(answers_s))
                        found[f"{subject}, p99", "ms"].append(1e3 * _percentile(answers_s, 0.99))
                    if delays_s:
                        subject = f"live value, {self.clients} clients"
                        found[f"{subject}, p50", "ms"].append(1e3 * statistics.median(delays_s))
                        found[f"{subject}, p99", "ms"].append(1e3 * _percentile(delays_s, 0.99))
                    found["memory", "MiB resident"].append(process.memory_info().rss / 2**20)
        findings = Findings()
        for (subject, unit), values in found.items():
            findings.rows.append(median_row(self.name, subject, unit, values))
        return findings

    @contextmanager
    def _serving(self, pace: Pace, home: Path) -> Iterator[tuple[psutil.Process, str]]:
        profiles = home / ".heron" / "profiles"
        profiles.mkdir(parents=True)
        (profiles / "load.yaml").write_text(_PROFILE.format(root=home / "state"), encoding="utf-8")
        words = [pace.engine.command, "ui", "--profile", "load", "--address", "127.0.0.1:0"]
        with running(words, pace, home) as process:
            line = line_with(process, "ui at ")
            if line is None:
                msg = "`heron ui` did not start"
                raise BenchError(msg)
            yield psutil.Process(process.pid), re.findall(r"ui at (http://[^/]*)/", line)[0]

    def _wait_until_known(self, url: str) -> None:
        deadline_s = monotonic_s() + _WITHIN_S
        while monotonic_s() < deadline_s:
            items = httpx.get(f"{url}/api/v1/topologies", timeout=_WITHIN_S).raise_for_status().json()["items"]
            if len(items) == self.topologies and all(each["rate_per_s"] for each in items):
                return
            time.sleep(0.2)
        msg = f"the tracker does not know all {self.topologies} topologies within {_WITHIN_S:g} s"
        raise BenchError(msg)

    def _answers(self, url: str) -> dict[str, list[float]]:
        """The seconds of each of some hundreds of answers, one after the other; those of the first one apart."""
        found: defaultdict[str, list[float]] = defaultdict(list)
        with httpx.Client(base_url=f"{url}{_TOPOLOGIES}", timeout=_WITHIN_S) as client:
            for number in range(_REQUESTS):
                first = bool(self.largest) and number % 2 == 0
                topology = "load-00" if first else f"load-{number % self.topologies:02}"
                path = _PATHS[number // 2 % len(_PATHS)]
                start_s = monotonic_s()
                client.get(f"/{topology}{path}").raise_for_status()
                subject = f"answer about {self.largest} tasks" if first else "answer"
                found[subject].append(monotonic_s() - start_s)
                time.sleep(_BETWEEN_S)
        return found


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * len(values))]
