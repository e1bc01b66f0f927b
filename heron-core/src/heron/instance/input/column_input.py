"""Batches of columns for a bolt that receives them: as they were sent, or built from rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heron.errors import SerializationError
from heron.instance.input.batch_reader import ReceivedBatch
from heron.instance.input.tuple_pool import TupleSource
from heron.instance.input.undecodable_rows import UndecodableRow
from heron.instance.user.user_errors import named_values
from heron.spi.column_serializer import ColumnSerializer

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

__all__ = ["ColumnInput", "ReceivedColumns"]


@dataclass(frozen=True, slots=True)
class ReceivedColumns:
    """A batch for the component, and the rows that it lacks."""

    source: TupleSource
    batch: RecordBatch
    undecodable: Sequence[UndecodableRow] = ()

    @property
    def received_from(self) -> tuple[str, str, int]:
        """`heron.api.Bolt.received_from`."""
        return (*self.source.key, self.source.task_id)

    def __str__(self) -> str:
        return f"a batch of {self.batch.num_rows} rows of ({', '.join(self.source.fields)})"


class ColumnInput:
    """Builds batches from rows. The types of a stream are those of its first batch."""

    def __init__(self, serializer: ColumnSerializer) -> None:
        self._serializer = serializer
        self._schemas: dict[tuple[str, str], Schema] = {}

    def columns_of(self, received: ReceivedBatch) -> ReceivedColumns:
        """The batch of a received segment."""
        if received.record_batch is not None:
            return ReceivedColumns(received.source, received.record_batch)
        source, columns = received.source, received.columns()
        places: Sequence[int] = range(received.rows)
        if received.undecodable:
            columns = [list(received.decoded(column)) for column in columns]
            places = list(received.decoded(places))
        schema = self._schemas.get(source.key)
        try:
            batch = self._serializer.from_columns(columns, source.fields, schema)
            found = ReceivedColumns(source, batch, received.undecodable)
        except SerializationError:
            found = self._fitting(received, columns, places, schema)
        if schema is None or schema != found.batch.schema:
            self._schemas[source.key] = found.batch.schema
        return found

    def _fitting(
        self,
        received: ReceivedBatch,
        columns: Sequence[Sequence[object]],
        places: Sequence[int],
        schema: Schema | None,
    ) -> ReceivedColumns:
        """The rows that fit the types, looked at one by one; `places` are those that they have in the segment."""
        source = received.source
        component, stream = source.key
        doing = f"building columns from stream {stream!r} of {component!r}"
        fitting, undecodable = list[tuple[object, ...]](), list(received.undecodable)
        for place, values in zip(places, zip(*columns, strict=True), strict=True):
            try:
                row = self._serializer.from_columns([(value,) for value in values], source.fields, schema)
            except SerializationError as error:
                undecodable.append(UndecodableRow(place, named_values(source.fields, values), doing, error))
            else:
                schema = row.schema
                fitting.append(values)
        kept = list(zip(*fitting, strict=True)) if fitting else [()] * len(columns)
        return ReceivedColumns(source, self._serializer.from_columns(kept, source.fields, schema), undecodable)
