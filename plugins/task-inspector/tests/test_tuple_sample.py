"""The sample of a task's tuples: how many it takes, from where, and in which form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from heron.api.definition import StreamDefinition
from heron.api.stream import ICustomGrouping
from heron.errors import RemoteProtocolError
from heron.instance.input.batch_reader import ReceivedBatch
from heron.instance.input.tuple_pool import TupleSource
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_routes import routes_of
from heron.planner.physical_plan import PlanIndex
from heron.spi.driver import DriverRef
from heron.spi.inspected_task import InspectedTask, TupleSampler
from heron.spi.task_tuples import SampledTuple, TaskTuples, decode_tuples, encode_tuples
from heron_task_inspector.tuple_sample import TupleObserver, TupleSample, secrets_of
from heron_task_inspector.value_text import ValueText
from heron_testing.builders import bolt, plan_index, spout, stream, subscription, topology
from heron_testing.waiting import Eventually
from parts import instance_spec, stream_origin

pytestmark = pytest.mark.leaks_nothing

SPEC = instance_spec("count", 3)
INDEX: PlanIndex = plan_index(
    topology(
        spout("words", stream("word", "password")),
        bolt("count", subscription("words"), outputs=(stream("total"),)),
        bolt("sink", subscription("count")),
    )
)
SOURCE = TupleSource("words", StreamDefinition("default", ("word", "password")), 1)


@pytest.fixture
def task() -> Iterator[InspectedTask]:
    """A task with one input and one output."""
    made = InspectedTask()
    made.inputs = made.outputs = 1
    yield made
    assert made.sample is None


def no_custom_grouping(*_: object) -> ICustomGrouping:
    raise AssertionError


def batch(*rows: tuple[str, str]) -> ReceivedBatch:
    return ReceivedBatch(SOURCE, len(rows), [list(column) for column in zip(*rows, strict=True)])


def receive(sample: TupleSampler | None, received: ReceivedBatch) -> None:
    """Give a batch to a sample, as a bolt's runner does."""
    assert sample is not None
    sample.receive(received.source.key, received.source.task_id, received.first_rows, INDEX)


def test_tuples_have_their_source_stream_and_fields(task: InspectedTask) -> None:
    """A field with the name of a secret is hidden."""
    sample = TupleSample(2, SPEC, task, ValueText())
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
    sample = TupleSample(4, SPEC, task, ValueText())
    receive(sample, batch(*[("one", "x")] * 10))
    assert len(sample.received) == 2


def test_a_component_without_outputs_or_inputs_is_not_waited_for(task: InspectedTask) -> None:
    """Else each look at a sink would last until its time limit."""
    task.outputs = 0
    sample = TupleSample(1, SPEC, task, ValueText())
    receive(sample, batch(("one", "x")))
    assert sample.is_full.is_set()
    task.inputs, task.outputs = 0, 1
    sample = TupleSample(1, SPEC, task, ValueText())
    sample.emit("default", ("one", "two"), [(1, 2)])
    assert sample.is_full.is_set()


def test_a_flush_fills_the_sample_of_its_task(task: InspectedTask) -> None:
    """Without a sample it only checks that there is none."""
    definition = stream("total")
    out = OutStream(0, definition, routes_of(INDEX, 2, definition, no_custom_grouping), stream_origin(2))
    out.origin.inspected = task
    out.rows += [1, 2]
    assert out.flush()
    task.sample = sample = TupleSample(5, SPEC, task, ValueText())
    out.rows.append(3)
    assert out.flush()
    task.sample = None
    assert [each.values for each in sample.emitted] == [("3",)]


def test_an_observer_answers_when_the_sample_is_full(task: InspectedTask, eventually: Eventually) -> None:
    """It does not wait for the rest of its time, and leaves the task as it was."""
    observer = TupleObserver(SPEC, 300.0, 1, task)
    eventually(lambda: task.sample is not None, what="a sample")
    assert task.sample is not None
    receive(task.sample, batch(("one", "x")))
    task.sample.emit("default", ("total",), [1])
    eventually(lambda: not observer.is_alive(), what="the answer")
    tuples = decode_tuples(observer.document())
    assert (tuples.component, tuples.task_id, tuples.wanted) == ("count", 3, 1)
    assert (len(tuples.received), len(tuples.emitted)) == (1, 1)
    assert tuples.lasted_s < 60.0


def test_an_observer_answers_with_nothing_when_no_tuple_comes(task: InspectedTask, eventually: Eventually) -> None:
    """A task that stands still has no tuples to show."""
    observer = TupleObserver(SPEC, 0.05, 1, task)
    eventually(lambda: not observer.is_alive(), what="the end of its time")
    tuples = decode_tuples(observer.document())
    assert (tuples.received, tuples.emitted) == ((), ())


def test_an_observer_ends_with_its_process(task: InspectedTask) -> None:
    """The end of a process does not wait for tuples."""
    observer = TupleObserver(SPEC, 300.0, 1, task)
    observer.stop()
    assert not observer.is_alive()


def test_secrets_are_those_of_drivers_and_of_variables() -> None:
    """A short one would hide ordinary words."""
    spec = replace(SPEC, checkpoint=DriverRef("checkpoint", "s3", "m:C", secrets=("of the store",)))
    variables = [("DB_PASSWORD", "swordfish"), ("API_TOKEN", "abc"), ("HOME", "/home/somebody")]
    assert secrets_of(spec, variables) == ["of the store", "swordfish"]
    assert secrets_of(SPEC, ()) == []


def test_an_answer_that_does_not_decode_is_an_error() -> None:
    """The task may be of another version."""
    with pytest.raises(RemoteProtocolError, match="tuples in 2 bytes cannot be read"):
        decode_tuples(b"{}")
    tuples = TaskTuples("t", "count", 3, 1, 0, 7, "here", 1.0, 2.0, 1, (), ())
    assert decode_tuples(encode_tuples(tuples)) == tuples
