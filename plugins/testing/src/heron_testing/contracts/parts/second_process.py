"""A second process that uses a driver, for the cases in which a process is killed or several processes take part.

``python -m heron_testing.contracts.parts.second_process FAMILY ENTRY OPTIONS ARGUMENTS`` opens the driver ENTRY, a
``module:Class``, with OPTIONS as JSON. It reports its progress as lines on stdout. The test kills it, or waits for its
end.

| family | arguments | task |
|---|---|---|
| ``checkpoint`` | ``on`` NAME SIZE | writes ``storing``, replaces the object, and begins again |
| ``checkpoint`` | ``each`` NAME COUNT | stores that many objects |
| ``metricsink`` | none | flushes numbered records, and writes each number; ends with its stdin |
| ``scheduler`` | JOB | writes ``scheduling``, schedules the job, writes ``scheduled``, and waits |
| ``serializer`` | none | decodes stdin, and writes the encoded values |
| ``statemgr`` | ACTION KIND TOPOLOGY COUNT | writes ``ready``, then does the action on that node |
| ``store`` | ACTION VIEW COUNT | writes ``ready``, then does the action with that view |
| ``uploader`` | PACKAGE NAME | writes ``uploading``, uploads, removes the package, and begins again |
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from heron.clock import wall_s
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.loading import open_driver
from heron.errors import StateConflictError
from heron.spi.checkpoint import CheckpointStore
from heron.spi.driver import Driver, DriverRef
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, MetricsSink, Source
from heron.spi.scheduler import Job, Scheduler
from heron.spi.serializer import Serializer
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager
from heron.spi.store import ViewStore
from heron.spi.uploader import Uploader
from heron_testing.contracts.parts.store_writers import WRITERS

__all__ = ["numbered", "pattern", "second_process"]

_RECORDS = 1200  # one for each second before now; a short history would drop the first of more records
_SOURCE = Source("words", 1, "instance-3", 0, "count", 3)


def second_process(family: str, driver: type[Driver], options: dict[str, object], *arguments: str) -> list[str]:
    """Return the command that starts the second process with that driver."""
    entry = f"{driver.__module__}:{driver.__qualname__}"
    return [sys.executable, "-m", __name__, family, entry, json.dumps(options), *arguments]


def numbered(number: int) -> MetricsRecord:
    """Return the record number `number`, from 1 to 1200; each is one second later than the one before."""
    at_s = float(int(wall_s()) - _RECORDS + number)
    return MetricsRecord(_SOURCE, at_s, (Metric("emitted", MetricKind.COUNTER, "tuples", float(number)),))


def pattern(number: int, size_bytes: int) -> bytes:
    """Return a value in which every byte is the same, so that a mixture of two values shows."""
    return bytes([number % 251]) * size_bytes


def _feed(ref: DriverRef) -> None:
    sink = open_driver(ref, MetricsSink)
    for number in range(1, _RECORDS + 1):
        sink.process(numbered(number))
        sink.flush()
        _write_line(str(number))
    sys.stdin.read()


def _schedule(ref: DriverRef, job: str) -> None:
    scheduler = open_driver(ref, Scheduler)
    decoded = msgspec.json.decode(job, type=Job)
    state = decoded.containers[0].statemgr
    if state.family == "statemgr":  # the bench of a scheduler that uses the state of topologies
        scheduler.use_state(open_statemgr(state))
    _write_line("scheduling")
    scheduler.schedule(decoded)
    _write_line("scheduled")
    threading.Event().wait()


def _transcode(ref: DriverRef) -> None:
    serializer = open_driver(ref, Serializer)
    sys.stdout.buffer.write(serializer.encode(serializer.decode(sys.stdin.buffer.read())))


def _change_node(ref: DriverRef, action: str, kind: str, topology: str, count: str = "0") -> None:
    manager = open_driver(ref, StateManager)
    _write_line("ready")
    _ACTIONS[action](manager, NodeKind(kind), topology, int(count))
    manager.close()


def _store_objects(ref: DriverRef, action: str, name: str, number: str) -> None:
    store = open_driver(ref, CheckpointStore)
    if action == "each":
        for each in range(int(number)):
            store.store(f"{name}-{each}", f"{name}-{each}".encode())
        return
    for stored in itertools.count(1):
        _write_line("storing")
        store.store(name, pattern(stored, int(number)))


def _upload_on(ref: DriverRef, package: str, name: str) -> None:
    uploader = open_driver(ref, Uploader)
    while True:
        _write_line("uploading")
        uploader.undo(uploader.upload(Path(package), name))


def _write_view(ref: DriverRef, action: str, view: str, count: str) -> None:
    store = open_driver(ref, ViewStore)
    _write_line("ready")
    WRITERS[action](store, view, int(count))


def _increment(manager: StateManager, kind: NodeKind, topology: str, count: int) -> None:
    """Add 1 to a decimal value `count` times, by compare-and-set."""
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


def _write_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


_ACTIONS = {"increment": _increment, "write-on": _write_on, "count": _count, "hold": _hold}

_TASKS: dict[str, Callable[..., None]] = {
    "checkpoint": _store_objects,
    "metricsink": _feed,
    "scheduler": _schedule,
    "serializer": _transcode,
    "statemgr": _change_node,
    "store": _write_view,
    "uploader": _upload_on,
}


def _main(family: str, entry: str, options: str, *arguments: str) -> None:
    _TASKS[family](DriverRef(family, "second-process", entry, json.loads(options)), *arguments)


if __name__ == "__main__":
    _main(*sys.argv[1:])
