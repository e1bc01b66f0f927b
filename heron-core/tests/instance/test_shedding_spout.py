"""A spout that sheds, on its task thread: what it sends, what its author hears, and what is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE, TOPOLOGY_SHED, TopologyReliabilityMode
from heron.api.spout import Spout
from heron.driver_kit.keep_controller import RateController
from heron.instance.queues.data_queue import PlanReceived, RootsSettled
from heron.instance.shedding_spout import SheddingSpoutRunner
from heron.ipc.documents.metric_names import ACK_COUNT, EMIT_COUNT, SHED_COUNT
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import SegmentKind, kept_probability, parse_segment
from heron.ipc.frames.tracking import RootOutcome
from heron.planner.physical_plan import PhysicalPlan
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts import decoded_rows
from parts.spout_bench import SpoutBench

ROWS = 400
UNIFORM: Mapping[str, object] = {"policy": "uniform", "rate": 1}


class Numbers(Spout):
    """Emits numbers with ids, and keeps the ids that it has not heard of."""

    outputs = ("v",)
    made = 0

    def initialize(self, config: object, context: object) -> None:
        self.open: set[object] = set()

    def next_tuple(self) -> None:
        if self.made == ROWS:
            self.end()
            return
        self.open.add(self.made)
        self.emit([self.made], tup_id=self.made)
        self.made += 1

    def ack(self, tup_id: object) -> None:
        self.open.remove(tup_id)

    def fail(self, tup_id: object) -> None:
        self.emit([tup_id], tup_id=tup_id)

    def shed_priority(self, values: Sequence[object]) -> float:
        return float(str(values[0])) % 2


def plan_of(shed: Mapping[str, object], mode: TopologyReliabilityMode, version: int = 1) -> PhysicalPlan:
    definition = topology(
        replace(spout("spout", stream("v")), config={TOPOLOGY_SHED: shed}), bolt("sink", subscription("spout"))
    )
    config: dict[str, object] = {TOPOLOGY_RELIABILITY_MODE: mode.value}
    return physical_plan(replace(definition, config=config), {"spout": (1,), "sink": (2,)}, version=version)


class Shedding(SpoutBench):
    """A spout that keeps a share, whatever it offers."""

    def __init__(
        self,
        share: float,
        shed: Mapping[str, object] = UNIFORM,
        mode: TopologyReliabilityMode = TopologyReliabilityMode.ATMOST_ONCE,
        *,
        acked: bool = True,
    ) -> None:
        """Without `acked` the spout stops once it has emitted everything: it would wait for its acks."""
        self.acked = acked
        super().__init__(Numbers, lambda _: self.is_over(), plan_of(shed, mode), SheddingSpoutRunner)
        assert isinstance(self.runner, SheddingSpoutRunner)
        self.shedding = self.runner
        self.shedding._controller = None  # the time that a test takes decides nothing
        self.keep(share)
        if shed["policy"] != "priority":
            self.shedding._spout_emitter.set_probability(share)

    def keep(self, share: float) -> None:
        for each in self.shedding._shedders.values():
            each.follow(share)

    def is_over(self) -> bool:
        if self.acked:
            return self.runner.ended
        emitter = self.shedding._spout_emitter
        return emitter.ending and not emitter.pending_rows()

    def segments(self) -> list[tuple[float, list[int]]]:
        """The probability and the numbers of each segment."""
        found = []
        for item in self.gateway.data_out.items:
            for data in () if isinstance(item, Envelope) else item[0]:
                head = parse_segment(data, 0)
                if head.kind == SegmentKind.TUPLES:
                    found.append((kept_probability(head), [int(str(row[0])) for row in decoded_rows(data)]))
        return found

    def counts(self) -> dict[str, float]:
        record = self.task.telemetry.record(self.runner.emitter)
        wanted = (ACK_COUNT, EMIT_COUNT, SHED_COUNT)
        return {each.name: each.value for each in record.metrics if each.name in wanted and isinstance(each.value, int)}


def test_segments_carry_the_probability_of_their_rows() -> None:
    """The sum of the weights is about the number of all rows, and each row was kept or counted as shed."""
    bench = Shedding(0.25)
    bench.runner.run(ended=False)
    assert {probability for probability, _ in bench.segments()} == {0.25}
    kept = sum(len(numbers) for _, numbers in bench.segments())
    assert kept / 0.25 == pytest.approx(ROWS, rel=0.35)
    assert bench.counts() == {EMIT_COUNT: kept, SHED_COUNT: ROWS - kept, ACK_COUNT: kept}


def test_an_author_hears_of_shed_tuples_as_of_acked_ones() -> None:
    """A spout that keeps what is in flight must forget them; metrics do not count them as acked."""
    bench = Shedding(0.25)
    bench.runner.run(ended=False)
    component = bench.runner.component
    assert isinstance(component, Numbers)
    assert component.open == set()


def test_a_spout_that_sheds_everything_is_called_on() -> None:
    """A shed tuple is no sign that the source has none; the calls end, so that commands are seen."""
    bench = Shedding(1e-9)
    bench.runner.run(ended=False)
    assert bench.segments() == []
    assert bench.counts()[SHED_COUNT] == ROWS


def test_a_shed_tuple_makes_no_root_and_a_replay_is_never_shed() -> None:
    """It would have been shed twice: its weight would be too small."""
    bench = Shedding(0.5, mode=TopologyReliabilityMode.ATLEAST_ONCE, acked=False)
    bench.runner.run(ended=False)
    kept = [number for _, numbers in bench.segments() for number in numbers]
    component = bench.runner.component
    assert isinstance(component, Numbers)
    assert component.open == set(kept)  # of the others it has heard
    assert bench.shedding._roots.in_flight == len(kept)
    bench.gateway.data_out.items.clear()
    bench.keep(1e-9)
    pages = bench.shedding._roots._pages
    counters = [page.base + place for page in pages for place in range(page.left)]
    bench.runner.handle(RootsSettled(((RootOutcome.FAILED, counters),)))
    bench.runner.emitter.flush()
    assert sorted(number for _, numbers in bench.segments() for number in numbers) == sorted(kept)


def test_keys_are_kept_whole() -> None:
    """The numbers of both halves have the same keys here: each number is its own key, and kept by its hash."""
    first, second = (Shedding(0.3, {"policy": "by-key", "rate": 1, "key": "v"}) for _ in range(2))
    for bench in (first, second):
        bench.runner.run(ended=False)
    kept = [sorted(number for _, numbers in bench.segments() for number in numbers) for bench in (first, second)]
    assert kept[0] == kept[1]
    assert 0 < len(kept[0]) < ROWS


def test_a_flush_is_divided_by_probability_where_priorities_decide() -> None:
    """Odd numbers have the higher priority. They all stay, and half of the even ones."""
    bench = Shedding(1.0, {"policy": "priority", "rate": 1})
    bench.shedding._component = Numbers()
    for each in bench.shedding._shedders.values():
        for number in range(100):
            each.chance((number,))
    bench.keep(0.75)
    bench.runner.run(ended=False)
    found: dict[float, list[int]] = {}
    for probability, numbers in bench.segments():
        found.setdefault(probability, []).extend(numbers)
    assert set(found) == {0.5, 1.0}
    assert found[1.0] == [number for number in range(ROWS) if number % 2]
    assert {number % 2 for number in found[0.5]} == {0}
    assert len(found[0.5]) == pytest.approx(ROWS / 4, rel=0.35)


def test_a_new_configuration_takes_effect_at_once() -> None:
    """Overload is not known when a topology is submitted."""
    bench = Shedding(0.5)
    none = plan_of({"policy": "none"}, TopologyReliabilityMode.ATMOST_ONCE, version=2)
    bench.gateway.data_in.put(PlanReceived(none))
    bench.runner.run(ended=False)
    kept = [(probability, number) for probability, numbers in bench.segments() for number in numbers]
    assert {probability for probability, number in kept if number > 350} == {1.0}
    assert [number for _, number in kept if number > 350] == list(range(351, ROWS))


def test_the_share_follows_what_was_offered() -> None:
    """The controller gets kept and shed tuples together."""
    bench = Shedding(0.5)
    bench.runner.run(ended=False)
    controller = RateController(ROWS / 8)
    bench.shedding._follow(controller, bench.shedding._followed_s + 2.0)
    assert controller.share == pytest.approx(0.25)
    assert bench.runner.emitter.probability == controller.share
