"""What a task gives to the sample that an inspector has set: received and emitted rows."""

from __future__ import annotations

from collections.abc import Sequence

from heron.api.bolt import Bolt
from heron.api.tuple import Tuple
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.task import Task
from heron.ipc.frames.frame import FRAME_HEADER_BYTES
from heron.kernel.settings import EngineSettings
from heron.spi.inspected_task import FirstRows
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts import data_frame, instance_spec, tuple_segment
from parts.spout_bench import When


class Sampler:
    """Keeps what the task gives to a sample."""

    def __init__(self) -> None:
        self.received: list[tuple[object, ...]] = []
        self.emitted: list[tuple[str, tuple[str, ...], object]] = []

    def receive(self, key: tuple[str, str], task_id: int, fields: Sequence[str], first_rows: FirstRows) -> None:
        self.received.append((key, task_id, tuple(fields), first_rows(1)))

    def emit(self, stream: str, fields: Sequence[str], rows: Sequence[object]) -> None:
        self.emitted += [(stream, tuple(fields), each) for each in rows]

    def emit_columns(self, stream: str, fields: Sequence[str], batch: object) -> None:
        raise AssertionError(stream, fields, batch)


class Doubling(Bolt):
    """Emits twice the number of each tuple."""

    def process(self, tup: Tuple) -> None:
        self.emit([2 * tup.values[1]])


def test_a_task_fills_the_sample_that_an_inspector_has_set() -> None:
    """Received rows come with their source and its fields, emitted ones with those of their stream."""
    definition = topology(
        spout("words", stream("word", "number")),
        bolt("double", subscription("words"), outputs=(stream("value"),)),
        bolt("sink", subscription("double")),
    )
    plan = physical_plan(definition, {"words": (1,), "double": (2,), "sink": (3,)})
    spec, settings, sampler = instance_spec("double", 2), EngineSettings(), Sampler()
    gateway = Gateway(spec, settings)
    gateway.inspected.sample = sampler
    frame = data_frame(tuple_segment([("x", 1), ("y", 2)], (2,), source_task=1))
    gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
    done = When(lambda: gateway.data_in.queued_bytes() == 0)
    BoltRunner(Task(spec, settings, gateway, plan), done, Doubling).run(ended=False)
    assert sampler.received == [(("words", "default"), 1, ("word", "number"), [("x", 1)])]
    assert sampler.emitted == [("default", ("value",), 2), ("default", ("value",), 4)]
