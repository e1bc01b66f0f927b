"""One declared output stream of a task: the rows emitted since the last flush, and who gets them.

Emits go into a log in the order of emission; grouping, encoding and framing happen once per flush. What all consumers
get whole (one task, `lowest`, `all`) is one segment with many destinations, encoded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from heron.api.definition import StreamDefinition
from heron.errors import EmitError
from heron.instance.batch_codec import PICKLE, encode_rows
from heron.instance.splitters import Splitter
from heron.ipc.frame import SegmentKind, segment
from heron.spi.serializer import Serializer

__all__ = ["Chooser", "KeyedEdge", "OutStream", "StreamOrigin", "StreamRoutes"]

_FIRST_LIMIT = 16  # rows of unknown size: their number grows only after the first have been measured
_LIMIT_FACTOR = 8  # with several destinations a flush takes more rows, so that each still gets a full batch

Chooser = Callable[[tuple[object, ...]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class KeyedEdge:
    """A subscription whose rows are placed at the emit: by key `memo` of the fields at `positions`.

    Without `picks` there is one task only, and the key is looked up for its check alone.
    """

    positions: tuple[int, ...]
    memo: object
    picks: list[object] | None


@dataclass(frozen=True, slots=True)
class StreamRoutes:
    """Who gets the rows of a stream under one plan."""

    whole: tuple[int, ...] = ()
    splitters: tuple[Splitter, ...] = ()
    keyed: tuple[KeyedEdge, ...] = ()
    choosers: tuple[tuple[Chooser, list[Sequence[int]]], ...] = ()
    direct_picks: tuple[list[Sequence[int]], ...] = ()
    direct_tasks: frozenset[int] = frozenset()


@dataclass(slots=True)
class StreamOrigin:
    """What every segment of a task says of its origin, and the limits of its batches."""

    task_id: int
    incarnation: int
    plan_version: int
    batch_rows: int
    batch_bytes: int
    tuple_max_bytes: int
    rejected: Callable[[str, object, Exception], None] = field(default=lambda _stream, _row, _error: None)
    serializer: Serializer = PICKLE

    def encoded(
        self, rows: list[object], fields: Sequence[str], rejected: Callable[[object, Exception], None]
    ) -> Iterator[tuple[list[object], bytes]]:
        """The rows as ``(rows, payload)``, within the limits; see `heron.instance.batch_codec.encode_rows`."""
        return encode_rows(
            rows,
            fields,
            self.serializer,
            batch_bytes=self.batch_bytes,
            tuple_max_bytes=self.tuple_max_bytes,
            rejected=rejected,
        )


class OutStream:
    """The log of one stream."""

    __slots__ = (
        "arity",
        "definition",
        "direct",
        "emitted",
        "full_limit",
        "limit",
        "number",
        "origin",
        "routes",
        "rows",
        "tasks_of_last",
    )

    def __init__(self, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin) -> None:
        self.number = number
        self.definition = definition
        self.routes = routes
        self.origin = origin
        self.arity = len(definition.fields)
        self.rows: list[object] = []
        self.full_limit = min(_FIRST_LIMIT, origin.batch_rows)
        # How many rows make the next flush; a list, for the generated emit reads it, and the gateway sets it to zero
        # when the linger is over: then the next emit flushes, and nobody asks for the time at each. So does the first.
        self.limit = [0]
        self.direct: list[Sequence[int]] = [()]  # the task of the present emit; a list for the same reason
        self.emitted = 0
        self.tasks_of_last: tuple[int, ...] = ()

    def flush(self) -> list[bytes]:
        """Takes the rows and returns their segments."""
        return self.segments_of(self.take_rows())

    def segments_of(self, rows: list[object]) -> list[bytes]:
        """The segments of the first rows of the log, which were taken from it."""
        if not rows:
            return []
        segments: list[bytes] = []
        tasks: list[int] = []
        routes = self.routes
        if routes.whole:
            tasks.extend(routes.whole)
            self._encode(routes.whole, rows, segments)
        for splitter in routes.splitters:
            for task, part in splitter.split(rows):
                tasks.append(task)
                self._encode((task,), part, segments)
        self.tasks_of_last = tuple(tasks)
        return segments

    def take_rows(self) -> list[object]:
        """Takes the rows of the log."""
        rows = self.rows[:]  # others may be appended behind them meanwhile (heron.instance.baton)
        del self.rows[: len(rows)]
        self.emitted += len(rows)
        self.limit[0] = self.full_limit
        return rows

    def wrong_values(self, values: object) -> EmitError:
        """The error for values that do not fit the declared fields."""
        if isinstance(values, list | tuple):
            what = f"{len(values)} values"
        else:
            what = f"a {type(values).__name__}, not a list of values"
        fields = ", ".join(self.definition.fields)
        return EmitError(
            f"stream {self.definition.name!r}: emit of {what}, the stream declares {self.arity} "
            f"fields ({fields}); got {values!r:.80}"
        )

    def _encode(self, tasks: tuple[int, ...], rows: list[object], segments: list[bytes]) -> None:
        for part, payload in self.origin.encoded(rows, self.definition.fields, self._reject):
            self.adapt(len(part), len(payload))
            segments.append(self.tuples_segment(tasks, payload, len(part)))

    def tuples_segment(self, tasks: Sequence[int], payload: bytes, rows: int, options: bytes = b"") -> bytes:
        """A segment of rows of this stream."""
        origin = self.origin
        return segment(
            tasks,
            payload,
            kind=SegmentKind.TUPLES,
            encoding=origin.serializer.encoding,
            stream=self.number,
            plan_version=origin.plan_version,
            source_task=origin.task_id,
            incarnation=origin.incarnation,
            rows=rows,
            options=options,
        )

    def adapt(self, rows: int, payload_bytes: int) -> None:
        """Sets how many rows make a batch of the wanted size, from what the last ones took."""
        destinations = max(1, min(_LIMIT_FACTOR, len(self.tasks_of_last)))
        fitting = self.origin.batch_bytes * rows // max(1, payload_bytes)
        wanted = max(1, min(self.origin.batch_rows, fitting)) * destinations
        self.limit[0] = self.full_limit = min(wanted, 4 * max(self.full_limit, rows))

    def _reject(self, row: object, error: Exception) -> None:
        self.origin.rejected(self.definition.name, row, error)
