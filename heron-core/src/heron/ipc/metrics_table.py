"""The newest metrics as the topology manager returns them: one row for each metric of a component, task or process.

On the wire they are a table: each series once, with its name, kind, unit and labels, and for each owner only numbers.
As objects, the same rows had four times the bytes and took three times as long to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from sys import intern
from typing import Annotated, TypeVar

import msgspec

from heron.errors import RemoteProtocolError
from heron.spi.typed_values import decode_json, json_decoder

__all__ = [
    "MetricsOwner",
    "MetricsRow",
    "MetricsSeries",
    "MetricsTable",
    "MetricsValue",
    "decode_metrics",
    "decode_metrics_as",
    "encode_metrics",
    "table_of",
]

T = TypeVar("T")


class MetricsRow(msgspec.Struct, frozen=True, gc=False):
    """One metric. Rows of one series share their labels.

    `component` is "" for the engine's own processes, whose `process` is ``NAME-CONTAINER``. `task_id` is 0 if the row
    is a sum over tasks. `value` is the total of a counter since the start of its process, the present value of a gauge,
    or the number of entries of a histogram. `rate_per_s` (counters and histograms), `p50` and `p99` (histograms) cover
    the last export period; they are None if nothing was measured in it.
    """

    component: str
    task_id: int
    process: str
    name: str
    kind: str
    unit: str
    value: float
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    rate_per_s: float | None = None
    p50: float | None = None
    p99: float | None = None


class MetricsSeries(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the rows of one metric and its labels have in common."""

    name: str
    kind: str
    unit: str
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class MetricsValue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one row has of its own; `series` is the place of its series in the table."""

    series: Annotated[int, msgspec.Meta(ge=0)]
    value: float
    rate_per_s: float | None = None
    p50: float | None = None
    p99: float | None = None


class MetricsOwner(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A component, task or process with its values."""

    component: str
    task_id: int
    process: str
    values: list[MetricsValue]


class MetricsTable(msgspec.Struct, frozen=True, array_like=True):
    """The series, and the owners in the order of the rows."""

    series: list[MetricsSeries]
    owners: list[MetricsOwner]


class _EncodedOwners(msgspec.Struct, frozen=True, array_like=True):
    """A table whose owners are still JSON: other threads would wait while those of a thousand tasks are decoded."""

    series: list[MetricsSeries]
    owners: list[msgspec.Raw]


_OBJECTS, _NONE = b"[{", b"[]"  # rows as objects, from an earlier topology manager

_Key = tuple[str, str, str, tuple[tuple[str, str], ...]]


def table_of(rows: Iterable[MetricsRow]) -> MetricsTable:
    """The table of these rows."""
    series: dict[_Key, MetricsSeries] = {}
    numbers: dict[_Key, int] = {}
    owners = []
    for (component, task_id, process), of_owner in groupby(rows, lambda row: (row.component, row.task_id, row.process)):
        values = []
        for row in of_owner:
            key = row.name, row.kind, row.unit, tuple(row.labels.items())
            series.setdefault(key, MetricsSeries(row.name, row.kind, row.unit, row.labels))
            number = numbers.setdefault(key, len(numbers))
            values.append(MetricsValue(number, row.value, row.rate_per_s, row.p50, row.p99))
        owners.append(MetricsOwner(component, task_id, process, values))
    return MetricsTable(list(series.values()), owners)


def encode_metrics(table: MetricsTable) -> bytes:
    """The table as JSON."""
    return msgspec.json.encode(table)


def decode_metrics(data: bytes) -> tuple[MetricsRow, ...]:
    """The rows of an encoded table.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    return decode_metrics_as(data, lambda row: row)


def decode_metrics_as(data: bytes, make: Callable[[MetricsRow], T]) -> tuple[T, ...]:
    """What `make` makes of each row; no more than one row exists at a time.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    try:
        return tuple(map(make, _rows(data)))
    except (msgspec.MsgspecError, UnicodeDecodeError, IndexError) as error:
        msg = f"metrics of {len(data)} bytes cannot be read: {error}"
        raise RemoteProtocolError(msg) from error


def _rows(data: bytes) -> Iterator[MetricsRow]:
    """The rows; names are interned, because answers are kept whose names are the same."""
    if data.startswith(_OBJECTS) or data == _NONE:
        yield from decode_json(data, list[MetricsRow])
        return
    table = decode_json(data, _EncodedOwners)
    series = [(intern(each.name), each.kind, each.unit, each.labels) for each in table.series]
    decoder = json_decoder(MetricsOwner)
    for raw in table.owners:
        owner = decoder.decode(raw)
        component, task_id, process = intern(owner.component), owner.task_id, intern(owner.process)
        for each in owner.values:
            name, kind, unit, labels = series[each.series]
            yield MetricsRow(
                component, task_id, process, name, kind, unit, each.value, labels, each.rate_per_s, each.p50, each.p99
            )
