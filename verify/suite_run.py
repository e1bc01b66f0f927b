"""Runs suites, a few at a time, each with its command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from heron.clock import monotonic_s
from verify.suites import Kind, Suite

__all__ = ["Outcome", "SuiteRunner", "run_side_by_side"]

_LIMITS = ("--timeout=600", "-o", "timeout_func_only=true")  # of tests: their fixtures may install several servers


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of a suite ended, with what its command wrote. `seconds` leave out the installation of servers."""

    green: bool
    passed: int
    skipped: int
    seconds: float
    output: str


class SuiteRunner:
    """Runs the command of a suite. `CI` is set, so an absent server fails its tests."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def run(self, suite: Suite) -> Outcome:
        """Runs one suite to its end; several threads may call it at a time."""
        began_s = monotonic_s()
        with tempfile.TemporaryDirectory() as folder:
            report, output, installs = (Path(folder, name) for name in ("report.xml", "output", "installs"))
            options = f"--junitxml={report}"
            program, *arguments = suite.command
            with output.open("wb") as file:
                if program == "python":
                    command = [sys.executable, *arguments, *_LIMITS, options]
                    code = self._wait(command, file.fileno(), {"HERON_TESTS_INSTALL_LOG": str(installs)})
                else:
                    code = self._wait([program, *arguments], file.fileno(), {"PYTEST_ADDOPTS": options})
            counts = _counts(report)
            return Outcome(
                # A session that finds no interpreter, or no tests, has shown nothing. `wheels` has no tests.
                green=code == 0 and (counts["passed"] > 0 or suite.kind is Kind.WHEELS),
                passed=counts["passed"],
                skipped=counts["skipped"],
                seconds=round(monotonic_s() - began_s - _install_s(installs), 1),
                output=output.read_text(encoding="utf-8", errors="replace"),
            )

    def stop(self) -> None:
        """Interrupts what runs, so that pytest ends its servers; nothing is started after it."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGINT)

    def _wait(self, command: list[str], output: int, variables: dict[str, str]) -> int:
        with self._lock:
            if self._stopped:
                return -signal.SIGINT
            environment = {**os.environ, "CI": "true", **variables}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as in ./dev: each process would compile what it imports
            process = subprocess.Popen(command, cwd=self._root, env=environment, stdout=output, stderr=output)
            self._running.add(process)
        try:
            return process.wait()
        finally:
            with self._lock:
                self._running.discard(process)


def run_side_by_side(jobs: int, work: Callable[[], bool], stop: Callable[[], None]) -> None:
    """Calls `work` in `jobs` threads until it returns False in each; calls `stop` when this thread is interrupted."""

    def keep_working() -> None:
        while work():
            pass

    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(keep_working) for _ in range(jobs)]
        try:
            for each in waiting:
                each.result()
        except BaseException:
            stop()
            raise


def _install_s(log: Path) -> float:
    """What `heron_testing_servers.install` wrote: the next run does not wait for it."""
    return sum(map(float, log.read_text(encoding="ascii").split())) if log.is_file() else 0.0


def _counts(report: Path) -> dict[str, int]:
    if not report.is_file():
        return {"passed": 0, "skipped": 0}
    suites = ElementTree.parse(report).getroot().iter("testsuite")  # noqa: S314  # pytest has just written it
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in suites:
        for name in totals:
            totals[name] += int(suite.get(name, "0"))
    skipped = totals["skipped"]
    return {"passed": totals["tests"] - totals["failures"] - totals["errors"] - skipped, "skipped": skipped}
