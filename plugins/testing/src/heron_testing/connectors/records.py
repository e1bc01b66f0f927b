"""The records of the connector suites. A record is a text ``PARTITION NUMBER``, and may have more words behind it."""

from __future__ import annotations

import os
import select
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from heron_streamlet import Sink, StageContext, TextFolder

__all__ = ["HELD", "POISON", "ExactLines", "Journal", "Record", "arrived", "in_order", "record_of"]

Record = tuple[int, int]
"""Partition and number."""

HELD = "held"
"""While there is such a file among the results, the sinks of this module take no record."""

POISON = "poison"
"""The last word of a record that cannot be processed."""

_LOOK_S = 0.02
_COPIES = "copies"


def record_of(text: str) -> Record:
    """The record of a text."""
    partition, number, *_ = text.split(" ", 2)
    return int(partition), int(number)


class Journal(Sink[str]):
    """Appends a line for each record, before the record is acked."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`."""
        self._file = os.open(self._out / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def put(self, element: str) -> None:
        """`Sink.put`."""
        while (self._out / HELD).exists():
            select.select([], [], [], _LOOK_S)
        os.write(self._file, b"%d %d\n" % record_of(element))

    def close(self) -> None:
        """`Sink.close`."""
        os.close(self._file)


class ExactLines(TextFolder):
    """A line for each record, once, when its checkpoint is complete."""

    def __init__(self, out: Path) -> None:
        super().__init__(out / _COPIES)

    def put(self, element: object) -> None:
        """`Sink.put`."""
        super().put("{} {}".format(*record_of(str(element))))


def arrived(out: Path) -> list[Record]:
    """The records that a run has written, those of one task in their order."""
    committed = sorted((out / _COPIES).glob("part-*.txt"))  # of one task after the other, by checkpoint
    paths = [path for path in (out / "journal", *committed) if path.exists()]
    return [record for path in paths for record in _records_in(path, path.stat().st_size)]


@lru_cache(maxsize=1000)
def _records_in(path: Path, size: int) -> list[Record]:
    """The records of a file that has this size, without a line that is being written."""
    return [record_of(line) for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line[-1] == "\n"]


def in_order(records: Iterable[Record]) -> Mapping[int, list[int]]:
    """The numbers of each partition, as they arrived."""
    found: dict[int, list[int]] = defaultdict(list)
    for partition, number in records:
        found[partition].append(number)
    return found
