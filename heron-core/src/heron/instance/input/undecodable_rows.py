"""Rows of a received batch that no component gets, because a value of them does not decode or does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heron.author_text import named_error
from heron.driver_kit.code_origin import CodeOrigin, code_origin
from heron.errors import SerializationError
from heron.instance.input.tuple_pool import TupleSource
from heron.instance.user.user_errors import UserErrors, named_values
from heron.spi.column_serializer import ColumnSerializer
from heron.spi.serializer import Serializer, UndecodableValue

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["UndecodableRow", "report_undecodable", "undecodable_rows", "values_of_each"]

_REMEDY_OF_COLUMNS = "cast the column to a type whose values Python has, before it is emitted"


@dataclass(frozen=True, slots=True)
class UndecodableRow:
    """A row that is not in the batch: its place among the rows that were received, its values, and the reason."""

    place: int
    values: object
    doing: str
    reason: SerializationError


def undecodable_rows(
    source: TupleSource, columns: Sequence[Sequence[object]], serializer: Serializer
) -> tuple[UndecodableRow, ...]:
    """The rows that have an `UndecodableValue`; the reason names the first of each."""
    component, stream = source.key
    undecodable = []
    for place, values in enumerate(zip(*columns, strict=True)):
        for name, value in zip(source.fields, values, strict=False):
            if isinstance(value, UndecodableValue):
                doing = f"decoding field {name!r} ({value.kind}) of stream {stream!r} of {component!r}"
                undecodable.append(
                    UndecodableRow(place, named_values(source.fields, values), doing, _reason(value, serializer))
                )
                break
    return tuple(undecodable)


def _reason(value: UndecodableValue, serializer: Serializer) -> SerializationError:
    error = value.error
    reason = SerializationError(
        f"a value of type {value.kind} cannot be decoded ({type(serializer).__name__}): "
        f"{named_error(error)}; {value.remedy}"
    )
    reason.__cause__ = error
    trace = error.__traceback__  # without an author's frame, the place is the receiver's class
    while trace is not None and code_origin(trace.tb_frame.f_code.co_filename) is CodeOrigin.ENGINE:
        trace = trace.tb_next
    return reason.with_traceback(trace)


def report_undecodable(undecodable: Sequence[UndecodableRow], errors: UserErrors) -> None:
    """Reports rows that the component does not get.

    It notes them only: `topology.on.error: stop` is for exceptions of the component (`ComponentRunner.user_failed`).
    """
    for each in undecodable:
        errors.note(each.doing, each.reason, "the tuple is failed and the task continues", each.values)


def values_of_each(batch: RecordBatch, serializer: ColumnSerializer) -> list[Sequence[object]]:
    """The values of a batch for which `to_columns` failed, with an `UndecodableValue` for each that Python lacks."""
    columns: list[Sequence[object]] = []
    for number, field in enumerate(batch.schema):
        column = batch.select([number])
        try:
            (values,) = serializer.to_columns(column)
        except SerializationError:
            values = [_value_or_not(column.slice(row, 1), str(field.type), serializer) for row in range(batch.num_rows)]
        columns.append(values)
    return columns


def _value_or_not(cell: RecordBatch, kind: str, serializer: ColumnSerializer) -> object:
    try:
        ((value,),) = serializer.to_columns(cell)
    except SerializationError as error:
        cause = error.__cause__
        return UndecodableValue(kind, cause if isinstance(cause, Exception) else error, _REMEDY_OF_COLUMNS)
    return value
