"""Several processes use a store for the first time at the same moment, on many fresh stores.

This module is also one of the processes: ``… ENTRY INDEX`` reads a line ``START_S OPTIONS`` from stdin for
each store. It opens the store at that moment of the monotonic clock, adds to a number in it, and answers with a line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from heron.clock import monotonic_s
from heron.driver_kit.loading import open_driver
from heron.errors import StateConflictError, StateUnavailableError
from heron.spi.driver import Driver, DriverRef
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager
from heron_testing.contracts.driver import DriverContract

__all__ = ["StateManagerFirstUseCases"]

_STORES = 40  # a race that shows on 1 of 14 stores stays hidden in 1 of 20 runs
_PROCESSES = 4
_ADDITIONS = 3
_BUSY_S = 60.0  # a server on a busy machine answers again within this time
_AHEAD_S = 0.02  # so that the line reaches every process before the moment that it names


class StateManagerFirstUseCases(DriverContract):
    """Part of `heron_testing.contracts.statemgr.StateManagerContract`."""

    family = "statemgr"
    driver_class: type[StateManager]

    @pytest.fixture
    def fresh_options(self, options: dict[str, object], tmp_path: Path) -> Sequence[dict[str, object]]:
        """The options of several stores that no process has used.

        The default returns 40 copies of `options`, with new names for the paths below `tmp_path`. If `options` has no
        such path, it returns `options` alone. Override it for a store on a server, with a new root, prefix or database
        for each store. The suite opens each store once, in four processes at the same moment.
        """
        paths = {key: each for key, each in options.items() if isinstance(each, str) and str(tmp_path) in each}
        renamed = ({key: f"{path}-{number}" for key, path in paths.items()} for number in range(_STORES))
        return [{**options, **each} for each in renamed] if paths else [options]

    def test_several_processes_can_use_a_fresh_store_at_once(self, fresh_options: Sequence[dict[str, object]]) -> None:
        """The first topology of a new store starts several processes, and each of them can create the store.

        A driver that looks whether the store exists and then creates it loses this race only sometimes.
        """
        with _own_processes(self.driver_class) as processes:
            for number, options in enumerate(fresh_options, 1):
                start_s = monotonic_s() + _AHEAD_S
                for process in processes:
                    _send(process, f"{start_s} {json.dumps(options)}")
                answers = [_answer(process) for process in processes]
                assert answers == ["done"] * _PROCESSES, f"fresh store {number} of {len(fresh_options)}: {answers}"
                manager = self.driver_class.open(options)
                found = [manager.get(NodeKind.CHECKPOINTS, f"t{index}") for index in range(_PROCESSES)]
                manager.close()
                values = [None if each is None else each.value for each in found]
                assert values == [b"%d" % _ADDITIONS] * _PROCESSES, f"fresh store {number}: an update was lost"


@contextmanager
def _own_processes(driver: type[Driver]) -> Iterator[Sequence[subprocess.Popen[str]]]:
    """Start the processes, and end them with the block."""
    command = [sys.executable, "-m", __name__, f"{driver.__module__}:{driver.__qualname__}"]
    processes = [
        subprocess.Popen([*command, str(index)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for index in range(_PROCESSES)
    ]
    try:
        assert [_answer(process) for process in processes] == ["ready"] * _PROCESSES
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _send(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _count(manager: StateManager, topology: str) -> None:
    """Count to `_ADDITIONS` in a node that only this process writes, and check that every acknowledged step is there.

    A server on a busy machine may not answer in time. The outcome of the step is then unknown until the next read.
    """
    end_s = monotonic_s() + _BUSY_S
    done, pending = 0, False  # pending: the outcome of the last step is unknown
    while True:
        try:
            present = manager.get(NodeKind.CHECKPOINTS, topology)
            number, expected = (0, MUST_NOT_EXIST) if present is None else (int(present.value), present.version)
            if pending and number == done + 1:
                done, pending = number, False
            assert number == done, f"the node has {number} after {done} steps"
            if done == _ADDITIONS:
                return
            manager.set(NodeKind.CHECKPOINTS, topology, b"%d" % (done + 1), expected=expected)
            done, pending = done + 1, False
        except StateUnavailableError:
            if monotonic_s() > end_s:
                raise
            pending = True
        except StateConflictError:
            if not pending:
                raise


def _use(entry: str, options: dict[str, object], topology: str) -> str:
    try:
        manager = open_driver(DriverRef("statemgr", "first-use", entry, options), StateManager)
        _count(manager, topology)
        manager.close()
    except Exception as error:  # the case shows whatever a driver raises
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    return "done"


def _main(entry: str, index: str) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        start, _, options = line.partition(" ")
        while monotonic_s() < float(start):
            pass
        sys.stdout.write(f"{_use(entry, json.loads(options), f't{index}')}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
