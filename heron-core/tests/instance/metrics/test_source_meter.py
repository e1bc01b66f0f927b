"""A latency that is held in a model of a source, a spout that sheds, and bolts: what stalls and loads do to it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import pytest

from heron.driver_kit.keep_controller import PERIOD_S, LatencyController
from heron.instance.metrics.source_meter import SourceCounts, SourceMeter

STEP_S = 0.02
CAPACITY = 1000.0
FASTEST = 20_000.0
"""What the spout can emit or shed per second."""

Sample = tuple[float, float, float]
"""Seconds, the kept share, and how long a tuple waits that arrives now."""


@dataclass
class Part:
    """Tuples that were emitted together."""

    emitted_s: float
    tuples: float


class Overloaded:
    """A topology whose bolts take `CAPACITY` tuples per second; a tree takes `tree_s` beside its wait.

    With `acks` the spout hears of the end of roots, with `backlog` it knows what waits at the source. At most `room_s`
    of work waits in the topology: then back pressure holds the spout up.
    """

    def __init__(self, target_s: float, *, acks: bool, backlog: bool, room_s: float, tree_s: float = 0.02) -> None:
        self.target_s, self.acks, self.knows, self.room_s, self.tree_s = target_s, acks, backlog, room_s, tree_s
        self.controller = LatencyController(target_s)
        self.now_s = self.followed_s = 0.0
        self.waiting = self.queued = 0.0
        self.queue: deque[Part] = deque()
        self.ending: deque[tuple[float, Part]] = deque()
        self.kept = self.shed = self.in_flight = self.ended = self.ended_s = self.held_up_s = 0.0
        self.meter = SourceMeter(self.counts())

    def run(self, seconds: float, offered: float, capacity: float = CAPACITY, *, stalls: str = "") -> list[Sample]:
        """Passes this time, in which `stalls` (``spout``, ``bolts`` or both) stand still."""
        samples = []
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            self.waiting += offered * STEP_S
            if "spout" not in stalls:
                self.emit(capacity)
            if "bolts" not in stalls:
                self.process(capacity * STEP_S)
            if "spout" not in stalls and self.now_s - self.followed_s > PERIOD_S - STEP_S / 2:
                self.follow()
                samples.append((self.now_s, self.controller.share, self.queued / capacity + self.waiting / offered))
        return samples

    def emit(self, capacity: float) -> None:
        room = max(0.0, self.room_s * capacity - self.queued) / self.controller.share
        self.held_up_s += STEP_S * (room < self.waiting)
        emitted = min(self.waiting, room, FASTEST * STEP_S)
        kept = emitted * self.controller.share
        self.waiting -= emitted
        self.shed += emitted - kept
        self.kept += kept
        self.in_flight += kept
        self.queued += kept
        self.queue.append(Part(self.now_s, kept))

    def process(self, most: float) -> None:
        while self.queue and most > 1e-9:
            part = self.queue[0]
            taken = min(most, part.tuples)
            most -= taken
            part.tuples -= taken
            self.queued -= taken
            self.ending.append((self.now_s + self.tree_s, Part(part.emitted_s, taken)))
            if part.tuples < 1e-9:
                self.queue.popleft()
        while self.ending and self.ending[0][0] < self.now_s + STEP_S / 2:
            _, part = self.ending.popleft()
            self.in_flight -= part.tuples
            self.ended += part.tuples
            self.ended_s += part.tuples * (self.now_s - part.emitted_s)

    def follow(self) -> None:
        elapsed_s, self.followed_s = self.now_s - self.followed_s, self.now_s
        self.controller.follow(self.meter.take(self.counts(), elapsed_s, self.target_s))

    def counts(self) -> SourceCounts:
        return SourceCounts(
            kept=round(self.kept),
            shed=round(self.shed),
            in_flight=round(self.in_flight) if self.acks else 0,
            ended=round(self.ended) if self.acks else 0,
            ended_s=self.ended_s if self.acks else 0.0,
            held_up_s=self.held_up_s,
            backlog=self.waiting if self.knows else None,
        )


MEASURES = {
    "acks": {"acks": True, "backlog": False, "room_s": 1e9},
    "backlog": {"acks": False, "backlog": True, "room_s": 0.2},
    "both": {"acks": True, "backlog": True, "room_s": 0.5},
}

measured = pytest.mark.parametrize("measure", MEASURES)
at_targets = pytest.mark.parametrize("target_s", [1.0, 5.0])
at_loads = pytest.mark.parametrize("load", [2, 10])


def overloaded(measure: str, target_s: float, load: float) -> Overloaded:
    """A topology that has been at its target for a while."""
    topology = Overloaded(target_s, **MEASURES[measure])  # type: ignore[arg-type]  # as above
    topology.run(30 * target_s, load * CAPACITY)
    return topology


def settled_s(samples: list[Sample], most_s: float) -> float:
    """Seconds until the wait stays below this."""
    return max((now_s for now_s, _, wait_s in samples if wait_s > most_s), default=samples[0][0]) - samples[0][0]


def used(samples: list[Sample], load: float) -> float:
    """How much of the capacity is asked for, on average."""
    return sum(min(1.0, share * load) for _, share, _ in samples) / len(samples)


@measured
@at_targets
@at_loads
def test_a_wait_stays_at_its_target_without_swinging(measure: str, target_s: float, load: int) -> None:
    """Within a tenth, beside what the spout cannot know; and all that the bolts can take is kept."""
    topology = overloaded(measure, target_s, load)
    samples = topology.run(20, load * CAPACITY)
    unknown_s = MEASURES[measure]["room_s"] if measure == "backlog" else 0.0
    assert all(-0.1 * target_s < wait_s - target_s < 0.1 * target_s + unknown_s for _, _, wait_s in samples)
    assert used(samples, load) == pytest.approx(1, abs=0.02)
    shares = [share for _, share, _ in samples]
    assert sum(share != before for before, share in pairwise(shares)) < len(shares) / 10


@measured
@at_targets
@at_loads
def test_an_overload_that_begins_is_held_at_once(measure: str, target_s: float, load: int) -> None:
    """Half a target of it is let in before it is known to be no burst."""
    topology = Overloaded(target_s, **MEASURES[measure])  # type: ignore[arg-type]  # as above
    assert {share for _, share, _ in topology.run(5, 0.9 * CAPACITY)} == {1.0}
    samples = topology.run(30, load * CAPACITY)
    assert settled_s(samples, 1.5 * target_s) <= 2.5
    assert max(wait_s for _, _, wait_s in samples) <= 2.6 * target_s


@measured
@at_targets
@at_loads
@pytest.mark.parametrize("stalls", ["spout", "bolts", "spout and bolts"])
def test_after_a_stall_the_wait_returns_and_most_is_kept(measure: str, target_s: float, load: int, stalls: str) -> None:
    """Three seconds: what has come meanwhile is shed, and then as much is kept as before."""
    topology = overloaded(measure, target_s, load)
    topology.run(3, load * CAPACITY, stalls=stalls)
    samples = topology.run(20, load * CAPACITY)
    assert settled_s(samples, 1.5 * target_s) <= 5
    assert used(samples[:100], load) > 0.6
    assert used(samples[100:], load) > 0.9


@measured
@at_targets
@at_loads
def test_half_of_the_capacity_is_half_of_what_is_kept(measure: str, target_s: float, load: int) -> None:
    """The wait doubles at once, and has to shrink by a target."""
    topology = overloaded(measure, target_s, load)
    samples = topology.run(30, load * CAPACITY, CAPACITY / 2)
    assert settled_s(samples, 1.5 * target_s) <= 2 + target_s
    assert used(samples[-100:], load) == pytest.approx(0.5, abs=0.02)
    assert used(topology.run(20, load * CAPACITY), load) > 0.95, "and back"


@measured
@at_targets
@at_loads
def test_nothing_is_shed_below_the_capacity(measure: str, target_s: float, load: int) -> None:
    """Once what waits has shrunk: of ten times the capacity, that are 50 times a second's work for a target of 5 s."""
    topology = overloaded(measure, target_s, load)
    samples = topology.run(10 * target_s, 0.8 * CAPACITY)
    shedding = [(now_s, wait_s) for now_s, share, wait_s in samples if share < 1]
    assert len(shedding) * PERIOD_S < 8 * target_s
    assert {share for _, share, _ in topology.run(60, 0.95 * CAPACITY)} == {1.0}


