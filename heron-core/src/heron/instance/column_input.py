"""Batches of columns for a bolt that receives them: as they were sent, or built from rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heron.errors import SerializationError
from heron.instance.batch_reader import ReceivedBatch
from heron.spi.column_serializer import ColumnSerializer

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

__all__ = ["ColumnInput", "LostRow", "ReceivedColumns"]


@dataclass(frozen=True, slots=True)
class LostRow:
    """A row that is not in the batch: its place among the rows that were received, its values, and the reason."""

    place: int
    values: tuple[object, ...]
    reason: SerializationError


@dataclass(frozen=True, slots=True)
class ReceivedColumns:
    """A batch for the component, and the rows that it lacks."""

    batch: RecordBatch
    lost: list[LostRow] = field(default_factory=list)


class ColumnInput:
    """Builds batches from rows. The types of a stream are those of its first batch."""

    def __init__(self, serializer: ColumnSerializer) -> None:
        self._serializer = serializer
        self._schemas: dict[tuple[str, str], Schema] = {}

    def columns_of(self, received: ReceivedBatch) -> ReceivedColumns:
        """The batch of a received segment."""
        if received.record_batch is not None:
            return ReceivedColumns(received.record_batch)
        source, columns = received.source, received.columns()
        schema = self._schemas.get(source.key)
        try:
            found = ReceivedColumns(self._serializer.from_columns(columns, source.fields, schema))
        except SerializationError:
            found = self._fitting(columns, source.fields, schema)
        if schema is None or schema != found.batch.schema:
            self._schemas[source.key] = found.batch.schema
        return found

    def _fitting(
        self, columns: Sequence[Sequence[object]], fields: Sequence[str], schema: Schema | None
    ) -> ReceivedColumns:
        """The rows that fit the types, looked at one by one."""
        fitting, lost = list[tuple[object, ...]](), list[LostRow]()
        for place, values in enumerate(zip(*columns, strict=True)):
            try:
                row = self._serializer.from_columns([(value,) for value in values], fields, schema)
            except SerializationError as error:
                lost.append(LostRow(place, values, error))
            else:
                schema = row.schema
                fitting.append(values)
        kept = list(zip(*fitting, strict=True)) if fitting else [()] * len(columns)
        return ReceivedColumns(self._serializer.from_columns(kept, fields, schema), lost)
