"""A process of its own that schedules a job, for the cases in which the command itself is killed.

``python -m heron_testing.contracts.scheduler_actor ENTRY OPTIONS JOB``; writes ``scheduling``, schedules, writes
``scheduled`` and waits to be killed.
"""

from __future__ import annotations

import json
import sys
import threading

import msgspec

from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef
from heron.spi.scheduler import Job, Scheduler

__all__: list[str] = []


def _main(entry: str, options: str, job: str) -> None:
    scheduler = open_driver(DriverRef("scheduler", "actor", entry, json.loads(options)), Scheduler)
    decoded = msgspec.json.decode(job, type=Job)
    _say("scheduling")
    scheduler.schedule(decoded)
    _say("scheduled")
    threading.Event().wait()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
