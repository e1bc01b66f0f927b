"""The whole path of acks in one process, from emit to `Spout.ack`, against a model of trees without keys."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.api.definition import GroupingDefinition, GroupingKind
from heron.api.plain_batch import PlainBatch
from heron.api.tuple import Tuple, TupleHelper

if TYPE_CHECKING:
    from conftest import BoltTask, Net, SpoutTask

SHUFFLE = GroupingDefinition(GroupingKind.SHUFFLE)
ALL = GroupingDefinition(GroupingKind.ALL)
FIELDS = GroupingDefinition(GroupingKind.FIELDS, ("key",))
LOWEST = GroupingDefinition(GroupingKind.LOWEST)
GROUPINGS = st.sampled_from([SHUFFLE, ALL, FIELDS, LOWEST])

KEPT_AT_MOST = 12


class Scenario:
    """A random scenario: each step of the topology is drawn at random."""

    def __init__(self, net: Net, chance: random.Random) -> None:
        self.net, self.chance = net, chance
        self.roots = 0
        # Each scenario has its own rates, so that some have batches that are acked whole and others have none.
        self.odd = chance.choice([0.0, 0.05, 0.3, 0.6])
        self.bad = chance.choice([0.0, 0.0, 0.1])
        self.joins = chance.choice([0.0, 0.0, 0.5])
        self.anonymous = chance.choice([0.0, 0.0, 0.2])
        self.plain = chance.choice([0.0, 0.3, 0.9])

    def step(self) -> None:  # one branch per thing that may happen
        """Takes one random step."""
        chance, net = self.chance, self.net
        spout, bolt = chance.choice([*net.spouts.values()]), chance.choice([*net.bolts.values()])
        what = chance.choices(
            ["emit", "flush", "data", "work", "kept", "acks", "time", "lost"], [30, 8, 40, 30, 8, 40, 2, 0.3]
        )[0]
        if what == "emit":
            self.emit_roots(spout)
        elif what == "flush":
            spout.emitter.flush()
            bolt.flush()
        elif what == "data":
            net.carry_data(chance.choice(net.tasks), lose=chance.random() < self.odd / 10)
        elif what == "work" and bolt.inbox:
            self.work(bolt)
        elif what == "kept" and bolt.kept:
            self.return_to(bolt)
        elif what == "acks":
            net.carry_acks(chance.choice(net.tasks))
        elif what == "time":
            net.pass_time(chance.uniform(0, net.TIMEOUT_S / 3))
        elif what == "lost":
            net.lose_all()

    def emit_roots(self, spout: SpoutTask) -> None:
        """Emits a few rows or many; some batches are untracked, and some are mixed."""
        anonymous = self.chance.random() < self.anonymous
        if self.chance.random() < self.plain:
            count = self.chance.choice([1, 3, 10, 60])  # the last one has more bytes than a batch may have
            spout.emit_batch([None if anonymous else f"root-{self.roots + number}" for number in range(count)])
            self.roots += count
            return
        for _ in range(self.chance.choice([1, 3, 25])):
            self.emit_root(spout, anonymous=anonymous != (self.chance.random() < self.anonymous / 10))
        if anonymous:
            spout.emitter.flush()

    def emit_root(self, spout: SpoutTask, *, anonymous: bool = False) -> None:
        """Emits a root, or sometimes an untracked tuple."""
        self.roots += 1
        name = None if anonymous else f"root-{self.roots}"
        stream = "unread" if self.chance.random() < 0.03 else "default"
        spout.emit(name, stream, bad=self.chance.random() < self.bad)

    def work(self, bolt: BoltTask) -> None:
        """A bolt processes a batch; between its slices it flushes, or gets a tick."""
        if self.chance.random() < self.plain:
            self.work_plain(bolt)
            return
        slice_rows = self.chance.choice([1, 4, 1000])

        def between() -> None:
            if self.chance.random() < 0.3:
                bolt.flush()
            if self.chance.random() < 0.1:
                self.tick(bolt)

        bolt.process_segment(lambda tup: self.process(bolt, tup), between, slice_rows)
        if self.chance.random() < 0.6:
            bolt.flush()

    def work_plain(self, bolt: BoltTask) -> None:
        """A bolt that passes batches on gets a batch: it emits batches under its rows, and settles ranges of them."""
        chance, odd = self.chance, self.odd
        batch, tuples = bolt.take_plain()
        if "default" in bolt.streams:
            for _ in range(chance.choice([0, 1, 1, 2])):
                places = (
                    [chance.randrange(len(tuples)) for _ in tuples] if chance.random() < odd else [*range(len(tuples))]
                )
                others = [*bolt.kept, Tuple()] if chance.random() < odd else []
                anchors: list[tuple[PlainBatch | Tuple, Sequence[int]]] = [(batch, places)]
                anchors += [(each, (0,)) for each in others]
                bolt.emit_batch(anchors, [*(tuples[place] for place in places), *others])
        if chance.random() < 0.3:
            bolt.flush()
        cut = chance.randrange(len(tuples)) if chance.random() < odd else 0
        for part in (tuples[:cut], tuples[cut:]):
            if part:
                bolt.settle_rows(batch, part, acked=chance.random() >= odd / 3)
            if chance.random() < odd:
                bolt.flush()
        if chance.random() < odd:
            bolt.settle_rows(batch, tuples, acked=chance.random() < 0.5)  # what is settled has no effect
        if chance.random() < odd and len(bolt.kept) < KEPT_AT_MOST:
            bolt.kept.append(tuples[0])  # a later anchor
        if chance.random() < 0.6:
            bolt.flush()

    def process(self, bolt: BoltTask, tup: Tuple) -> None:
        """Does with a tuple what an author may do."""
        chance = self.chance
        if chance.random() < self.joins:
            self.join(bolt, tup)
            return
        if chance.random() >= self.odd:  # as it should be
            for _ in range(chance.choice([0, 1, 1, 2, 3])):
                self.emit(bolt, [tup])
            bolt.emitter.ack(tup)
            return
        if chance.random() < 0.5:
            bolt.emitter.ack(tup)  # emits and further acks follow
        for _ in range(chance.choice([0, 1, 3])):
            self.emit(bolt, self.anchors(bolt, tup))
        for settle in chance.choice([(), ("ack",), ("fail",), ("ack", "ack"), ("fail", "ack"), ("ack", "fail")]):
            getattr(bolt.emitter, settle)(tup)
        if chance.random() < 0.7 and len(bolt.kept) < KEPT_AT_MOST:
            bolt.kept.append(tup)

    def join(self, bolt: BoltTask, tup: Tuple) -> None:
        """Joins every second tuple with the previous one, which often has the same root."""
        bolt.kept.append(tup)
        if len(bolt.kept) % 2 == 0:
            pair = bolt.kept[-2:]
            del bolt.kept[-2:]
            self.emit(bolt, pair)
            for each in pair:
                bolt.emitter.ack(each)

    def anchors(self, bolt: BoltTask, tup: Tuple | None) -> list[Tuple] | None:
        """Random anchors: none, one or several, of this batch, earlier batches or other spouts."""
        known = [*bolt.kept, *([tup] * 3 if tup is not None else ())]
        if not known or self.chance.random() < 0.1:
            return self.chance.choice([None, []])
        return [self.chance.choice(known) for _ in range(self.chance.choice([1, 1, 2, 3]))]

    def emit(self, bolt: BoltTask, anchors: list[Tuple] | None) -> None:
        """Emits a tuple of a bolt."""
        stream = "unread" if self.chance.random() < 0.05 and "unread" in bolt.streams else "default"
        bolt.emit(anchors, stream, bad=self.chance.random() < self.bad / 2)

    def return_to(self, bolt: BoltTask) -> None:
        """Acks, fails or releases tuples of earlier batches."""
        self.emit(bolt, self.anchors(bolt, None))
        tup = bolt.kept.pop(self.chance.randrange(len(bolt.kept)))
        self.chance.choice([bolt.emitter.ack, bolt.emitter.ack, bolt.emitter.fail])(tup)
        if self.chance.random() < 0.2:
            bolt.emitter.ack(tup)
        if self.chance.random() < 0.2:
            bolt.kept.append(tup)

    def tick(self, bolt: BoltTask) -> None:
        """Acks a tick and anchors a tuple to it: neither has an effect."""
        tick = TupleHelper.make_tick_tuple()
        bolt.emitter.ack(tick)
        bolt.emit([tick], "default", bad=False)
        bolt.settle()

    def end(self) -> None:
        """Delivers everything, and acks everything."""
        for bolt in self.net.bolts.values():
            while bolt.kept:
                bolt.emitter.ack(bolt.kept.pop())
            bolt.flush()
        for spout in self.net.spouts.values():
            spout.emitter.flush()
        while any(task.lane.data or task.lane.acks or getattr(task, "inbox", ()) for task in self.net.tasks):
            for task in self.net.tasks:
                self.net.carry_data(task)
                self.net.carry_acks(task)
            for bolt in self.net.bolts.values():
                while bolt.inbox:
                    bolt.process_segment(bolt.emitter.ack, lambda: None, 1000)
                bolt.flush()


@given(seed=st.integers(0, 2**32), groupings=st.tuples(GROUPINGS, GROUPINGS, GROUPINGS), steps=st.integers(20, 300))
@settings(max_examples=60)
def test_every_root_ends_once_as_in_the_model(
    net_class: type[Net],
    seed: int,
    groupings: tuple[GroupingDefinition, GroupingDefinition, GroupingDefinition],
    steps: int,
) -> None:
    """The scenario has fan-outs, all kinds of anchors, late and repeated acks, ticks, losses and expiry."""
    net = net_class(*groupings)
    story = Scenario(net, random.Random(seed))
    for _ in range(steps):
        story.step()
    story.end()
    net.pass_time(2 * net.TIMEOUT_S)
    assert not net.errors
    told = [name for _, name in net.outcomes]
    assert sorted(told, key=repr) == sorted(net.model.names.values(), key=repr)
    assert all(spout.pending_roots.in_flight == 0 for spout in net.spouts.values())
    assert net.ledgers.in_flight() == 0


@pytest.mark.parametrize(
    "grouping", [FIELDS, *(pytest.param(each, marks=pytest.mark.matrix) for each in (SHUFFLE, ALL, LOWEST))]
)
def test_all_trees_complete_without_failures(net_class: type[Net], grouping: GroupingDefinition) -> None:
    """Without losses and fails, no root waits for its timeout."""
    net = net_class(grouping, grouping, grouping)
    story = Scenario(net, random.Random(1))
    story.odd = story.bad = story.joins = 0.0
    for _ in range(150):
        for spout in net.spouts.values():
            story.emit_root(spout)
        for task in net.tasks:
            net.carry_data(task)
            net.carry_acks(task)
        for bolt in net.bolts.values():
            while bolt.inbox:
                story.work(bolt)
    story.end()
    assert {how for how, _ in net.outcomes} == {"ack"}
    assert len(net.outcomes) == len(net.model.names)
