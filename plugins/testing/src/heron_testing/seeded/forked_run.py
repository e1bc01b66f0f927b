"""Runs scenarios in forks, so that a run does not depend on the runs before it.

The first run of a process imports modules and fills caches, which takes simulated time. So a fixed run comes first, and
every other run begins with the memory that it leaves. The start of a topology costs as much as its run. So a fork makes
the start once, and a fork of it makes each scenario with this beginning.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self, TypeVar, cast

from heron_testing.seeded.faults import Fault, FaultKind
from heron_testing.seeded.simulation import Outcome, Scenario, Simulation

__all__ = ["ForkedRuns", "forked", "warm_up"]

T = TypeVar("T")


def warm_up() -> None:
    """Makes the fixed run in each mode; call it once, before the first fork."""
    for with_state in (False, True):
        update = (Fault(0.5, FaultKind.UPDATE, "split 3"),)
        scenario = Scenario(0, update, with_state=with_state, sentences=20, limit_s=5.0)
        with tempfile.TemporaryDirectory(prefix="hs-") as folder:
            simulation = Simulation(scenario.beginning, Path(folder))
            simulation.begin()
            simulation.finish(scenario)
    gc.collect()
    gc.freeze()
    gc.disable()  # a run ends before its garbage matters


class ForkedRuns:
    """Runs scenarios one after the other; a context manager."""

    def __init__(self, *, keeps_trace: bool = False) -> None:
        self._keeps_trace = keeps_trace
        self._beginning: Scenario | None = None
        self._child = 0
        self._requests: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, scenario: Scenario) -> Outcome:
        """The outcome of a scenario.

        Raises:
            RuntimeError: when the process that runs it ends without one; its stderr has the reason.
        """
        if scenario.beginning != self._beginning or self._requests is None:
            self.close()
            ours, theirs = Pipe()
            self._child = _fork(lambda: _serve(scenario.beginning, ours, theirs, keeps_trace=self._keeps_trace))
            theirs.close()
            self._requests = ours
            self._beginning = scenario.beginning
        try:
            self._requests.send(scenario)
            return cast("Outcome", self._requests.recv())
        except (EOFError, OSError) as error:
            self.close()
            message = f"the run of seed {scenario.seed} has ended without an outcome"
            raise RuntimeError(message) from error

    def close(self) -> None:
        """Ends the process that has the present beginning; idempotent."""
        if self._requests is not None:
            self._requests.close()
            os.waitpid(self._child, 0)
            self._requests = None


def forked(run: Callable[[], T]) -> T:
    """The result of a call in a fork of this process.

    Raises:
        RuntimeError: when the fork ends without one; its stderr has the reason.
    """
    ours, theirs = Pipe(duplex=False)
    child = _fork(lambda: theirs.send(run()))
    theirs.close()
    try:
        return cast("T", ours.recv())
    except EOFError as error:
        message = "a run has ended without an outcome"
        raise RuntimeError(message) from error
    finally:
        ours.close()
        os.waitpid(child, 0)


def _serve(beginning: Scenario, ours: Connection, requests: Connection, *, keeps_trace: bool) -> None:
    ours.close()  # so that `requests` ends with the parent's
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    try:
        simulation = Simulation(beginning, folder, keeps_trace=keeps_trace)
        simulation.begin()
        kept = folder.with_name(f"{folder.name}-start")
        shutil.copytree(folder, kept)
        try:
            _answer(simulation, requests, folder, kept)
        finally:
            shutil.rmtree(kept, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answer(simulation: Simulation, requests: Connection, folder: Path, kept: Path) -> None:
    while True:
        try:
            scenario = requests.recv()
        except EOFError:
            return
        child = _fork(lambda: requests.send(simulation.finish(scenario)))  # noqa: B023 - the child ends in this round
        if os.waitpid(child, 0)[1]:
            return
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)


def _fork(run: Callable[[], object]) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            code = 0
        except BaseException:  # the parent reports it
            traceback.print_exc()
        finally:
            os._exit(code)
    return child
