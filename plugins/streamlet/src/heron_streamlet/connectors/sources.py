"""Sources: where a pipeline begins. A source consists of partitions, each of which has an order.

A source that can be read again from a position gives exactly-once results: positions are part of each checkpoint.
"""

from __future__ import annotations

import glob
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from heron.api.names import is_a
from heron.author_text import short_text
from heron.clock import monotonic_s
from heron.errors import TopologyError, UsageError
from heron_streamlet.connectors.transformer import StageContext

__all__ = [
    "CallableSource",
    "GaugedReader",
    "Generator",
    "GeneratorSource",
    "Items",
    "MeasuredReader",
    "PlacedReader",
    "Reader",
    "SettledReader",
    "Source",
    "TextFiles",
    "as_source",
    "matching_files",
]

_READ_S = 0.005

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Reader(Protocol[T_co]):
    """Reads one partition in its order."""

    @property
    def position(self) -> object:
        """Where the next element is; picklable. None for the begin, or if the source cannot be read again."""
        ...

    def read(self, limit: int) -> Sequence[T_co] | None:
        """Return the next elements, at most `limit`; empty if there are none now, None at the end of the partition."""
        ...

    def close(self) -> None:
        """Release what the reader holds."""
        ...


@runtime_checkable
class PlacedReader(Reader[T_co], Protocol[T_co]):
    """A reader of which each element has a position, so a restore need not count elements that may be gone by then."""

    def position_of(self, index: int) -> object:
        """Where an element of the last `read` is; a reader that is opened there gives it first."""
        ...


@runtime_checkable
class GaugedReader(Reader[T_co], Protocol[T_co]):
    """A reader that has numbers about its partition."""

    def gauges(self) -> Mapping[str, float]:
        """The numbers of now by their names: the metric ``source`` has their sums over the partitions of a task.

        Called once per export period of the metrics, from the thread of the other methods: it delays the elements.
        """
        ...


@runtime_checkable
class MeasuredReader(Reader[T_co], Protocol[T_co]):
    """A reader that knows how much its partition has behind the position: `heron metrics` shows it as `backlog`."""

    def backlog(self) -> float | None:
        """How many elements wait behind `position`, at least 0; None if that is not known now.

        Called once per export period of the metrics, from the thread of the other methods: it delays the elements.
        """
        ...


class SettledReader(Reader[T_co], Protocol[T_co]):
    """A reader that hears when elements are safe, so that it can tell their sender.

    Its source has ``settles = True``.
    """

    def settled(self, count: int) -> None:
        """The first `count` elements that this reader has returned are safe, as the delivery of the topology has it.

        At most once they were processed; at least once what they became is acked; effectively once a complete
        checkpoint contains them. Called from the thread of the other methods. An element that has failed counts.
        """
        ...


class Source(ABC, Generic[T]):
    """Reads elements from somewhere. The object is copied to the tasks, so it must be picklable."""

    bounded: bool = True
    """Whether every partition ends."""
    repeatable: bool = True
    """Whether a partition can be opened again at a position; engines that work in batches need it."""
    settles: bool = False
    """Whether its readers are `SettledReader`s."""
    word: str = "source"

    def partitions(self, tasks: int) -> Sequence[str]:
        """Return the names of the partitions, which must not change between runs. Called when the pipeline starts.

        `tasks` is the number of tasks that read the source; a source without partitions has one for each task. The
        object is copied to the tasks after this call, with what the call has kept in it.
        """
        return [str(number) for number in range(tasks)]

    @abstractmethod
    def open(self, partition: str, position: object, context: StageContext) -> Reader[T]:
        """Open a partition at a position that an earlier reader had; None is the begin."""


class Items(Source[T]):
    """The elements of an iterable, in one partition.

    Args:
        items: a list or other iterable, or a function that returns one, which is called when reading begins.
        bounded: False if the iterable does not end; batch engines refuse it.

    Raises:
        UsageError: when `items` is an iterator, which can be read only once.
    """

    def __init__(self, items: Iterable[T] | Callable[[], Iterable[T]], *, bounded: bool = True) -> None:
        self.bounded = bounded
        if not callable(items) and isinstance(items, Iterator):
            msg = (
                f"Items({short_text(items, 60)}): an iterator can be read only once; give a list, or a function "
                "that returns it"
            )
            raise UsageError(msg)
        self._items = items

    def partitions(self, tasks: int) -> Sequence[str]:  # always one
        """`Source.partitions`."""
        return ["0"]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[T]:
        """`Source.open`."""
        items = self._items() if callable(self._items) else self._items
        return _IterableReader(items, _number(position))


