"""Batches of columns for a bolt that receives them: as they were sent, or built from rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heron.errors import SerializationError
from heron.instance.batch_reader import ReceivedBatch
from heron.instance.task_metrics import TaskMetrics
from heron.instance.tuple_pool import TupleSource
from heron.instance.user_errors import UserErrors
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

    source: TupleSource
    batch: RecordBatch
    lost: list[LostRow] = field(default_factory=list)

    @property
    def received_from(self) -> tuple[str, str, int]:
        """`heron.api.Bolt.received_from`."""
        return (*self.source.key, self.source.task_id)

    def __str__(self) -> str:
        return f"a batch of {self.batch.num_rows} rows of ({', '.join(self.source.fields)})"

    def report_lost(self, metrics: TaskMetrics, errors: UserErrors) -> None:
        """Reports the rows that the batch lacks."""
        component, stream = self.source.key
        metrics.failed += len(self.lost)
        for each in self.lost:
            doing = f"building columns from stream {stream!r} of {component!r}"
            errors.report(doing, each.reason, "the tuple is failed and the task continues", each.values)


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
        schema = self._schemas.get(source.key)
        try:
            found = ReceivedColumns(source, self._serializer.from_columns(columns, source.fields, schema))
        except SerializationError:
            found = self._fitting(source, columns, schema)
        if schema is None or schema != found.batch.schema:
            self._schemas[source.key] = found.batch.schema
        return found

    def _fitting(
        self, source: TupleSource, columns: Sequence[Sequence[object]], schema: Schema | None
    ) -> ReceivedColumns:
        """The rows that fit the types, looked at one by one."""
        fitting, lost = list[tuple[object, ...]](), list[LostRow]()
        for place, values in enumerate(zip(*columns, strict=True)):
            try:
                row = self._serializer.from_columns([(value,) for value in values], source.fields, schema)
            except SerializationError as error:
                lost.append(LostRow(place, values, error))
            else:
                schema = row.schema
                fitting.append(values)
        kept = list(zip(*fitting, strict=True)) if fitting else [()] * len(columns)
        return ReceivedColumns(source, self._serializer.from_columns(kept, source.fields, schema), lost)
