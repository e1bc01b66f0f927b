"""Measure how much a web UI that watches a topology at full speed takes from its throughput.

If the topology uses every processor, it loses the share that the UI uses itself, and the share that its questions cost
the topology manager. Windows of throughput differ by more than that, so the shares are measured too.
"""

from __future__ import annotations

import re
import signal
import statistics
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast

import httpx
import psutil

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import LAST, Job
from bench.processes import cpu_s
from bench.records import BenchError
from bench.trial import Trial
from bench.window import WindowUse, add_windows, ratios_of, use_in_window
from heron.clock import monotonic_s

__all__ = ["UiCost"]

_START_WITHIN_S = 60.0
_SETTLED_S = 5.0
_BETWEEN_S = 1.0  # after a change: what has waited for the process is done
_ROUNDS = 6  # of each pair of the pace: a window differs by some percent from the next one
_POLL_S = 1.0
_ASKED = "topology manager"


@dataclass(frozen=True)
class UiCost(Bench):
    """Windows of one run alternate: `heron ui` is stopped by a signal, serves no page, or serves an open page."""

    name: str
    job: Job

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        tasks = self.job.last_tasks()
        windows: defaultdict[str, list[WindowUse]] = defaultdict(list)
        shares: defaultdict[str, list[float]] = defaultdict(list)
        rounds = _ROUNDS * pace.pairs
        limit_s = int(_START_WITHIN_S + rounds * 3 * (pace.window_s + 2 * _BETWEEN_S) + 120)
        with Trial(self.job.topology, *self.job.arguments, engine=pace.engine, timeout_s=limit_s) as trial:
            trial.wait_until(lambda _: trial.records.has_begun(LAST, tasks), _START_WITHIN_S)
            with _serving(trial) as (process, url), _OpenPage(_page_of(trial, url)) as page:
                trial.wait(_SETTLED_S)
                for number in range(rounds):
                    states = ["off", "no page", "a page"]
                    for state in states[number % 3 :] + states[: number % 3]:  # no state is always behind the same one
                        process.send_signal(signal.SIGSTOP if state == "off" else signal.SIGCONT)
                        page.open(is_open=state == "a page")
                        trial.wait(_BETWEEN_S)
                        start_s, used_s = monotonic_s(), cpu_s(process)
                        windows[state].append(use_in_window(trial, pace.window_s, tasks))
                        shares[state].append((cpu_s(process) - used_s) / (monotonic_s() - start_s))
                process.send_signal(signal.SIGCONT)
            self.job.check(trial.records, trial.end())
        findings = Findings()
        for state, key in (("off", ""), ("no page", "ui"), ("a page", "ui_with_page")):
            subject = f"heron ui: {state}"
            asked = [each.cores[_ASKED] for each in windows[state]]
            add_windows(findings, self.name, subject, windows[state])
            findings.rows.append(median_row(self.name, f"{subject}, its process", "cores", shares[state]))
            findings.rows.append(median_row(self.name, f"{subject}, {_ASKED}", "cores", asked))
            if key:
                findings.ratios.update(ratios_of(key, windows[state], windows["off"]))
                taken = [
                    (own + on.cores[_ASKED] - off.cores[_ASKED]) / sum(off.cores.values())
                    for own, on, off in zip(shares[state], windows[state], windows["off"], strict=True)
                ]
                findings.ratios[f"{key}.processors_left"] = 1.0 - statistics.median(taken)
        return findings


@contextmanager
def _serving(trial: Trial) -> Iterator[tuple[psutil.Process, str]]:
    with trial.running("ui", "--address", "127.0.0.1:0") as process:
        line = next((each for each in cast("IO[str]", process.stdout) if "ui at " in each), None)
        if line is None:
            msg = "`heron ui` did not start"
            raise BenchError(msg)
        watched = psutil.Process(process.pid)
        try:
            yield watched, re.findall(r"ui at (http://[^/]*)/", line)[0]
        finally:
            watched.send_signal(signal.SIGCONT)


def _page_of(trial: Trial, url: str) -> str:
    """The path of the one topology, when the tracker knows its rate."""
    found: list[str] = []

    def known(_now_s: float) -> bool:
        items = httpx.get(f"{url}/api/v1/topologies", timeout=_START_WITHIN_S).raise_for_status().json()["items"]
        found[:] = [each["name"] for each in items if each["rate_per_s"]]
        return bool(found)

    trial.wait_until(known, _START_WITHIN_S)
    return f"{url}/api/v1/clusters/local/topologies/{found[0]}"


class _OpenPage:
    """Asks as the page of a topology does: its live status, and the graph once a second."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened = threading.Event()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._poll, self._follow)]

    def __enter__(self) -> _OpenPage:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._opened.set()
        for each in self._threads:
            each.join(10.0)

    def open(self, *, is_open: bool) -> None:
        """Begin to ask, or end."""
        if is_open:
            self._opened.set()
        else:
            self._opened.clear()

    def _poll(self) -> None:
        with httpx.Client(timeout=60.0) as client:  # a new one for each request costs more than the request
            while not self._ended.is_set():
                if self._opened.wait(_POLL_S) and not self._ended.is_set():
                    client.get(f"{self._url}/flow").raise_for_status()
                    self._ended.wait(_POLL_S)

    def _follow(self) -> None:
        while not self._ended.is_set():
            if not self._opened.wait(_POLL_S) or self._ended.is_set():
                continue
            with httpx.stream("GET", f"{self._url}/live", timeout=60.0) as stream:
                for _ in stream.iter_lines():
                    if not self._opened.is_set() or self._ended.is_set():
                        break
