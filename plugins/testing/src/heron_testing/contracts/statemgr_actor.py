"""A process of its own that uses a state manager, for the cases of the contract that take more than one process.

``python -m heron_testing.contracts.statemgr_actor ENTRY OPTIONS ACTION KIND TOPOLOGY [COUNT]``; it writes a line to
stdout when it is at work, and the tests kill it or wait for its end.
"""

from __future__ import annotations

import json
import sys
import threading

from heron.driver_kit.loading import open_driver
from heron.errors import StateConflictError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager

__all__ = ["pattern"]


def pattern(number: int, size_bytes: int) -> bytes:
    """A value that shows when it is not whole: one byte repeated, another one for each number."""
    return bytes([number % 251]) * size_bytes


def _increment(manager: StateManager, kind: NodeKind, topology: str, count: int) -> None:
    """Adds 1 to a decimal value `count` times, by compare-and-set."""
    done = 0
    while done < count:
        present = manager.get(kind, topology)
        number, expected = (0, MUST_NOT_EXIST) if present is None else (int(present.value), present.version)
        try:
            manager.set(kind, topology, b"%d" % (number + 1), expected=expected)
        except StateConflictError:
            continue
        done += 1


def _write_on(manager: StateManager, kind: NodeKind, topology: str, size_bytes: int) -> None:
    """Writes large values until it is killed."""
    number = 0
    while True:
        number += 1
        manager.set(kind, topology, pattern(number, size_bytes))


def _count(manager: StateManager, kind: NodeKind, topology: str, count: int) -> None:
    """Writes 1 to `count` as fast as it can."""
    for number in range(1, count + 1):
        manager.set(kind, topology, b"%d" % number)


def _hold(manager: StateManager, kind: NodeKind, topology: str, _count: int) -> None:
    """Holds the node, says at which epoch, and waits to be killed."""
    hold = manager.hold(kind, topology, b"held")
    _say(f"epoch {hold.epoch}")
    threading.Event().wait()


_ACTIONS = {"increment": _increment, "write-on": _write_on, "count": _count, "hold": _hold}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _main(entry: str, options: str, action: str, kind: str, topology: str, count: str = "0") -> None:
    manager = open_driver(DriverRef("statemgr", "actor", entry, json.loads(options)), StateManager)
    _say("ready")
    _ACTIONS[action](manager, NodeKind(kind), topology, int(count))
    manager.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
