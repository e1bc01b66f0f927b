"""At-least-once delivery in a simulation: trees complete, fail, time out and are replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from heron.api import (
    Bolt,
    BoltAckInfo,
    BoltFailInfo,
    Grouping,
    ITaskHook,
    Spout,
    SpoutAckInfo,
    SpoutFailInfo,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    api_constants,
)
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock

NUMBERS = 6


class ReplayingSpout(Spout):
    """Emits numbers with ids, and emits failed numbers again."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.waiting = list(range(NUMBERS))
        self.acked: list[int] = []
        self.failed: list[int] = []

    def next_tuple(self) -> None:
        if self.waiting:
            number = self.waiting.pop(0)
            self.emit([number], tup_id=number)
        else:
            self.end()

    def ack(self, tup_id: object) -> None:
        assert isinstance(tup_id, int)
        self.acked.append(tup_id)

    def fail(self, tup_id: object) -> None:
        assert isinstance(tup_id, int)
        self.failed.append(tup_id)
        self.waiting.append(tup_id)


class DoubleBolt(Bolt):
    """Emits two children of each tuple, then acks it."""

    outputs = ("number",)

    def process(self, tup: Tuple) -> None:
        for _ in range(2):
            self.emit([tup.values[0]], anchors=[tup])
        self.ack(tup)


class FirstTimeBolt(Bolt):
    """Fails, keeps or raises for number 3 at its first arrival, and acks the others."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.odd = config["odd"]
        self.seen: list[int] = []

    def process(self, tup: Tuple) -> None:
        number = tup.values[0]
        self.seen.append(number)
        if number != 3 or self.seen.count(3) > 1 or self.odd == "ack":
            self.ack(tup)
        elif self.odd == "fail":
            self.fail(tup)
        elif self.odd == "raise":
            message = "odd"
            raise ValueError(message)


def run(odd: str, clock: FakeClock) -> tuple[ReplayingSpout, FirstTimeBolt, Simulation]:
    """Runs the spout, the doubling bolt and the other bolt to the end."""
    builder = TopologyBuilder("acks")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE", "odd": odd})
    spout = builder.add_spout("numbers", ReplayingSpout, par=1)
    double = builder.add_bolt("double", DoubleBolt, 1, {spout: Grouping.SHUFFLE})
    builder.add_bolt("last", FirstTimeBolt, 1, {double: Grouping.SHUFFLE})
    with Simulation(builder, clock=clock) as simulation:
        simulation.run_until_finished(max_steps=100_000)
        source, last = simulation.component("numbers"), simulation.component("last")
        assert isinstance(source, ReplayingSpout)
        assert isinstance(last, FirstTimeBolt)
        return source, last, simulation


def test_each_complete_tree_is_acked_once() -> None:
    """Both children and the parent must be acked before the spout's `ack` is called."""
    source, last, simulation = run("ack", FakeClock())
    assert source.acked == list(range(NUMBERS))
    assert source.failed == []
    assert simulation.counts()["numbers"].acked == NUMBERS
    assert len(last.seen) == 2 * NUMBERS


def test_failed_tree_is_failed_at_once_and_replayed() -> None:
    """It does not wait for the timeout, and `end` does not prevent the replay."""
    clock = FakeClock()
    source, _, _ = run("fail", clock)
    assert source.failed == [3]
    assert clock.monotonic_s() < 1001


def test_exception_fails_the_tree() -> None:
    """An exception counts as a fail; the task goes on."""
    source, _, simulation = run("raise", FakeClock())
    assert source.failed == [3]
    assert simulation.counts()["last"].failed == 1


def test_tuple_that_is_never_acked_times_out() -> None:
    """It fails after `topology.message.timeout.secs` of simulated time."""
    clock = FakeClock()
    source, _, _ = run("forget", clock)
    assert source.failed == [3]
    assert sorted(source.acked) == list(range(NUMBERS))
    assert 1030 <= clock.monotonic_s() < 1031


class LonelySpout(Spout):
    """Emits a value that can be encoded, and one that cannot."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.told: list[tuple[str, object]] = []
        self.left = 2

    def next_tuple(self) -> None:
        if self.left == 2:
            self.emit([1], tup_id="plain")
        elif self.left == 1:
            self.emit([lambda: None], tup_id="unpicklable")
        else:
            self.end()
        self.left -= 1

    def ack(self, tup_id: object) -> None:
        self.told.append(("ack", tup_id))

    def fail(self, tup_id: object) -> None:
        self.told.append(("fail", tup_id))


def test_a_tuple_that_cannot_be_encoded_fails_its_tree() -> None:
    """The spout's `fail` is called, and the topology ends."""
    builder = TopologyBuilder("lonely")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE", "odd": "no"})
    spout = builder.add_spout("numbers", LonelySpout, par=1)
    builder.add_bolt("last", FirstTimeBolt, 1, [spout])
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished(max_steps=1000)
        source = simulation.component("numbers")
        assert isinstance(source, LonelySpout)
        assert source.told == [("ack", "plain"), ("fail", "unpicklable")]


def test_tuple_without_consumer_completes_at_once() -> None:
    """Otherwise it would be replayed forever."""
    builder = TopologyBuilder("alone")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE"})
    builder.add_spout("numbers", ReplayingSpout, par=1)
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished(max_steps=1000)
        source = simulation.component("numbers")
        assert isinstance(source, ReplayingSpout)
        assert source.acked == list(range(NUMBERS))


