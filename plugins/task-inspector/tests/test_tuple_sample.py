"""The sample of a task's tuples: how many it takes, from where, and in which form."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from heron.api.definition import StreamDefinition
from heron.errors import RemoteProtocolError
from heron.instance.input.batch_reader import ReceivedBatch
from heron.instance.input.tuple_pool import TupleSource
from heron.spi.inspected_task import InspectedTask, TaskIdentity, TupleSampler
from heron.spi.task_tuples import SampledTuple, TaskTuples, decode_tuples, encode_tuples
from heron_task_inspector.tuple_sample import TupleSample, secrets_of, tuples_of
from heron_task_inspector.value_text import ValueText
from heron_testing.waiting import Eventually

pytestmark = pytest.mark.leaks_nothing

SOURCE = TupleSource("words", StreamDefinition("default", ("word", "password")), 1)


@pytest.fixture
def task() -> Iterator[InspectedTask]:
    """A task with one input and one output."""
    made = InspectedTask(TaskIdentity("t", "count", 3), inputs=1, outputs=1)
    yield made
    assert made.sample is None


def batch(*rows: tuple[str, str]) -> ReceivedBatch:
    return ReceivedBatch(SOURCE, len(rows), [list(column) for column in zip(*rows, strict=True)])


def receive(sample: TupleSampler | None, received: ReceivedBatch) -> None:
    """Give a batch to a sample, as a bolt's runner does."""
    assert sample is not None
    source = received.source
    sample.receive(source.key, source.task_id, source.fields, received.first_rows)


def test_tuples_have_their_source_stream_and_fields(task: InspectedTask) -> None:
    """A field with the name of a secret is hidden."""
    sample = TupleSample(2, task, ValueText())
    receive(sample, batch(("one", "x"), ("two", "y"), ("three", "z")))
    first = SampledTuple("words", 1, "default", ("word", "password"), ("'one'", "(hidden)"))
    assert sample.received == [first, replace(first, values=("'two'", "(hidden)"))]
    assert not sample.is_full.is_set()
    receive(sample, batch(("four", "x")))
    assert len(sample.received) == 2
    sample.emit("default", ("total",), [7, 8, 9])
    assert [each.values for each in sample.emitted] == [("7",), ("8",)]
    assert (sample.emitted[0].component, sample.emitted[0].task_id) == ("count", 3)
    assert sample.is_full.is_set()


def test_each_input_has_its_part(task: InspectedTask) -> None:
    """One input would fill the sample of a join by itself."""
    task.inputs = 2
    sample = TupleSample(4, task, ValueText())
    receive(sample, batch(*[("one", "x")] * 10))
    assert len(sample.received) == 2


def test_a_component_without_outputs_or_inputs_is_not_waited_for(task: InspectedTask) -> None:
    """Else each look at a sink would last until its time limit."""
    task.outputs = 0
    sample = TupleSample(1, task, ValueText())
    receive(sample, batch(("one", "x")))
    assert sample.is_full.is_set()
    task.inputs, task.outputs = 0, 1
    sample = TupleSample(1, task, ValueText())
    sample.emit("default", ("one", "two"), [(1, 2)])
    assert sample.is_full.is_set()


def test_the_answer_comes_when_the_sample_is_full(task: InspectedTask, eventually: Eventually) -> None:
    """It does not wait for the rest of its time, and leaves the task as it was."""
    with ThreadPoolExecutor(1) as question:
        asked = question.submit(tuples_of, task, 1, 300.0, threading.Event())
        eventually(lambda: task.sample is not None, what="a sample")
        receive(task.sample, batch(("one", "x")))
        assert task.sample is not None
        task.sample.emit("default", ("total",), [1])
        tuples = asked.result(60)
    assert (tuples.component, tuples.task_id, tuples.wanted) == ("count", 3, 1)
    assert (len(tuples.received), len(tuples.emitted)) == (1, 1)
    assert tuples.lasted_s < 60.0


def test_secrets_are_those_of_drivers_and_of_variables() -> None:
    """A short one would hide ordinary words."""
    variables = [("DB_PASSWORD", "swordfish"), ("API_TOKEN", "abc"), ("HOME", "/home/somebody")]
    assert secrets_of(("of the store",), variables) == ["of the store", "swordfish"]
    assert secrets_of((), ()) == []


def test_an_answer_that_does_not_decode_is_an_error() -> None:
    """The task may be of another version."""
    with pytest.raises(RemoteProtocolError, match="a sample of tuples of 2 bytes cannot be read"):
        decode_tuples(b"{}")
    tuples = TaskTuples("t", "count", 3, 1, 0, 7, "here", 1.0, 2.0, 1, (), ())
    assert decode_tuples(encode_tuples(tuples)) == tuples
