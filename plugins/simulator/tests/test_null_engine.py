"""The null engine gives the engine's results and does nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import cycle
from typing import Any

import pytest

from heron.api import Bolt, Grouping, Spout, Stream, TopologyBuilder, TopologyContext, Tuple
from heron.errors import UsageError
from heron_simulator.null_engine import run_null_engine

LINES = ["the heron and the ibis", "the end"]


class LineSpout(Spout):
    """Emits lines forever, or the configured number."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.lines = cycle(LINES)
        self.left = config.get("lines", -1)

    def next_tuple(self) -> None:
        if self.left == 0:
            self.end()
            return
        self.left -= 1
        self.emit([next(self.lines)])


class SplitBolt(Bolt):
    """Splits lines."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        for word in tup.values[0].split():
            self.emit([word], anchors=[tup])
        self.ack(tup)


class CountBolt(Bolt):
    """Counts words."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: Counter[str] = Counter()
        self.sources: set[tuple[str, int]] = set()

    def process(self, tup: Tuple) -> None:
        self.counts[tup.values[0]] += 1
        self.sources.add((tup.component, tup.task))


def chain(lines: int = -1) -> TopologyBuilder:
    """The three components of FileReadWordCount."""
    builder = TopologyBuilder("chain")
    builder.set_config({"lines": lines})
    spout = builder.add_spout("lines", LineSpout, par=2)
    split = builder.add_bolt("split", SplitBolt, 3, {spout: Grouping.SHUFFLE})
    builder.add_bolt("count", CountBolt, 4, {split: Grouping.fields("word")})
    return builder


def counts(run_components: Mapping[str, tuple[Spout | Bolt, ...]]) -> list[Counter[str]]:
    """The counts of each counting task."""
    return [bolt.counts for bolt in run_components["count"] if isinstance(bolt, CountBolt)]


def test_chain_counts_exactly() -> None:
    """A rate without correct counts is worthless: each word goes to one task, and all tasks get words."""
    run = run_null_engine(chain(lines=30), calls=10_000)
    found = counts(run.components)
    assert sum(found, Counter()) == {"the": 90, "heron": 30, "and": 30, "ibis": 30, "end": 30}
    assert sum(map(len, found)) == 5, "no word is counted by two tasks"
    bolt = next(bolt for bolt in run.components["count"] if isinstance(bolt, CountBolt) and "the" in bolt.counts)
    assert bolt.sources == {("split", 3), ("split", 4), ("split", 5)}


def test_it_makes_the_requested_number_of_calls() -> None:
    """With one tuple per call, the bolt receives as many tuples."""
    builder = TopologyBuilder("pair")
    spout = builder.add_spout("lines", LineSpout, par=1)
    builder.add_bolt("count", CountBolt, 1, {spout: Grouping.fields("line")})
    run = run_null_engine(builder, calls=2500)
    assert run.calls == 2500
    assert run.elapsed_s > 0
    assert counts(run.components) == [Counter({LINES[0]: 1250, LINES[1]: 1250})]


def test_stops_when_the_time_is_up() -> None:
    """Benchmarks measure for a fixed time."""
    assert 0.02 <= run_null_engine(chain(), seconds=0.02).elapsed_s < 5


def test_there_may_be_several_consumers_or_none() -> None:
    """Several are a fan-out; none is the benchmark of a spout alone."""
    builder = TopologyBuilder("fan_out")
    spout = builder.add_spout("lines", LineSpout, par=1)
    builder.add_bolt("count", CountBolt, 2, {spout: Grouping.ALL})
    builder.add_bolt("more", CountBolt, 1, {spout: Grouping.SHUFFLE})
    run = run_null_engine(builder, calls=10)
    assert [found.total() for found in counts(run.components)] == [10, 10]
    alone = TopologyBuilder("alone")
    alone.add_spout("lines", LineSpout, par=1)
    assert run_null_engine(alone, calls=10).calls == 10


def test_unsupported_topologies_are_rejected() -> None:
    """A yardstick that silently dropped tuples would be wrong."""
    builder = TopologyBuilder("custom")
    spout = builder.add_spout("lines", LineSpout, par=1, optional_outputs=[Stream(["x"], "other")])
    builder.add_bolt("count", CountBolt, 2, {spout: Grouping.SHUFFLE})
    with pytest.raises(UsageError, match="supports only the default stream"):
        run_null_engine(builder, calls=1)
    with pytest.raises(UsageError, match="no limit is given"):
        run_null_engine(builder)
    grouped = TopologyBuilder("grouped")
    spout = grouped.add_spout("lines", LineSpout, par=1)
    grouped.add_bolt("count", CountBolt, 2, {spout: Grouping.LOWEST})
    with pytest.raises(UsageError, match="does not support lowest grouping"):
        run_null_engine(grouped, calls=1)