class PendingSpout(ReplayingSpout):
    """Records how many roots were open at each call."""

    def next_tuple(self) -> None:
        self.open = [*getattr(self, "open", []), NUMBERS - len(self.waiting) - len(self.acked)]
        super().next_tuple()


def test_spout_pending_bounds_the_open_roots() -> None:
    """At `topology.max.spout.pending` roots, `next_tuple` is not called until trees are complete."""
    builder = TopologyBuilder("pending")
    config = {
        api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
        api_constants.TOPOLOGY_MAX_SPOUT_PENDING: 2,
        "odd": "forget",
    }
    builder.set_config(config)
    spout = builder.add_spout("numbers", PendingSpout, par=1)
    builder.add_bolt("last", FirstTimeBolt, 1, [spout])
    with Simulation(builder, clock=FakeClock(), calls_per_step=10) as simulation:
        simulation.run_until_finished(max_steps=100_000)
        source = simulation.component("numbers")
        assert isinstance(source, PendingSpout)
        assert sorted(source.acked) == list(range(NUMBERS))
        assert max(source.open) == 1


class TreeHook(ITaskHook):
    """Records the outcomes of trees, with the latency in seconds of simulated time."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object, float]] = []

    def spout_ack(self, spout_ack_info: SpoutAckInfo) -> None:
        self.told.append(("ack", spout_ack_info.message_id, spout_ack_info.complete_latency_ms / 1000))

    def spout_fail(self, spout_fail_info: SpoutFailInfo) -> None:
        self.told.append(("fail", spout_fail_info.message_id, spout_fail_info.fail_latency_ms / 1000))

    def bolt_ack(self, bolt_ack_info: BoltAckInfo) -> None:
        self.told.append(("ack", bolt_ack_info.heron_tuple.values[0], bolt_ack_info.process_latency_ms / 1000))

    def bolt_fail(self, bolt_fail_info: BoltFailInfo) -> None:
        self.told.append(("fail", bolt_fail_info.heron_tuple.values[0], bolt_fail_info.fail_latency_ms / 1000))


class HookedSpout(ReplayingSpout):
    """Has a hook."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.hook = TreeHook()
        context.add_task_hook(self.hook)


class HookedBolt(Bolt):
    """Keeps a tuple until the next one arrives; fails the kept tuple of number 3 once."""

    held: Tuple | None = None
    failed = False

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.hook = TreeHook()
        context.add_task_hook(self.hook)

    def process(self, tup: Tuple) -> None:
        self.held, held = tup, self.held
        if held is not None:
            self._settle(held)

    def process_tick(self, tup: Tuple) -> None:
        if self.held is not None:
            self._settle(self.held)
        self.held = None

    def _settle(self, tup: Tuple) -> None:
        if tup.values[0] == 3 and not self.failed:
            self.failed = True
            self.fail(tup)
        else:
            self.ack(tup)


def test_hooks_get_acks_and_fails_with_their_latency() -> None:
    """This applies to spout and bolt. The latency of a kept tuple includes the time for which it was kept."""
    builder = TopologyBuilder("hooked")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE"})
    spout = builder.add_spout("numbers", HookedSpout, par=1)
    builder.add_bolt("last", HookedBolt, 1, [spout], config={api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 2})
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished(max_steps=100_000)
        source, last = simulation.component("numbers"), simulation.component("last")
        assert isinstance(source, HookedSpout)
        assert isinstance(last, HookedBolt)
    told = [("ack", 0), ("ack", 1), ("ack", 2), ("fail", 3), ("ack", 4), ("ack", 5), ("ack", 3)]
    for hook in (source.hook, last.hook):
        assert [each[:2] for each in hook.told] == told
        assert hook.told[-1][2] == pytest.approx(2.0)
        assert all(latency_s <= 2.0 for _, _, latency_s in hook.told)


class Stubborn:
    """Does not decode."""

    def __init__(self) -> None:
        self.left = 1

    def __setstate__(self, state: object) -> None:
        raise LookupError


class OneBadSpout(ReplayingSpout):
    """The value of one number does not decode; it is not emitted again."""

    def next_tuple(self) -> None:
        if not self.waiting:
            self.end()
            return
        number = self.waiting.pop(0)
        self.emit([Stubborn() if number == 3 else number], tup_id=number)

    def fail(self, tup_id: object) -> None:
        assert isinstance(tup_id, int)
        self.failed.append(tup_id)


def test_a_value_that_does_not_decode_fails_only_its_tree(capsys: pytest.CaptureFixture[str]) -> None:
    """As between processes."""
    builder = TopologyBuilder("acks")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE", "odd": "ack"})
    spout = builder.add_spout("numbers", OneBadSpout, par=1)
    builder.add_bolt("last", FirstTimeBolt, 1, {spout: Grouping.SHUFFLE})
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished(max_steps=100_000)
        source = simulation.component("numbers")
        assert isinstance(source, OneBadSpout)
        assert (source.acked, source.failed) == ([0, 1, 2, 4, 5], [3])
        assert simulation.counts()["last"].failed == 1
    assert "decoding field 'number' " in capsys.readouterr().err
