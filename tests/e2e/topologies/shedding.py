"""A spout that sheds down to a rate or a latency, a bolt that passes on, and bolts that add weights up.

With ``--capacity`` each of the bolts that add up takes this many tuples per second. It sleeps in between, so the pace
does not depend on the processors.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

LEVELS = 3
VALUES = 5
CREDIT_S = 0.25
"""A bolt that comes late makes up for this time; what is more, the machine has taken from it."""


class OfferingSpout(Spout):
    """Offers numbers at a steady pace. Keeps the ids of which it has not heard."""

    outputs = ("key", "level", "number", "due_s")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out, self.context, self.tuples = config["out"], context, config["tuples"]
        self.keys, self.each_s = config["keys"], 1 / config["pace"]
        self.open: set[object] = set()
        self.began_s, self.made = time.monotonic(), 0

    def next_tuple(self) -> None:
        """Offers a number if it is due."""
        if self.made == self.tuples:
            self.end()
            return
        due_s = self.began_s + self.made * self.each_s
        if due_s > time.monotonic():
            return
        number = self.made
        self.made += 1
        self.open.add(number)
        self.emit([f"key {number % self.keys}", number % LEVELS, number, due_s], tup_id=number)

    def backlog(self) -> float:
        """How many numbers are due, and not offered."""
        due: float = min(self.tuples, (time.monotonic() - self.began_s) / self.each_s)
        return max(0.0, due - self.made)

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # as in the base class
        """Forgets a number."""
        self.open.remove(tup_id)

    def close(self) -> None:
        """Writes how many numbers were offered, and of how many the end is unknown."""
        write_result(self.out, self.context, [self.made, len(self.open)])


class PassBolt(Bolt):
    """Passes each tuple on."""

    outputs = ("key", "level", "number", "due_s")

    def process(self, tup: Tuple) -> None:
        """Emits the same values."""
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)


class WeighBolt(Bolt):
    """Adds up the weights of each key, and what the variance of their sum needs.

    Of the last two thirds of the numbers it adds up the values of each key and of each level, and notes how late they
    are.
    """

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with nothing."""
        self.out, self.context = config["out"], context
        self.each_s = 1 / config["capacity"] if config["capacity"] else 0.0
        self.next_s = 0.0
        self.first = config["tuples"] // 3
        self.kept, self.weights = Counter[str](), Counter[str]()
        self.variance = 0.0
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.least: dict[str, float] = {}
        self.levels = [[0.0, 0.0] for _ in range(LEVELS)]
        self.lates: list[float] = []
        self.lost_s = 0.0

    def process(self, tup: Tuple) -> None:
        """Adds a tuple."""
        key, level, number, due_s = tup.values
        self.keep_pace()
        self.kept[key] += 1
        self.weights[key] += tup.weight  # type: ignore[assignment]  # a counter of floats
        self.variance += tup.weight * (tup.weight - 1)
        if number >= self.first:
            value = 1 + number % VALUES
            self.sums[key] += tup.weight * value
            self.least[key] = min(tup.weight, self.least.get(key, tup.weight))
            self.levels[level][0] += tup.weight * value
            self.levels[level][1] += tup.weight * (tup.weight - 1) * value * value
            self.lates.append(time.monotonic() - due_s)
        self.ack(tup)

    def keep_pace(self) -> None:
        """Waits until the next tuple may be taken."""
        if self.each_s:
            self.next_s = max(self.next_s, time.monotonic() - CREDIT_S) + self.each_s
            if (wait_s := self.next_s - time.monotonic()) > 0:
                time.sleep(wait_s)
                self.lost_s += max(0.0, time.monotonic() - self.next_s - CREDIT_S)

    def finish(self) -> None:
        """Writes the sums."""
        window = [self.sums, self.least, self.levels, self.lates, self.lost_s]
        write_result(self.out, self.context, [self.kept, self.weights, self.variance, window])


if __name__ == "__main__":
    options = arguments(tuples=30_000, mode="ATMOST_ONCE", shed="{}", pace=10_000, keys=100, capacity=0)
    builder = TopologyBuilder("shedding")
    own = {name: getattr(options, name) for name in ("out", "tuples", "pace", "keys", "capacity")}
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode, **own})
    shed = {api_constants.TOPOLOGY_SHED: json.loads(options.shed)}
    offer = builder.add_spout("offer", OfferingSpout, par=1, config=shed)
    passing = builder.add_bolt("pass", PassBolt, par=2, inputs={offer: Grouping.SHUFFLE})
    builder.add_bolt("weigh", WeighBolt, par=2, inputs={passing: Grouping.fields("key")})
    builder.build_and_submit()
