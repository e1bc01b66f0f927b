"""A bolt whose tuples have weights: what it sees, and with which weight it emits."""

from __future__ import annotations

import pickle
from dataclasses import replace

from heron.api.api_constants import TOPOLOGY_SHED, TOPOLOGY_TICK_TUPLE_FREQ_SECS
from heron.api.bolt import Bolt
from heron.api.tuple import Tuple
from heron.instance.gateway.gateway import Gateway
from heron.instance.sampled_bolt import SampledBoltRunner
from heron.instance.task import Task
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    OptionTag,
    SegmentKind,
    kept_option,
    kept_probability,
    option,
    parse_segment,
)
from heron.kernel.settings import EngineSettings
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts import data_frame, decoded_rows, instance_spec, tuple_segment
from parts.spout_bench import When


class Keeping(Bolt):
    """Keeps each third tuple, and passes all on."""

    def initialize(self, config: object, context: object) -> None:
        self.kept: list[Tuple] = []
        self.weights: list[float] = []

    def process(self, tup: Tuple) -> None:
        self.weights.append(tup.weight)
        if len(self.weights) % 3 == 0:
            self.kept.append(tup)
        self.emit([tup.values[0]])

    def process_tick(self, tup: Tuple) -> None:
        self.emit([f"tick {tup.weight}"])


class BoltBench:
    """A bolt task that gets some segments, and then stops."""

    def __init__(self, *segments: bytes, ticks: bool = False) -> None:
        config: dict[str, object] = {TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.001} if ticks else {}
        definition = topology(
            replace(spout("words", stream("word")), config={TOPOLOGY_SHED: {"policy": "uniform", "rate": 1}}),
            replace(bolt("keep", subscription("words"), outputs=(stream("word"),)), config=config),
            bolt("sink", subscription("keep")),
        )
        plan = physical_plan(definition, {"words": (1,), "keep": (2,), "sink": (3,)})
        settings = EngineSettings()
        self.gateway = Gateway(instance_spec("keep", 2), settings)
        for each in segments:
            frame = data_frame(each)
            self.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
        done = When(lambda: self.gateway.data_in.queued_bytes() == 0 and (not ticks or "tick" in str(self.sent())))
        self.task = Task(instance_spec("keep", 2), settings, self.gateway, plan)
        self.runner = SampledBoltRunner(self.task, done, Keeping)
        self.runner.run(ended=False)
        self.runner.emitter.flush()

    @property
    def component(self) -> Keeping:
        found = self.runner.component
        assert isinstance(found, Keeping)
        return found

    def sent(self) -> list[tuple[float, list[object]]]:
        """The probability and the words of each segment."""
        found = []
        for item in self.gateway.data_out.items:
            for data in () if isinstance(item, Envelope) else item[0]:
                head = parse_segment(data, 0)
                if head.kind == SegmentKind.TUPLES:
                    found.append((kept_probability(head), [row[0] for row in decoded_rows(data)]))
        return found


def words(probability: float, *given: str) -> bytes:
    return tuple_segment([(word,) for word in given], (2,), source_task=1, options=kept_option(probability))


def test_tuples_have_the_weight_of_their_segment_and_pass_it_on() -> None:
    """Three segments of one source; what is emitted for them is not mixed."""
    bench = BoltBench(words(1.0, "a"), words(0.5, "b", "c"), words(0.5, "d"), words(1.0, "e"))
    assert bench.component.weights == [1.0, 2.0, 2.0, 2.0, 1.0]
    sent: dict[float, list[object]] = {}
    for probability, found in bench.sent():
        sent.setdefault(probability, []).extend(found)
    assert sent == {1.0: ["a", "e"], 0.5: ["b", "c", "d"]}
    assert bench.component.received_weight == 1.0


def test_a_kept_tuple_keeps_its_weight() -> None:
    """The objects of tuples are reused, and a pickle of one may be in a state."""
    bench = BoltBench(words(0.5, "a", "b", "c"), words(0.25, "d", "e", "f"), words(1.0, "g", "h", "i"))
    kept = bench.component.kept
    assert [(tup.values, tup.weight) for tup in kept] == [(("c",), 2.0), (("f",), 4.0), (("i",), 1.0)]
    assert [pickle.loads(pickle.dumps(tup)).weight for tup in kept] == [2.0, 4.0, 1.0]


def test_what_a_tick_emits_has_the_weight_one() -> None:
    """It is a result of many tuples, which has their weights in it."""
    bench = BoltBench(words(0.5, "a"), ticks=True)
    ticks = [probability for probability, found in bench.sent() if "tick 1.0" in found]
    assert ticks
    assert set(ticks) == {1.0}


def test_an_impossible_probability_fails_its_tuples_alone() -> None:
    """A weight of it would make each sum senseless."""
    wrong = tuple_segment([("b",)], (2,), source_task=1, options=option(OptionTag.KEPT, bytes(8)))
    bench = BoltBench(words(0.5, "a"), wrong, words(0.5, "c"))
    assert bench.component.weights == [2.0, 2.0]
    assert bench.task.metrics.failed == 1
