"""The series and points of a record, and the two formats in which carbon receives points. Pure.

The name of a series begins with the most general node, so that wildcards can select groups of series:

    PREFIX.TOPOLOGY.tasks.COMPONENT.TASK.METRIC                 a task
    PREFIX.TOPOLOGY.containers.CONTAINER.PROCESS.METRIC         a process of the engine

The name and value of each label follow. Characters that Graphite does not allow are replaced, and the node then ends
in a checksum of the original text, so that different names stay different.
"""

from __future__ import annotations

import math
import pickle
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from heron.spi.metricsink import Histogram, Metric, MetricsRecord, Source

__all__ = ["Point", "as_pickle", "as_plaintext", "parts", "points", "series_name"]

Point: TypeAlias = tuple[str, tuple[int, float]]
"""The name of the series, the time in seconds since the epoch, and the value: the layout of carbon's pickle format."""

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NODE = 120  # each node becomes a file name: at most 255 bytes with suffix
_LONGEST_NAME = 1000  # carbon accepts lines of at most 16 KiB, and a path has at most 4096 bytes
_PART_BYTES = 256 * 1024  # carbon accepts pickled messages of at most 1 MiB
_POINT_BYTES = 50  # the most bytes of a point without its name


def points(prefix: str, record: MetricsRecord) -> Iterator[Point]:
    """Return the points of a record; skip values that are not finite numbers."""
    for metric in record.metrics:
        name = series_name(prefix, record.source, metric)
        if isinstance(metric.value, Histogram):
            yield f"{name}.count", (int(record.at_s), float(sum(metric.value.counts)))
            if math.isfinite(metric.value.total):
                yield f"{name}.sum", (int(record.at_s), metric.value.total)
        elif math.isfinite(metric.value):
            yield name, (int(record.at_s), float(metric.value))


def series_name(prefix: str, source: Source, metric: Metric) -> str:
    """Return the name of the series; for a histogram, the common beginning of its ``.count`` and ``.sum``."""
    if source.task_id:
        place = ("tasks", source.component, str(source.task_id))
    else:
        place = ("containers", str(source.container_id), source.process)
    labels = (node for label in sorted(metric.labels.items()) for node in label)
    nodes = (source.topology, *place, *metric.name.split("/"), *labels)
    name = ".".join((prefix, *map(_node, nodes)) if prefix else map(_node, nodes))
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{_checksum(name)}"


def parts(points: Iterable[Point]) -> Iterator[list[Point]]:
    """Divide the points into parts that fit into one message each."""
    part: list[Point] = []
    size = 0
    for point in points:
        part.append(point)
        size += len(point[0]) + _POINT_BYTES
        if size >= _PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def as_plaintext(points: Sequence[Point]) -> bytes:
    """Return one line per point."""
    return "".join(f"{name} {value!r} {at_s}\n" for name, (at_s, value) in points).encode("ascii")


def as_pickle(points: Sequence[Point]) -> bytes:
    """Return one message: the length and a pickled list, in a protocol that carbon reads on Python 2 and 3."""
    data = pickle.dumps(list(points), protocol=2)
    return struct.pack("!L", len(data)) + data


def _node(text: str) -> str:
    clean = _NOT_ALLOWED.sub("_", text)[:_LONGEST_NODE]
    return clean if clean and clean == text else f"{clean or '_'}-{_checksum(text)}"


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"
