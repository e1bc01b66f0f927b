"""Names of series and their points: how a record looks in Graphite. Pure.

A name goes from the general to the special, so that wildcards add up: ``PREFIX.TOPOLOGY.tasks.COMPONENT.TASK.METRIC``
for tasks, ``PREFIX.TOPOLOGY.containers.CONTAINER.PROCESS.METRIC`` for the engine's processes, and for each label its
name and value behind that. A node whose text had to be changed ends in a checksum of it: two never become one.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator
from typing import TypeAlias

from heron.spi.metricsink import Histogram, Metric, MetricsRecord, Source

__all__ = ["Point", "points", "series_name"]

Point: TypeAlias = tuple[str, tuple[int, float]]
"""The name of the series, its second since the epoch, and the value: as carbon's pickle protocol has it."""

_STRANGE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NODE = 120  # each node is a file name, which ends at 255 bytes with its suffix
_LONGEST_NAME = 1000  # a line of carbon ends at 16 KiB, and a path at 4096 bytes


def points(prefix: str, record: MetricsRecord) -> Iterator[Point]:
    """What of a record Graphite can hold; values that are no finite number are left out."""
    for metric in record.metrics:
        name = series_name(prefix, record.source, metric)
        if isinstance(metric.value, Histogram):
            yield f"{name}.count", (int(record.at_s), float(sum(metric.value.counts)))
            if math.isfinite(metric.value.total):
                yield f"{name}.sum", (int(record.at_s), metric.value.total)
        elif math.isfinite(metric.value):
            yield name, (int(record.at_s), float(metric.value))


def series_name(prefix: str, source: Source, metric: Metric) -> str:
    """The name; of a histogram, what its ``.count`` and ``.sum`` begin with."""
    if source.task_id:
        place = ("tasks", source.component, str(source.task_id))
    else:
        place = ("containers", str(source.container_id), source.process)
    labels = (node for label in sorted(metric.labels.items()) for node in label)
    nodes = (source.topology, *place, *metric.name.split("/"), *labels)
    name = ".".join((prefix, *map(_node, nodes)) if prefix else map(_node, nodes))
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{_checksum(name)}"


def _node(text: str) -> str:
    clean = _STRANGE.sub("_", text)[:_LONGEST_NODE]
    return clean if clean and clean == text else f"{clean or '_'}-{_checksum(text)}"


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"
