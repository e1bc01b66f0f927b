"""The sample of keys: what it names, what it leaves out, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from heron.api.bolt import Bolt
from heron.api.definition import GroupingKind, StreamDefinition
from heron.driver_kit.signals import Signals
from heron.instance.bolt_runner import BoltRunner
from heron.instance.codec.serializers import PICKLE
from heron.instance.gateway.gateway import Gateway
from heron.instance.input.batch_reader import ReceivedBatch
from heron.instance.input.key_sample import KeySample, keyed_inputs
from heron.instance.input.tuple_pool import TupleSource
from heron.instance.input.undecodable_rows import undecodable_rows
from heron.instance.task import Task
from heron.ipc.frames.frame import FRAME_HEADER_BYTES
from heron.kernel.settings import EngineSettings
from heron.planner.key_group import key_group
from heron.planner.physical_plan import PlanIndex
from heron.spi.serializer import UndecodableValue
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts import data_frame, end_marker, instance_spec, tuple_segment

GROUPS = 64
SOURCE = TupleSource("spout", StreamDefinition("default", ("shop", "customer")), 1)


def batch(customers: Sequence[object], source: TupleSource = SOURCE) -> ReceivedBatch:
    return ReceivedBatch(source, len(customers), [["a"] * len(customers), customers])


def shares(sample: KeySample) -> dict[str, tuple[str, Any]]:
    """The metrics: the value and the label by name."""
    return {each.name: (next(iter(each.labels.values())), each.value) for each in sample.metrics()}


def new() -> KeySample:
    return KeySample({("spout", "default"): (1,)}, GROUPS)


def test_rows_that_are_lost_are_no_keys() -> None:
    """A value that does not decode is no key of the task."""
    bad = UndecodableValue("app.Bad", ValueError(), "")
    sample = new()
    for _ in range(10):
        columns: list[Sequence[object]] = [["a"] * 10, [bad, "good"] * 5]
        sample.look(ReceivedBatch(SOURCE, 10, columns, undecodable=undecodable_rows(SOURCE, columns, PICKLE)))
    assert shares(sample)["hot-key-share"] == ("good", 1.0)


def test_names_the_key_and_its_group() -> None:
    """Three of four rows have the key, also at places that a step through the batch would miss."""
    sample = new()
    for _ in range(10):
        sample.look(batch([f"c{row}" if row % 4 == 3 else "hot" for row in range(13)]))
    found = shares(sample)
    assert found["hot-key-share"] == ("hot", pytest.approx(0.75, abs=0.1))
    assert found["hot-group-share"][0] == str(key_group(("hot",), GROUPS))


def test_names_a_group_whose_keys_are_not_hot() -> None:
    """Eight keys of one group have all the input: each has an eighth."""
    keys = [f"c{each}" for each in range(10_000) if key_group((f"c{each}",), GROUPS) == 7][:8]
    sample = new()
    for _ in range(10):
        sample.look(batch(keys))
    found = shares(sample)
    assert found["hot-group-share"] == ("7", 1.0)
    assert found["hot-key-share"][1] == pytest.approx(1 / 8)


def test_says_nothing_of_even_keys_and_of_few_rows() -> None:
    """A share below a tenth explains nothing, and one of a few rows is chance."""
    even = new()
    for start in range(0, 100, 10):
        even.look(batch(list(range(start, start + 10))))
    assert "hot-key-share" not in shares(even)
    few = new()
    few.look(batch(["hot"] * 10))
    assert shares(few) == {}


def test_takes_a_hundred_rows_of_a_period_however_many_come() -> None:
    """Otherwise the cost would grow with the rate: rows after the hundredth are not looked at."""
    sample = new()
    for _ in range(10):
        sample.look(batch(["first"] * 1000))
    sample.look(batch(["second"] * 1000))
    assert shares(sample)["hot-key-share"] == ("first", 1.0)
    sample.look(batch(["second"] * 1000))
    assert shares(sample)["hot-key-share"] == ("first", pytest.approx(100 / 110))


def test_forgets_a_key_after_ten_periods() -> None:
    """A key that was hot yesterday must not be named today."""
    sample = new()
    for _ in range(10):
        sample.look(batch(["hot"] * 100))
    assert shares(sample)["hot-key-share"][0] == "hot"
    last = sample.metrics()
    for period in range(10):
        for start in range(10):
            sample.look(batch([f"{period} {start} {row}" for row in range(10)]))
        last = sample.metrics()
    assert not last


def test_leaves_out_other_streams_and_keys_that_cannot_be_hashed() -> None:
    """A key of the author's own type must not stop the task."""
    sample = new()
    sample.look(batch(["x"] * 100, TupleSource("spout", StreamDefinition("other", ("shop", "customer")), 1)))
    sample.look(batch([["a list"]] * 100))
    assert shares(sample) == {}


def test_a_long_key_is_cut() -> None:
    """Labels go to monitoring systems, which limit them."""
    sample = new()
    for _ in range(10):
        sample.look(batch(["x" * 1000] * 10))
    (name, _) = shares(sample)["hot-key-share"]
    assert len(name) == 64
    assert name.endswith("…")


def test_only_inputs_that_are_grouped_by_fields_are_looked_at() -> None:
    """Their positions follow the order of the grouping, not of the stream."""
    inputs = [
        subscription("spout", GroupingKind.FIELDS, "customer", "shop"),
        subscription("spout", GroupingKind.SHUFFLE, stream="b"),
    ]
    definition = topology(spout("spout", stream("shop", "customer"), stream(name="b")), bolt("bolt", *inputs))
    index = PlanIndex(physical_plan(definition, {"spout": (1,), "bolt": (2,)}))
    assert keyed_inputs(index, "bolt") == {("spout", "default"): (1, 0)}
    assert KeySample.of(index, "spout") is None


class WhenIdle(Signals):
    """Asks to stop as soon as the queue is empty; catches nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def stop_requested(self) -> bool:
        return self._gateway.data_in.queued_bytes() == 0


class Nothing(Bolt):
    """Takes tuples."""

    def process(self, tup: object) -> None:
        """Keeps nothing."""


@pytest.mark.parametrize(("grouping", "names"), [(("customer",), {"hot-key-share"}), ((), set())])
def test_a_bolt_with_keys_reports_the_hot_one(grouping: tuple[str, ...], names: set[str]) -> None:
    """A bolt without keys looks at no row."""
    kind = GroupingKind.FIELDS if grouping else GroupingKind.SHUFFLE
    definition = topology(
        spout("spout", stream("shop", "customer")), bolt("bolt", subscription("spout", kind, *grouping))
    )
    spec, settings = instance_spec("bolt", 2), EngineSettings()
    gateway = Gateway(spec, settings)
    task = Task(spec, settings, gateway, physical_plan(definition, {"spout": (1,), "bolt": (2,)}))
    runner = BoltRunner(task, WhenIdle(gateway), Nothing)
    segments = [tuple_segment([("a", "hot")] * 10, (2,), source_task=1) for _ in range(10)]
    frame = data_frame(*segments, end_marker((2,), 1))
    gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
    runner.run(ended=False)
    found = {each.name: (each.labels, each.value) for each in task.telemetry.record(runner.emitter).metrics}
    assert {name for name in found if name == "hot-key-share"} == names
    assert not names or found["hot-key-share"] == ({"key": "hot"}, 1.0)
