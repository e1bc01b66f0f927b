"""The sample of a task's tuples, of batches of columns."""

from __future__ import annotations

import pyarrow as pa

from heron.api.definition import StreamDefinition
from heron.instance.input.batch_reader import ReceivedBatch
from heron.instance.input.tuple_pool import TupleSource
from heron.spi.inspected_task import InspectedTask
from heron_serializer_arrow import ArrowSerializer
from heron_task_inspector.tuple_sample import TupleSample
from heron_task_inspector.value_text import ValueText

SOURCE = TupleSource("words", StreamDefinition("default", ("word", "n")), 3)
BATCH = pa.record_batch({"word": ["a", "b", "c"], "n": [1, None, 3]})


def test_rows_of_a_batch_that_arrived_as_columns() -> None:
    """Only the first rows become Python values, and the batch stays as it is."""
    received = ReceivedBatch(SOURCE, 3, None, BATCH, ArrowSerializer.open({}))
    assert received.first_rows(2) == [("a", 1), ("b", None)]
    assert received.record_batch is BATCH
    assert len(received.first_rows(9)) == 3


def test_rows_of_a_batch_that_was_emitted_as_columns() -> None:
    """As if they had been emitted one by one."""
    sample = TupleSample(2, InspectedTask(), ValueText())
    sample.emit_columns("default", ("word", "n"), BATCH)
    sample.emit_columns("default", ("word", "n"), BATCH)
    assert [each.values for each in sample.emitted] == [("'a'", "1"), ("'b'", "None")]


def test_a_value_that_python_lacks_does_not_fail_the_emit() -> None:
    """Somebody who looks at a task must not change what it does."""
    sample = TupleSample(2, InspectedTask(), ValueText())
    days = pa.array([1, 2_932_897], pa.int32()).cast(pa.date32())
    sample.emit_columns("default", ("word", "n"), pa.record_batch({"word": ["a", "b"], "n": days}))
    assert sample.emitted[0].values[1] == "1970-01-02"
    assert "date32[day]" in sample.emitted[1].values[1]
