"""The contract suite of column serializers: batches arrive unchanged, and keys are those of rows. Needs pyarrow.

The test of a driver::

    class TestMyColumns(ColumnSerializerContract):
        name = "mine"
        driver_class = MySerializer
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from heron.api.columns import COMPRESSIONS
from heron.errors import EmitError, SerializationError
from heron.spi.column_serializer import ColumnSerializer
from heron.spi.serializer import PRIVATE_ENCODINGS, Encoding
from heron_testing.contracts.driver import DriverContract

__all__ = ["ColumnSerializerContract"]

_UTC = datetime.UTC
_WORDS = pa.DictionaryArray.from_arrays(pa.array([0, 2, None, 0], pa.int8()), ["heron", "unused", "storm"])

COLUMNS: Sequence[pa.Array] = (
    pa.array([None, None, None, None]),
    pa.array([True, None, False, True]),
    pa.array([1, None, -(2**63), 2**63 - 1]),
    pa.array([1, 2, 3, 255], pa.uint8()),
    pa.array([0.0, -0.0, float("nan"), None]),
    pa.array(["a", None, "ä→𝄞", ""]),
    pa.array([b"a", None, b"\0", b""]),
    pa.array(["a", None, "b", "a"], pa.large_string()),
    pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-2.00"), decimal.Decimal("0.00")]),
    pa.array([datetime.date(2024, 2, 29), None, datetime.date(1969, 1, 1), datetime.date(1, 1, 1)]),
    pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3, 4, _UTC)] * 3 + [None]),
    _WORDS,
)
"""One column of each kind that can be a key."""

NESTED: Sequence[pa.Array] = (
    pa.array([[1], None, [], [2, 3]]),
    pa.array([{"a": 1}, None, {"a": None}, {"a": 2}]),
    pa.array([datetime.time(1, 2)] * 4),
    pa.array([datetime.timedelta(days=1)] * 4),
    pa.array([1, 2, 3, 4], pa.timestamp("ns")),
    pa.array(np.array([1.5] * 4, dtype=np.float16)),
)
"""Columns that travel, and that rows cannot be grouped by."""


def _plain(schema: pa.Schema) -> pa.DataType:
    """The type of its rows without dictionaries, whose unused entries need not arrive."""
    kinds = [
        getattr(field.type, "value_type", field.type) if pa.types.is_dictionary(field.type) else field.type
        for field in schema
    ]
    return pa.struct(list(zip(schema.names, kinds, strict=True)))


class ColumnSerializerContract(DriverContract):
    """Subclass it with `name`, `driver_class`, and the fixture `options` if the driver needs options."""

    family = "serializer"
    driver_class: type[ColumnSerializer]

    @pytest.fixture
    def serializer(self, options: dict[str, object]) -> ColumnSerializer:
        """The driver under test."""
        return self.driver_class.open(options)

    def test_has_a_number_on_the_wire(self) -> None:
        """Readers choose the serializer by this number."""
        number = self.driver_class.encoding
        assert number in PRIVATE_ENCODINGS or number in {each.value for each in Encoding if each is not Encoding.NONE}

    def test_declares_columns(self) -> None:
        """Commands show the flag."""
        assert "columns" in self.driver_class.capabilities

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @pytest.mark.parametrize("column", [*COLUMNS, *NESTED], ids=lambda column: str(column.type))
    def test_batches_arrive_as_they_were(
        self, serializer: ColumnSerializer, column: pa.Array, compression: str
    ) -> None:
        """Values, nulls and types, also of slices."""
        batch = pa.record_batch({"value": column, "number": pa.array(range(len(column)))})
        for sent in (batch, batch.slice(1, 2), batch.slice(0, 0)):
            arrived = serializer.decode_batch(serializer.encode_batch(sent, compression), sent.num_rows)
            arrived.validate(full=True)
            assert arrived.schema == sent.schema
            assert str(arrived.to_struct_array().cast(_plain(sent.schema))) == str(
                sent.to_struct_array().cast(_plain(sent.schema))
            )  # as text: NaN is equal to NaN

    def test_a_batch_without_columns_keeps_its_rows(self, serializer: ColumnSerializer) -> None:
        """A stream without fields carries rows too."""
        sent = serializer.batch_of(pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([]))), ())
        assert serializer.decode_batch(serializer.encode_batch(sent), 3).num_rows == 3

    def test_emitted_columns_get_the_order_of_the_fields(self, serializer: ColumnSerializer) -> None:
        """Authors name columns; the stream has an order."""
        values = {"b": [1, 2], "a": ["x", "y"]}
        arrays = {"b": np.array([1, 2]), "a": pa.array(["x", "y"])}
        for given in (values, arrays, pa.table(values), pa.record_batch(values)):
            batch = serializer.batch_of(given, ("a", "b"))
            assert batch.to_pydict() == {"a": ["x", "y"], "b": [1, 2]}

    def test_a_table_of_several_chunks_becomes_one_batch(self, serializer: ColumnSerializer) -> None:
        """Files are read in chunks, and their dictionaries may differ."""
        coded = [pa.array(each).dictionary_encode() for each in (["a", "b"], ["c", "a"])]
        table = pa.table({"word": pa.chunked_array(coded), "n": pa.chunked_array([[1], [2, 3, 4]])})
        batch = serializer.batch_of(table, ("word", "n"))
        assert batch.to_pydict() == {"word": ["a", "b", "c", "a"], "n": [1, 2, 3, 4]}

    @pytest.mark.parametrize(
        "given",
        [{"a": [1]}, {"a": [1], "c": [1]}, {"a": [1], "b": [1, 2]}, {"a": [1], "b": ...}, [1, 2], "text", None],
        ids=repr,
    )
    def test_what_is_no_batch_of_the_stream_is_refused(self, serializer: ColumnSerializer, given: object) -> None:
        """The emit fails at its place, and nothing is sent."""
        with pytest.raises(EmitError):
            serializer.batch_of(given, ("a", "b"))  # type: ignore[arg-type]  # wrong on purpose

    def test_types_are_those_of_values(self, serializer: ColumnSerializer) -> None:
        """A stream may have text and dictionaries of text."""
        batch = pa.record_batch({"word": _WORDS, "n": [1, 2, 3, 4]})
        assert serializer.types_of(batch) == ("string", "int64")

    @pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
    def test_keys_are_the_values_of_rows(self, serializer: ColumnSerializer, column: pa.Array) -> None:
        """The core hashes each of them as it hashes the value of a row."""
        batch = pa.record_batch({"number": pa.array(range(len(column))), "key": column}).slice(1)
        serializer.check_keys(batch, (1,))
        keys, codes = serializer.distinct_keys(batch, (1,))
        found = [keys[code] for code in codes.tolist()]
        wanted = column.slice(1).to_pylist()
        assert list(map(type, found)) == list(map(type, wanted))
        assert str(found) == str(wanted)

    def test_keys_of_several_columns_are_tuples(self, serializer: ColumnSerializer) -> None:
        """Only combinations that occur are keys."""
        columns = {"a": ["x", "y", "x", None], "b": [1, 1, 1, None], "c": [True, True, True, False]}
        batch = pa.record_batch(columns)
        keys, codes = serializer.distinct_keys(batch, (0, 1, 2))
        rows = list(zip(*columns.values(), strict=True))
        assert [keys[code] for code in codes.tolist()] == rows
        assert len(keys) == len(set(rows))

    @pytest.mark.parametrize("column", NESTED, ids=lambda column: str(column.type))
    def test_a_type_that_is_no_key_is_refused_by_name(self, serializer: ColumnSerializer, column: pa.Array) -> None:
        """At the first batch, and not at the first value."""
        with pytest.raises(EmitError, match=r"field 'key' has the type"):
            serializer.check_keys(pa.record_batch({"key": column}), (0,))

    def test_rows_are_taken_and_joined(self, serializer: ColumnSerializer) -> None:
        """Parts of batches for several tasks, and batches that wait for a flush."""
        batch = pa.record_batch({"word": _WORDS, "n": [1, 2, 3, 4]})
        taken = serializer.take(batch, np.array([3, 0, 3]))
        assert taken.to_pydict() == {"word": ["heron"] * 3, "n": [4, 1, 4]}
        other = pa.record_batch({"word": pa.array(["new"]).dictionary_encode().cast(_WORDS.type), "n": [5]})
        joined = serializer.concat([batch, other])
        assert joined.to_pydict() == {"word": ["heron", "storm", None, "heron", "new"], "n": [1, 2, 3, 4, 5]}
        assert joined.schema == batch.schema

    def test_a_copy_has_memory_of_its_own(self, serializer: ColumnSerializer) -> None:
        """A batch may wait for a flush after the author has changed an array that it shares."""
        numbers = np.arange(100_000)
        batch = pa.record_batch({"n": pa.array(numbers)})
        copies = [serializer.copy(each) for each in (batch, batch.slice(5, 3))]
        numbers[:] = 0
        assert copies[0].column(0).to_pylist() == list(range(100_000))
        assert copies[1].to_pydict() == {"n": [5, 6, 7]}
        assert copies[1].get_total_buffer_size() < 1000

    def test_rows_become_columns_of_the_first_types(self, serializer: ColumnSerializer) -> None:
        """A later batch has the types of the first; a column of None has no type yet."""
        first = serializer.from_columns([(1, None), (None, None)], ("a", "b"), None)
        assert list(map(str, first.schema.types)) == ["int64", "null"]
        second = serializer.from_columns([(2,), ("x",)], ("a", "b"), first.schema)
        assert second.to_pydict() == {"a": [2], "b": ["x"]}
        with pytest.raises(SerializationError, match=r"field 'a': .*of type str does not fit int64"):
            serializer.from_columns([("two",), ("x",)], ("a", "b"), second.schema)
        with pytest.raises(SerializationError, match=r"field 'a': .*object"):
            serializer.from_columns([(object(),)], ("a",), None)

    def test_columns_become_values(self, serializer: ColumnSerializer) -> None:
        """A bolt of rows reads a stream of columns."""
        for column in (*COLUMNS, *NESTED[:4]):
            batch = pa.record_batch({"value": column})
            ((*values,),) = serializer.to_columns(batch)
            assert list(map(type, values)) == list(map(type, column.to_pylist()))
            assert str(values) == str(column.to_pylist())
        with pytest.raises(SerializationError, match=r"timestamp\[ns\]"):
            serializer.to_columns(pa.record_batch({"value": NESTED[4]}))

    def test_every_cut_payload_is_an_error(self, serializer: ColumnSerializer) -> None:
        """A truncated payload must neither end the task nor decode as a batch of that size."""
        batch = pa.record_batch({"word": _WORDS, "n": [1, 2, 3, 4]})
        payload = serializer.encode_batch(batch)
        for size in range(0, len(payload) - 16, 7):  # the last bytes mark the end of the stream
            with pytest.raises(SerializationError):
                serializer.decode_batch(payload[:size], 4)
        with pytest.raises(SerializationError, match="3 rows"):
            serializer.decode_batch(payload, 3)

    def test_a_part_does_not_carry_what_it_does_not_use(self, serializer: ColumnSerializer) -> None:
        """A dictionary of a thousand words must not travel with each of a hundred parts of ten rows."""
        words = pa.array([f"word{number}" for number in range(1000)]).dictionary_encode()
        batch = pa.record_batch({"word": words})
        part = batch.slice(500, 10)
        payload = serializer.encode_batch(part)
        assert len(payload) < len(serializer.encode_batch(batch)) / 10
        arrived = serializer.decode_batch(payload, 10)
        assert arrived.to_pydict() == part.to_pydict()
        assert arrived.schema == part.schema