class TextFiles(Source[str]):
    """The lines of text files, without their line ends; each file is a partition.

    The encoding is UTF-8; other bytes become U+FFFD.

    Args:
        pattern: a glob pattern such as ``logs/*.txt``. The files that match when the pipeline starts are read.
    """

    def __init__(self, pattern: str | Path) -> None:
        self.pattern = str(pattern)

    def partitions(self, tasks: int) -> Sequence[str]:  # one for each file
        """`Source.partitions`.

        Raises:
            UsageError: when no file matches.
        """
        return matching_files(self.pattern, "TextFiles")

    def open(self, partition: str, position: object, context: StageContext) -> Reader[str]:
        """`Source.open`."""
        return _LineReader(Path(partition), _number(position))


class CallableSource(Source[T]):
    """Calls a function for each element; None is no element now. It never ends, and cannot be read again."""

    bounded = False
    repeatable = False
    word = "supplier"

    def __init__(self, function: Callable[[], T | None]) -> None:
        self._function = function

    def open(self, partition: str, position: object, context: StageContext) -> Reader[T]:
        """`Source.open`."""
        return _CallReader(self._function)


class Generator(ABC, Generic[T_co]):
    """A source as in heronpy: `get` is called for each element. Each task has a copy of the object."""

    def setup(self, context: StageContext) -> None:  # optional
        """Open what the task needs. Called once, before `get`."""

    @abstractmethod
    def get(self) -> T_co | None:
        """Return the next element, or None if there is none now. Raise `StopIteration` at the end."""


class GeneratorSource(Source[T]):
    """A `Generator` as a source."""

    bounded = False
    repeatable = False
    word = "generator"

    def __init__(self, generator: Generator[T]) -> None:
        self._generator = generator

    def open(self, partition: str, position: object, context: StageContext) -> Reader[T]:
        """`Source.open`."""
        self._generator.setup(context)
        return _CallReader(self._generator.get)


def matching_files(pattern: str, source: str) -> list[str]:
    """The absolute paths of the files that match a glob pattern, sorted.

    Raises:
        UsageError: when no file matches; `source` is the name of the class that reads them.
    """
    paths = sorted(str(Path(path).resolve()) for path in glob.glob(pattern, recursive=True))
    if not paths:
        msg = f"{source}({pattern!r}): no file matches; relative patterns begin at {Path.cwd()}"
        raise UsageError(msg)
    return paths


def as_source(given: Source[T] | Generator[T] | Callable[[], T | None]) -> Source[T]:
    """The source of what an author gives.

    Raises:
        TopologyError: when it is neither a `Source`, nor a `Generator`, nor a function.
    """
    found: Any = given
    if isinstance(found, Generator):
        return GeneratorSource(found)
    if is_a(found, Source):
        return cast("Source[T]", found)
    if not callable(found):
        msg = f"{short_text(found, 60)} is no source: give a Source, a Generator or a function; a list is Items(list)"
        raise TopologyError(msg)
    return CallableSource(found)


class _IterableReader(Generic[T]):
    def __init__(self, items: Iterable[T], start: int) -> None:
        self._iterator = islice(iter(items), start, None)
        self.position = start

    def read(self, limit: int) -> Sequence[T] | None:
        """`Reader.read`."""
        elements = list(islice(self._iterator, limit))
        self.position += len(elements)
        return elements or None

    def close(self) -> None:
        """`Reader.close`."""


class _LineReader:
    def __init__(self, path: Path, start: int) -> None:
        self._file = path.open("rb")
        self._file.seek(start)

    @property
    def position(self) -> int:
        """`Reader.position`."""
        return self._file.tell()

    def read(self, limit: int) -> Sequence[str] | None:
        """`Reader.read`."""
        return [
            line.rstrip(b"\r\n").decode(errors="replace") for line in islice(iter(self._file.readline, b""), limit)
        ] or None

    def close(self) -> None:
        """`Reader.close`."""
        self._file.close()


class _CallReader(Generic[T]):
    """Reads for a few milliseconds at most: the function may wait before each element."""

    position = None

    def __init__(self, function: Callable[[], T | None]) -> None:
        self._function = function

    def read(self, limit: int) -> Sequence[T] | None:
        """`Reader.read`."""
        elements: list[T] = []
        end_s = monotonic_s() + _READ_S
        try:
            while len(elements) < limit and (element := self._function()) is not None:
                elements.append(element)
                if monotonic_s() >= end_s:
                    break
        except StopIteration:
            return elements or None
        return elements

    def close(self) -> None:
        """`Reader.close`."""


def _number(position: object) -> int:
    return position if isinstance(position, int) else 0
