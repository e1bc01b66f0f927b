"""Measure how much a capture takes from the throughput of a topology, while it captures.

The aim is 2 %: a task spends at most a hundredth of its time, and the rest is the sleep of two threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from bench.alternating_windows import AlternatingWindows
from bench.findings import Pace
from bench.records import BenchError
from bench.trial import Trial

__all__ = ["CaptureCost"]

_WRITTEN_WITHIN_S = 180.0  # millions of rows
_BETWEEN_S = 1.0  # after a capture: what it held is free
_SETTLE_S = 4.0  # a command starts, asks the tasks and is idle until they answer
_OPTIONS = {"no capture": None, "values": (), "shape": ("--shape",)}


class CaptureCost(AlternatingWindows):
    """A capture begins before its window and ends behind it."""

    subjects: ClassVar = {
        each: "" if options is None else f"capture.{{mode}}.{each}" for each, options in _OPTIONS.items()
    }
    around_s: ClassVar = 5 * _SETTLE_S

    def prepare(self, trial: Trial, topology: str) -> None:
        """`AlternatingWindows.prepare`."""
        trial.command("update", topology, "--runtime-config", "topology.inspect.tuples=true")

    @contextmanager
    def during(self, subject: str, trial: Trial, topology: str, pace: Pace) -> Iterator[None]:
        """`AlternatingWindows.during`."""
        options = _OPTIONS[subject]
        trial.wait(_BETWEEN_S)
        if options is None:
            yield
            return
        with TemporaryDirectory() as folder:
            seconds, out = f"{pace.window_s + _SETTLE_S:g}", str(Path(folder, "load"))
            with trial.running("capture", topology, "--out", out, "--seconds", seconds, *options) as command:
                trial.wait(_SETTLE_S)
                yield
                if command.wait(_WRITTEN_WITHIN_S):
                    msg = f"heron capture of {subject} has failed"
                    raise BenchError(msg)
