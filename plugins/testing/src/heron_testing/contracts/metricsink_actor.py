"""A process of its own that feeds a sink, and waits to be killed: ``… metricsink_actor ENTRY OPTIONS``.

It writes the number of records that it has flushed, a line each time, and feeds as many as have a second of their own.
It ends with its standard input.
"""

from __future__ import annotations

import json
import sys

from heron.clock import wall_s
from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, MetricsSink, Source

__all__ = ["numbered"]

_EARLIER_S = 1200  # room for so many numbers, one a second, before now
_SOURCE = Source("words", 1, "instance-3", 0, "count", 3)


def numbered(number: int) -> MetricsRecord:
    """The record with that number, which is also its second."""
    at_s = float(int(wall_s()) - _EARLIER_S + number)
    return MetricsRecord(_SOURCE, at_s, (Metric("emitted", MetricKind.COUNTER, "tuples", float(number)),))


def _main(entry: str, options: str) -> None:
    sink = open_driver(DriverRef("metricsink", "actor", entry, json.loads(options)), MetricsSink)
    for number in range(1, _EARLIER_S + 1):  # more would push the first out of a history that is short
        sink.process(numbered(number))
        sink.flush()
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _main(*sys.argv[1:])
