"""Batches that a column bolt gets for rows that were emitted one by one."""

from __future__ import annotations

import traceback

import pyarrow as pa
import pytest

from heron.api.definition import StreamDefinition
from heron.instance.codec.serializers import PICKLE
from heron.instance.input.batch_reader import ReceivedBatch
from heron.instance.input.column_input import ColumnInput, ReceivedColumns
from heron.instance.input.tuple_pool import TupleSource
from heron.instance.input.undecodable_rows import report_undecodable, undecodable_rows
from heron.instance.replay.failure_cause import FailureCause
from heron.instance.user.user_errors import UserErrors
from heron.spi.serializer import UndecodableValue
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
    assert [(each.place, each.values) for each in found.undecodable] == [
        (1, {"word": "b", "n": "two"}),
        (2, {"word": 3, "n": 3}),
    ]
    assert "field 'n': a value of type str does not fit int64, the type of the first batch" in str(
        found.undecodable[0].reason
    )
    trace = "".join(traceback.format_exception(found.undecodable[0].reason))
    assert "'two'" not in trace, "Arrow's error has the value, and a trace is shown without the values"
    nothing = columns.columns_of(received((1, 1), (2, 2)))
    assert nothing.batch.num_rows == 0
    assert types_of(nothing) == ["string", "int64"]
    assert [each.place for each in nothing.undecodable] == [0, 1]


def test_the_value_that_does_not_fit_is_neither_printed_nor_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback with its causes is printed, is in `heron logs`, and travels to the spout as the cause."""
    secret = "-".join(("hunter2", "of", "ada"))
    errors = UserErrors("site", "check", 3)
    (row,) = ColumnInput(SERIALIZER).columns_of(received(("a", 1), ("b", secret))).undecodable
    report_undecodable((row,), errors)
    printed = capsys.readouterr().err
    assert "a value of type str does not fit int64" in printed
    assert secret not in printed + FailureCause.of("check", 3, row.doing, row.reason).trace


def test_an_object_without_a_type_is_lost_alone() -> None:
    """Rows of the same batch arrive."""
    found = ColumnInput(SERIALIZER).columns_of(received(("a", object()), ("b", 2)))
    assert found.batch.to_pylist() == [{"word": "b", "n": 2}]
    assert [each.place for each in found.undecodable] == [0]


def test_columns_arrive_as_they_were_sent() -> None:
    """Without a copy, whatever the types of other batches were."""
    columns = ColumnInput(SERIALIZER)
    columns.columns_of(received(("a", 1)))
    batch = pa.record_batch({"word": [1.5], "n": ["x"]})
    assert columns.columns_of(ReceivedBatch(SOURCE, 1, None, batch, SERIALIZER)).batch is batch


def test_a_value_that_python_lacks_is_lost_alone_where_rows_are_read() -> None:
    """A bolt of columns gets it; a bolt of rows gets its neighbours."""
    days = pa.array([1, 2_932_897, 3], pa.int32()).cast(pa.date32())
    batch = pa.record_batch({"word": ["a", "b", "c"], "n": days})
    received = ReceivedBatch(SOURCE, 3, None, batch, SERIALIZER)
    assert "undecodable date32[day]" in repr(received.first_rows(2))
    assert ColumnInput(SERIALIZER).columns_of(received).undecodable == ()
    assert [row[0] for row in received.decoded(received.values())] == ["a", "c"]
    ((place, reason),) = [(each.place, each.reason) for each in received.undecodable]
    assert place == 1
    assert "a value of type date32[day] cannot be decoded (ArrowSerializer): " in str(reason)


def test_rows_that_do_not_decode_are_lost_beside_those_that_do_not_fit() -> None:
    """Places count all rows of the segment."""
    bad = UndecodableValue("app.Bad", ValueError("no"), "")
    values: list[list[object]] = [["a", bad, "c", bad, "e"], [1, 2, "three", 4, 5]]
    undecodable = undecodable_rows(SOURCE, values, PICKLE)
    columns = ColumnInput(SERIALIZER)
    found = columns.columns_of(ReceivedBatch(SOURCE, 5, list(values), undecodable=undecodable))
    assert found.batch.to_pylist() == [{"word": "a", "n": 1}, {"word": "e", "n": 5}]
    assert sorted(each.place for each in found.undecodable) == [1, 2, 3]
    values = [[bad], [1]]
    nothing = columns.columns_of(
        ReceivedBatch(SOURCE, 1, list(values), undecodable=undecodable_rows(SOURCE, values, PICKLE))
    )
    assert nothing.batch.num_rows == 0
    assert [each.place for each in nothing.undecodable] == [0]
