"""A rolling top ten of the topics that were mentioned most in the last seconds. Tick tuples move the window.

Run it:  heron run examples/trends.py -- --mentions 30000
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heron.api import Bolt, Grouping, Spout, Stream, TopologyBuilder, TopologyContext, Tuple, api_constants

SLOT_S = 0.5  # the window moves by one slot of this length ...
SLOTS = 4  # ... and contains this number of slots
RATE = 5_000  # mentions per second and spout task
SPOUTS = 2
TOPICS = [f"#topic{number}" for number in range(40)]


def mentions(seed: int, number: int) -> Iterator[str]:
    """Yield the mentions of one spout task, always the same for one seed. The most popular topic changes over time."""
    chance = random.Random(seed)
    for position in range(number):
        favourite = position * len(TOPICS) // number
        yield TOPICS[favourite] if chance.random() < 0.2 else chance.choice(TOPICS)


class MentionSpout(Spout):
    """Emits mentions at a steady rate."""

    outputs = ("topic",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Give each task its own mentions."""
        self.mentions = mentions(context.get_task_index(), config["mentions"])
        self.start = time.monotonic()
        self.emitted = 0

    def next_tuple(self) -> None:
        """Emit the next mention if it is due. Otherwise return at once, so that nothing else waits."""
        if self.emitted > (time.monotonic() - self.start) * RATE:
            return
        for topic in self.mentions:
            self.emit([topic])
            self.emitted += 1
            return
        self.end()


class RollingCountBolt(Bolt):
    """Counts per slot of time. The rolling count of a topic is the sum over the slots of the window."""

    outputs = (Stream(fields=["top"], name="rolling"), Stream(fields=["topic", "count"], name="total"))

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start with one empty slot; the deque drops the oldest slot."""
        self.slots: deque[Counter[str]] = deque([Counter()], maxlen=SLOTS)
        self.total: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Count a mention in the present slot."""
        self.slots[-1][tup.values[0]] += 1
        self.total[tup.values[0]] += 1

    def process_tick(self, tup: Tuple) -> None:
        """End a slot: emit the rolling counts and open the next slot."""
        rolling = sum(self.slots, Counter())
        self.emit([rolling.most_common(10)], stream="rolling")
        self.slots.append(Counter())

    def finish(self) -> None:
        """Emit the total mentions of each topic, for the check."""
        for pair in self.total.items():
            self.emit(pair, stream="total")


class RankBolt(Bolt):
    """Merges the top tens of the counting tasks and prints one."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Store the number of mentions."""
        self.number = config["mentions"]
        self.tops: dict[int, list[tuple[str, int]]] = {}  # by counting task
        self.total: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Store the top ten of a task, or a total."""
        if tup.stream == "rolling":
            self.tops[tup.task] = tup.values[0]
        else:
            topic, count = tup.values
            self.total[topic] += count

    def process_tick(self, tup: Tuple) -> None:
        """Print the top ten of the last seconds."""
        ranked = sorted((pair for top in self.tops.values() for pair in top), key=lambda pair: (-pair[1], pair[0]))
        if ranked:
            print("trending:", ", ".join(f"{topic} {count}" for topic, count in ranked[:10]), flush=True)

    def finish(self) -> None:
        """Generate the mentions again and compare the totals."""
        expected = Counter(topic for seed in range(SPOUTS) for topic in mentions(seed, self.number))
        if self.total != expected:
            message = f"{self.total.total()} mentions were counted, {expected.total()} were made"
            raise ValueError(message)
        print(f"trends verified: {self.total.total()} mentions of {len(self.total)} topics", flush=True)


def trends(arguments: Sequence[str] = ()) -> TopologyBuilder:
    """Build the topology for these command-line arguments."""
    parser = argparse.ArgumentParser(prog="trends.py", description="shows a rolling top ten")
    parser.add_argument("--mentions", type=int, default=15_000, help="per spout task (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.mentions < 1:
        parser.error(f"--mentions {options.mentions} is below 1")

    every_slot = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: SLOT_S}
    builder = TopologyBuilder("trends")
    builder.set_config({"mentions": options.mentions})
    spout = builder.add_spout("mentions", MentionSpout, par=SPOUTS)
    by_topic = {spout: Grouping.fields("topic")}
    rolling = builder.add_bolt("rolling", RollingCountBolt, par=2, inputs=by_topic, config=every_slot)
    to_one = {rolling["rolling"]: Grouping.GLOBAL, rolling["total"]: Grouping.GLOBAL}
    builder.add_bolt("rank", RankBolt, par=1, inputs=to_one, config=every_slot)
    return builder


if __name__ == "__main__":
    trends(sys.argv[1:]).build_and_submit()
