"""Two pipelines in one topology; the bolt of one becomes a hundred times too slow for a while."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

BUCKETS_PER_S = 4
SLOW_CALL_S = 0.0002
TEXT = "x" * 100


class Numbers(Spout):
    """Emits as fast as possible for some seconds."""

    outputs = ("number", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.until_s = time.monotonic() + config["for"]
        self.number = 0

    def next_tuple(self) -> None:
        """Emits one."""
        self.emit([self.number, TEXT])
        self.number += 1
        if self.number % 256 == 0 and time.monotonic() > self.until_s:
            self.end()


class Quick(Bolt):
    """Counts tuples by quarters of a second of the machine's monotonic clock."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no count."""
        self.config, self.context = config, context
        self.buckets: Counter[int] = Counter()
        self.total = 0
        self.slow_s: list[float] = []

    def process(self, tup: Tuple) -> None:
        """Counts one."""
        self.buckets[int(time.monotonic() * BUCKETS_PER_S)] += 1
        self.total += tup.values[0]

    def finish(self) -> None:
        """Writes the counts and the slow times."""
        rows = [self.total, sorted(self.buckets.items()), self.slow_s]
        write_result(self.config["out"], self.context, rows)


class Straggler(Quick):
    """Fast for a while, then slow, then fast again."""

    def process(self, tup: Tuple) -> None:
        """Counts a tuple at the present speed."""
        super().process(tup)
        now_s = time.monotonic()
        if not self.slow_s:
            slow_at_s = now_s + self.config["quick"]
            self.slow_s = [slow_at_s, slow_at_s + self.config["slow"]]
        if self.slow_s[0] <= now_s < self.slow_s[1]:
            time.sleep(SLOW_CALL_S)


if __name__ == "__main__":
    options = arguments(slow=3.0, drop=0)
    quick_s, again_s = 2.0, 4.0
    config = {
        api_constants.TOPOLOGY_STMGRS: 2,
        api_constants.TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE: bool(options.drop),
        "out": options.out,
        "quick": quick_s,
        "slow": options.slow,
        "for": quick_s + options.slow + again_s,
    }
    builder = TopologyBuilder("straggler")
    builder.set_config(config)
    lines = builder.add_spout("lines", Numbers, par=1)
    builder.add_bolt("work", Straggler, par=1, inputs={lines: Grouping.SHUFFLE})
    clicks = builder.add_spout("clicks", Numbers, par=1)
    builder.add_bolt("store", Quick, par=1, inputs={clicks: Grouping.SHUFFLE})
    builder.build_and_submit()
