"""A spout that sheds down to a rate, a bolt that passes on, and bolts that add weights up."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

KEYS = 100
PER_S = 10_000


class OfferingSpout(Spout):
    """Offers numbers at a steady pace. Keeps the ids of which it has not heard."""

    outputs = ("key", "number")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out, self.context, self.tuples = config["out"], context, config["tuples"]
        self.open: set[object] = set()
        self.began_s, self.made = time.monotonic(), 0

    def next_tuple(self) -> None:
        """Offers a number if it is due."""
        if self.made == self.tuples:
            self.end()
            return
        if self.made > (time.monotonic() - self.began_s) * PER_S:
            return
        number = self.made
        self.made += 1
        self.open.add(number)
        self.emit([f"key {number % KEYS}", number], tup_id=number)

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # as in the base class
        """Forgets a number."""
        self.open.remove(tup_id)

    def close(self) -> None:
        """Writes how many numbers were offered, and of how many the end is unknown."""
        write_result(self.out, self.context, [self.made, len(self.open)])


class PassBolt(Bolt):
    """Passes each tuple on."""

    outputs = ("key", "number")

    def process(self, tup: Tuple) -> None:
        """Emits the same values."""
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)


class WeighBolt(Bolt):
    """Adds up the weights of each key, and what the variance of their sum needs."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with nothing."""
        self.out, self.context = config["out"], context
        self.kept, self.weights = Counter[str](), Counter[str]()
        self.variance = 0.0

    def process(self, tup: Tuple) -> None:
        """Adds a tuple."""
        key = tup.values[0]
        self.kept[key] += 1
        self.weights[key] += tup.weight  # type: ignore[assignment]  # a counter of floats
        self.variance += tup.weight * (tup.weight - 1)
        self.ack(tup)

    def finish(self) -> None:
        """Writes the sums."""
        write_result(self.out, self.context, [self.kept, self.weights, self.variance])


if __name__ == "__main__":
    options = arguments(tuples=30_000, mode="ATMOST_ONCE", shed="{}")
    builder = TopologyBuilder("shedding")
    builder.set_config(
        {api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode, "out": options.out, "tuples": options.tuples}
    )
    shed = {api_constants.TOPOLOGY_SHED: json.loads(options.shed)}
    offer = builder.add_spout("offer", OfferingSpout, par=1, config=shed)
    passing = builder.add_bolt("pass", PassBolt, par=2, inputs={offer: Grouping.SHUFFLE})
    builder.add_bolt("weigh", WeighBolt, par=2, inputs={passing: Grouping.fields("key")})
    builder.build_and_submit()
