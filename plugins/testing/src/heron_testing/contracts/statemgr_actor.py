"""A second process that uses a state manager, for cases of the contract with several processes.

``python -m heron_testing.contracts.statemgr_actor ENTRY OPTIONS ACTION KIND TOPOLOGY [COUNT]`` writes a line to stdout
when the store is open. The tests kill the process or wait for its end.
"""

from __future__ import annotations

import json
import sys
import threading

from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron_testing.contracts.statemgr_first_use import add

__all__ = ["pattern"]


def pattern(number: int, size_bytes: int) -> bytes:
    """Return a value in which every byte is the same, so that a mixture of two values shows."""
    return bytes([number % 251]) * size_bytes


def _write_on(manager: StateManager, kind: NodeKind, topology: str, size_bytes: int) -> None:
    """Write large values until the process is killed."""
    number = 0
    while True:
        number += 1
        manager.set(kind, topology, pattern(number, size_bytes))


def _count(manager: StateManager, kind: NodeKind, topology: str, count: int) -> None:
    """Write 1 to `count` without a pause."""
    for number in range(1, count + 1):
        manager.set(kind, topology, b"%d" % number)


def _hold(manager: StateManager, kind: NodeKind, topology: str, _count: int) -> None:
    """Hold the node, write its epoch to stdout, and wait to be killed."""
    hold = manager.hold(kind, topology, b"held")
    _write_line(f"epoch {hold.epoch}")
    threading.Event().wait()


_ACTIONS = {"increment": add, "write-on": _write_on, "count": _count, "hold": _hold}


def _write_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _main(entry: str, options: str, action: str, kind: str, topology: str, count: str = "0") -> None:
    manager = open_driver(DriverRef("statemgr", "actor", entry, json.loads(options)), StateManager)
    _write_line("ready")
    _ACTIONS[action](manager, NodeKind(kind), topology, int(count))
    manager.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
