"""A plugin of pytest: shows where a run is, failures at once, and the ten slowest tests.

The seconds of the last run, from pytest's cache, tell how long the rest takes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from heron.clock import monotonic_s

__all__ = ["Clockwork", "pytest_addoption", "pytest_configure"]

_KEY = "checks/seconds"
_EVERY_S = 15.0  # between two lines where no terminal can replace the last one
_TERMINAL_EVERY_S = 0.5
_SLOWEST = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a caller name the section, whose lines stand between those of other sections."""
    parser.addoption("--section", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin in the process that sees all reports; workers of pytest-xdist only run tests."""
    if not hasattr(config, "workerinput"):
        workers = config.getoption("numprocesses", 0) or 1
        seconds = config.cache.get(_KEY, {})
        config.pluginmanager.register(_Reporter(config, Clockwork(seconds, int(workers))), "checks-progress")


@dataclass(slots=True)
class Clockwork:
    """What is done, running and left: `last` has the seconds of tests in the last run."""

    last: dict[str, float]
    workers: int
    done: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    failed: int = 0

    def collected(self, tests: Iterable[str]) -> None:
        """Take the tests of the run; workers of pytest-xdist report the same ones."""
        self.waiting.update(tests)

    def started(self, test: str, now_s: float) -> None:
        """Note that a test runs."""
        self.waiting.discard(test)
        self.running.setdefault(test, now_s)

    def ended(self, test: str, now_s: float) -> None:
        """Note that a test has ended, with its fixtures."""
        self.done[test] = now_s - self.running.pop(test, now_s)

    def left_s(self, now_s: float) -> float:
        """Return the seconds that the rest takes: of a test that is new, the mean of those that ended."""
        known = self.last or self.done
        mean_s = sum(known.values()) / len(known) if known else 0.0
        waiting_s = sum(self.last.get(test, mean_s) for test in self.waiting)
        running_s = sum(max(0.0, self.last.get(test, mean_s) - now_s + at_s) for test, at_s in self.running.items())
        return (waiting_s + running_s) / self.workers

    def line(self, now_s: float) -> str:
        """Return the state of the run in one line."""
        total = len(self.done) + len(self.running) + len(self.waiting)
        text = f"{len(self.done)} of {total} tests, {self.failed} failed, about {self.left_s(now_s):.0f} s left"
        if self.running:
            test, at_s = min(self.running.items(), key=lambda each: each[1])
            text += f"; {now_s - at_s:.0f} s in {test}"
        return text

    def slowest(self) -> list[tuple[float, str]]:
        """Return the ten slowest tests, the slowest first."""
        return sorted(((seconds, test) for test, seconds in self.done.items()), reverse=True)[:_SLOWEST]


class _Reporter:
    def __init__(self, config: pytest.Config, clockwork: Clockwork) -> None:
        self._config = config
        self._clockwork = clockwork
        self._terminal = sys.stdout.isatty()
        self._shown_s = monotonic_s()
        section = config.getoption("section")
        self._start = f"{section}: " if section else ""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._clockwork.collected(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._clockwork.collected(set(ids) - self._clockwork.done.keys() - self._clockwork.running.keys())

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no letter for a test that passed: the line of progress counts it."""
        return ("passed" if report.when == "call" else "", "", "") if report.passed else None

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._clockwork.started(nodeid, monotonic_s())
        self._show()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._clockwork.failed += 1
            self._write(f"\nFAILED {report.nodeid} ({report.when})\n{report.longreprtext}")
        if report.when == "teardown":
            self._clockwork.ended(report.nodeid, monotonic_s())
            self._show()

    def pytest_sessionfinish(self) -> None:
        # Other sections have written theirs meanwhile.
        self._config.cache.set(_KEY, {**self._config.cache.get(_KEY, {}), **self._clockwork.done})

    def pytest_terminal_summary(self) -> None:
        lines = [f"{seconds:7.1f} s  {test}" for seconds, test in self._clockwork.slowest()]
        self._write("\n".join([f"\n{self._start}the slowest tests:", *lines]))

    def _show(self) -> None:
        now_s = monotonic_s()
        if now_s - self._shown_s >= (_TERMINAL_EVERY_S if self._terminal else _EVERY_S):
            self._shown_s = now_s
            line = self._start + self._clockwork.line(now_s)
            if self._terminal:
                columns = os.get_terminal_size(sys.stdout.fileno()).columns
                sys.stdout.write(f"\r\x1b[K{line[: columns - 1]}")
                sys.stdout.flush()
            else:
                self._write(line)

    def _write(self, text: str) -> None:
        sys.stdout.write(f"\r\x1b[K{text}\n" if self._terminal else f"{text}\n")
        sys.stdout.flush()
