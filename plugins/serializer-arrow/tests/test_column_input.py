"""Batches that a column bolt gets for rows that were emitted one by one."""

from __future__ import annotations

import pyarrow as pa

from heron.api.definition import StreamDefinition
from heron.instance.batch_reader import ReceivedBatch
from heron.instance.column_input import ColumnInput, ReceivedColumns
from heron.instance.tuple_pool import TupleSource
from heron_serializer_arrow import ArrowSerializer

SERIALIZER = ArrowSerializer.open({})
SOURCE = TupleSource("words", StreamDefinition("default", ("word", "n")), 3)


def received(*rows: tuple[object, object], source: TupleSource = SOURCE) -> ReceivedBatch:
    """Rows as they arrive."""
    return ReceivedBatch(source, len(rows), list(zip(*rows, strict=True)))


def types_of(found: ReceivedColumns) -> list[str]:
    """The types of the columns."""
    return list(map(str, found.batch.schema.types))


def test_the_first_batch_of_a_stream_decides_the_types() -> None:
    """For all its tasks, and for this stream alone; a column of None waits for a value."""
    columns = ColumnInput(SERIALIZER)
    assert types_of(columns.columns_of(received(("a", None)))) == ["string", "null"]
    assert types_of(columns.columns_of(received(("a", 1), ("b", None)))) == ["string", "int64"]
    assert types_of(columns.columns_of(received((None, None)))) == ["string", "int64"]
    other = TupleSource("other", StreamDefinition("default", ("word", "n")), 4)
    assert types_of(columns.columns_of(received((1, b"x"), source=other))) == ["int64", "binary"]


def test_a_record_that_does_not_fit_is_lost_alone_and_named() -> None:
    """Also in the first batch, where the first record decides."""
    columns = ColumnInput(SERIALIZER)
    found = columns.columns_of(received(("a", 1), ("b", "two"), (3, 3), ("c", None)))
    assert found.batch.to_pylist() == [{"word": "a", "n": 1}, {"word": "c", "n": None}]
    assert [(each.place, each.values) for each in found.lost] == [(1, ("b", "two")), (2, (3, 3))]
    assert "field 'n': 'two' of type str does not fit int64, the type of the first batch" in str(found.lost[0].reason)
    nothing = columns.columns_of(received((1, 1), (2, 2)))
    assert nothing.batch.num_rows == 0
    assert types_of(nothing) == ["string", "int64"]
    assert [each.place for each in nothing.lost] == [0, 1]


def test_an_object_without_a_type_is_lost_alone() -> None:
    """Rows of the same batch arrive."""
    found = ColumnInput(SERIALIZER).columns_of(received(("a", object()), ("b", 2)))
    assert found.batch.to_pylist() == [{"word": "b", "n": 2}]
    assert [each.place for each in found.lost] == [0]


def test_columns_arrive_as_they_were_sent() -> None:
    """Without a copy, whatever the types of other batches were."""
    columns = ColumnInput(SERIALIZER)
    columns.columns_of(received(("a", 1)))
    batch = pa.record_batch({"word": [1.5], "n": ["x"]})
    assert columns.columns_of(ReceivedBatch(SOURCE, 1, None, batch, SERIALIZER)).batch is batch