@pytest.mark.parametrize("tree_s", [0.02, 0.1])
def test_a_burst_below_the_capacity_is_no_overload(tree_s: float) -> None:
    """Ninety times as many roots are in flight before the first of the burst ends."""
    topology = Overloaded(1.0, acks=True, backlog=False, room_s=1e9, tree_s=tree_s)
    topology.run(10, 10)
    assert {share for _, share, _ in topology.run(5, 0.9 * CAPACITY)} == {1.0}


def test_an_overload_of_the_past_sheds_nothing() -> None:
    """After a minute in which nothing came, no wait is known any more."""
    topology = overloaded("acks", 1.0, 10)
    topology.run(60, 1e-9)
    assert topology.controller.share == 1.0
    assert {share for _, share, _ in topology.run(5, 0.9 * CAPACITY)} == {1.0}


def test_a_spout_that_knows_nothing_is_seldom_held_up() -> None:
    """At most once, without a backlog: it is held up for less than a tenth of its time, or little more."""
    topology = Overloaded(1.0, acks=False, backlog=False, room_s=0.3)
    topology.run(20, 2 * CAPACITY)
    before_s = topology.held_up_s
    samples = topology.run(20, 2 * CAPACITY)
    assert 0.5 < topology.held_up_s - before_s < 3
    assert used(samples, 2) > 0.8


def test_roots_that_never_end_say_nothing_about_the_others() -> None:
    """They are in flight, and nobody waits behind them."""
    meter = SourceMeter(SourceCounts())
    for period in range(1, 50):
        counts = SourceCounts(kept=100 * period, in_flight=5000, ended=100 * period, ended_s=1.0 * period)
        assert meter.take(counts, PERIOD_S, 1.0).delay_s == pytest.approx(4 * 0.01)
