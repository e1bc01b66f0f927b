"""A source that gives no more records of a partition than a file says, so that a test decides what arrives when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from heron_streamlet import Reader, Source, StageContext
from heron_streamlet.connectors.sources import MeasuredReader, PlacedReader

__all__ = ["GATE", "GatedSource"]

GATE = "gate"
"""While there is such a file among the results, records with its number or a greater one are not read."""


class GatedSource(Source[Any]):
    """Wraps a source under test. A reader may pass the gate by one element.

    Args:
        source: the source.
        number_of: the number of the last record of an element.
        out: the folder of the results.
        singly: whether an element may have several records, so that one is read at a time.
    """

    def __init__(
        self, source: Source[Any], number_of: Callable[[Any], int], out: Path, *, singly: bool = False
    ) -> None:
        self._source, self._number_of, self._gate, self._singly = source, number_of, out / GATE, singly
        self.bounded, self.repeatable, self.settles = source.bounded, source.repeatable, source.settles
        self.word = source.word

    def partitions(self, tasks: int) -> Sequence[str]:
        """`Source.partitions`."""
        return self._source.partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Any]:
        """`Source.open`."""
        reader = self._source.open(partition, position, context)
        kind = _GatedPlacedReader if isinstance(reader, PlacedReader) else _GatedReader
        return kind(reader, self._number_of, self._gate, singly=self._singly)


class _GatedReader:
    def __init__(self, reader: Any, number_of: Callable[[Any], int], gate: Path, *, singly: bool) -> None:  # noqa: ANN401
        """`reader` may also be a `SettledReader`."""
        self._reader, self._number_of, self._gate, self._singly = reader, number_of, gate, singly
        self._next: int | None = None  # of the next record, if it is known

    @property
    def position(self) -> object:
        """`Reader.position`."""
        return self._reader.position

    def read(self, limit: int) -> Sequence[Any] | None:
        """`Reader.read`."""
        try:
            gate = int(self._gate.read_text(encoding="ascii"))
        except FileNotFoundError:
            pass
        else:
            left = 1 if self._next is None else gate - self._next
            limit = min(limit, 1 if self._singly else left, left)
        elements: Sequence[Any] | None = self._reader.read(limit) if limit > 0 else ()
        if elements:
            self._next = self._number_of(elements[-1]) + 1
        return elements

    def backlog(self) -> float | None:
        """`MeasuredReader.backlog`, if the reader is one."""
        return self._reader.backlog() if isinstance(self._reader, MeasuredReader) else None

    def settled(self, count: int) -> None:
        """`SettledReader.settled`."""
        self._reader.settled(count)

    def close(self) -> None:
        """`Reader.close`."""
        self._reader.close()


class _GatedPlacedReader(_GatedReader):
    def position_of(self, index: int) -> object:
        """`PlacedReader.position_of`."""
        return self._reader.position_of(index)
