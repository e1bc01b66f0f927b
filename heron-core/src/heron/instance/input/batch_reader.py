"""From received segments to batches of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count, repeat
from typing import TYPE_CHECKING, TypeVar

from heron.api.api_constants import TOPOLOGY_SERIALIZER
from heron.errors import RemoteProtocolError, SerializationError, Violation
from heron.instance.codec.batch_codec import decode_columns, decode_values
from heron.instance.codec.plain import PLAIN, check_shape
from heron.instance.codec.serializers import PICKLE, Serializers
from heron.instance.input.tuple_pool import TupleSource, TupleSources
from heron.instance.input.undecodable_rows import UndecodableRow, undecodable_rows, values_of_each
from heron.ipc.frames.frame import SegmentHead
from heron.planner.physical_plan import PlanIndex
from heron.spi.column_serializer import ColumnSerializer
from heron.spi.serializer import Encoding

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["BatchReader", "ReceivedBatch"]


_Item = TypeVar("_Item")


class ReceivedBatch:
    """A received segment: its source, the number of its rows, and their values in one of three forms.

    `undecodable` are the rows with a value that does not decode, once `columns` was called.
    """

    __slots__ = ("_columns", "_plain", "_record_batch", "_serializer", "rows", "source", "undecodable")

    def __init__(
        self,
        source: TupleSource,
        rows: int,
        columns: list[Sequence[object]] | None,
        record_batch: RecordBatch | None = None,
        serializer: ColumnSerializer | None = None,
        undecodable: tuple[UndecodableRow, ...] = (),
        plain: memoryview | None = None,
    ) -> None:
        """`columns` has a sequence of values for each field; else there is `plain`, or a batch with its serializer."""
        self.source = source
        self.rows = rows
        self._columns = columns
        self._record_batch = record_batch
        self._serializer = serializer
        self.undecodable = undecodable
        self._plain = plain

    def plain(self) -> bytes | memoryview | None:
        """The rows in the encoding ``plain``: as they came, or encoded now; None if it does not have their values."""
        if self._plain is not None:
            return self._plain
        columns = self.columns()
        if self.undecodable or not columns:
            return None
        try:
            return PLAIN.encode(columns)
        except SerializationError:
            return None

    @property
    def record_batch(self) -> RecordBatch | None:
        """The batch, if it was sent as columns."""
        return self._record_batch

    def columns(self) -> list[Sequence[object]]:
        """One sequence of Python values for each field; an undecodable row has an `UndecodableValue`."""
        if self._columns is None and self._plain is not None:
            self._columns = decode_columns(self._plain, self.rows, PLAIN)
        elif self._columns is None and self._serializer is not None and self._record_batch is not None:
            try:
                self._columns = self._serializer.to_columns(self._record_batch)
            except SerializationError:
                self._columns = values_of_each(self._record_batch, self._serializer)
                self.undecodable = undecodable_rows(self.source, self._columns, self._serializer)
        return self._columns or []

    def first_rows(self, number: int) -> list[tuple[object, ...]]:
        """The values of the first rows; of columns, only these become Python values."""
        if self._columns is None and self._record_batch is not None:
            first = self._record_batch.slice(0, number)
            columns = ReceivedBatch(self.source, first.num_rows, None, first, self._serializer).columns()
        else:
            columns = self.columns()
        return [tuple(column[row] for column in columns) for row in range(min(number, self.rows))]

    def decoded(self, items: Iterable[_Item], first: int = 0) -> Iterator[_Item]:
        """The items of rows that the component gets; the first item belongs to the row with number `first`."""
        undecodable = {each.place for each in self.undecodable}
        return compress(items, (place not in undecodable for place in count(first)))

    def undecodable_among(self, first: int, rows: int) -> int:
        """How many of these rows are undecodable."""
        return sum(first <= each.place < first + rows for each in self.undecodable)

    def values(self) -> Iterator[tuple[object, ...]]:
        """The values of each row; an empty tuple for each row of a stream without fields."""
        columns = self.columns()
        return zip(*columns, strict=True) if columns else repeat((), self.rows)


class BatchReader:
    """Decodes segments of tuples under the present plan."""

    def __init__(self, index: PlanIndex, serializers: Serializers) -> None:
        self._sources = TupleSources(index)
        self._serializers = serializers

    def set_plan(self, index: PlanIndex) -> None:
        """Replaces the plan."""
        self._sources.set_plan(index)

    def read(self, data: bytes, head: SegmentHead, *, keeps_plain: bool = False) -> ReceivedBatch:
        """Decodes the segment of `data` that `head` describes; with `keeps_plain`, not one of ``plain`` columns.

        Raises:
            RemoteProtocolError: when the plan does not have its source, the topology has no serializer for it, or it is
                a pickle of a component with another serializer.
            SerializationError: when its payload does not decode, and its values cannot be told apart either.
        """
        serializer = self._serializers.for_input(head.encoding, head.source_task)
        source = self._sources.of(head.source_task, head.stream)
        if serializer is PICKLE and not source.pickles:
            msg = f"a pickle from task {head.source_task}: {TOPOLOGY_SERIALIZER} of {source.key[0]!r} is another one"
            raise RemoteProtocolError(msg, Violation.KIND)
        payload = memoryview(data)[head.payload_start : head.end]
        if keeps_plain and head.encoding == Encoding.PLAIN:
            check_shape(payload, head.rows, len(source.fields))
            return ReceivedBatch(source, head.rows, None, plain=payload)
        if isinstance(serializer, ColumnSerializer):
            batch = serializer.decode_batch(payload, head.rows)
            _check_width(source, batch.num_columns)
            return ReceivedBatch(source, head.rows, None, batch, serializer)
        try:
            columns = decode_columns(payload, head.rows, serializer)
            _check_width(source, len(columns))
            return ReceivedBatch(source, head.rows, columns)
        except SerializationError as error:
            refused = error
        try:
            columns = decode_values(payload, head.rows, serializer)
            _check_width(source, len(columns))
        except SerializationError:
            raise refused from refused.__cause__
        return ReceivedBatch(source, head.rows, columns, undecodable=undecodable_rows(source, columns, serializer))

    def described(self, head: SegmentHead) -> str:
        """A segment of tuples that cannot be read, for people."""
        try:
            component, stream = self._sources.of(head.source_task, head.stream).key
        except RemoteProtocolError:
            return f"{head.rows} tuples of task {head.source_task}"
        return f"{head.rows} tuples of stream {stream!r} of {component!r}, task {head.source_task}"


def _check_width(source: TupleSource, columns: int) -> None:
    if columns != len(source.fields):
        component, stream = source.key
        msg = f"a batch of {columns} columns; stream {stream!r} of {component!r} has {len(source.fields)} fields"
        raise SerializationError(msg)
