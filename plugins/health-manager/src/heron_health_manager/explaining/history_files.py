"""The history of a run in files of this machine: events and gauges by the metrics sink `file`, the supervisor's log.

The formats are those of `heron-metricsink-file`. Files may be rotated, missing, or end within a line; a line that
cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from heron.spi.metricsink import MetricKind
from heron_health_manager.explaining.facts import PastEvent, PastGauges

__all__ = ["read_events", "read_gauges"]

_CONTAINER_ENDED = "container-ended"
_ENDED = " ended: "
_DONE = "done"


class _Source(msgspec.Struct):
    container_id: int
    process: str
    incarnation: int = 0


class _Event(msgspec.Struct):
    name: str
    at_s: float
    subject: str
    source: _Source
    id: str = ""
    attributes: dict[str, str] = {}


class _Metric(msgspec.Struct):
    name: str
    kind: str
    value: object = None


class _Record(msgspec.Struct):
    at_s: float
    source: _Source
    metrics: list[_Metric]


class _LogRecord(msgspec.Struct):
    at: str
    message: str


def read_events(folder: Path) -> tuple[PastEvent, ...] | None:
    """The events of the folder, oldest first, each once; None if the folder has no file of events.

    The ends of containers that the supervisor has logged are events of the name ``container-ended``.
    """
    files = _newest_last(folder, "events-*.jsonl")
    if not files:
        return None
    found: dict[str, PastEvent] = {}
    decoder = msgspec.json.Decoder(_Event)
    for number, line in enumerate(_lines(files)):
        try:
            event = decoder.decode(line)
        except msgspec.MsgspecError:
            continue
        past = PastEvent(event.at_s, event.name, event.subject, event.source.container_id, event.attributes)
        found[event.id or f"line {number}"] = past
    return tuple(sorted((*found.values(), *_ends_of_containers(folder)), key=lambda each: each.at_s))


def read_gauges(folder: Path, processes: Collection[tuple[int, str]], since_s: float) -> tuple[PastGauges, ...]:
    """The gauges of these processes (container and name) since then, oldest first."""
    found: list[PastGauges] = []
    decoder = msgspec.json.Decoder(_Record)
    for container_id in sorted({container for container, _ in processes}):
        names = {name for container, name in processes if container == container_id}
        marks = [msgspec.json.encode(each) for each in names]
        for line in _lines(_newest_last(folder, f"metrics-{container_id}.jsonl")):
            if not any(mark in line for mark in marks):
                continue
            try:
                record = decoder.decode(line)
            except msgspec.MsgspecError:
                continue
            if record.at_s >= since_s and record.source.process in names:
                found.append(_gauges(record))
    return tuple(sorted(found, key=lambda each: each.at_s))


def _gauges(record: _Record) -> PastGauges:
    values = {
        each.name: float(each.value)
        for each in record.metrics
        if each.kind == MetricKind.GAUGE.value and isinstance(each.value, int | float)
    }
    source = record.source
    return PastGauges(record.at_s, source.container_id, source.process, source.incarnation, values)


def _ends_of_containers(folder: Path) -> Iterator[PastEvent]:
    """``container 1 ended: killed by SIGKILL`` in the supervisor's log, with its time."""
    decoder = msgspec.json.Decoder(_LogRecord)
    for line in _lines(_newest_last(folder, "supervisor.log")):
        if _ENDED.encode() not in line:
            continue
        try:
            record = decoder.decode(line)
            at_s = datetime.fromisoformat(record.at).timestamp()
        except (msgspec.MsgspecError, ValueError):
            continue
        who, _, reason = record.message.partition(_ENDED)
        number = who.removeprefix("container ")
        if number.isdigit() and reason != _DONE:
            yield PastEvent(at_s, _CONTAINER_ENDED, f"container-{number}", int(number), {"reason": reason})


def _newest_last(folder: Path, pattern: str) -> list[Path]:
    """The files of that name, and before each its older ones (``.2``, ``.1``)."""
    found: list[Path] = []
    for path in sorted(folder.glob(pattern)):
        older = [each for each in folder.glob(f"{path.name}.*") if each.suffix[1:].isdigit()]
        found += sorted(older, key=lambda each: -int(each.suffix[1:]))
        found.append(path)
    return found


def _lines(files: list[Path]) -> Iterator[bytes]:
    for path in files:
        try:
            with path.open("rb") as file:
                yield from file
        except OSError:
            continue  # rotated away meanwhile
