"""Numbers at full speed between two containers, until there is a file ``stop`` among the results.

Each task of ``tally`` writes how many numbers of each spout task it has received, their sum, and in which seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants
from heron.clock import monotonic_s

LOOKS_EVERY = 2000


class NumberSpout(Spout):
    """Emits numbers without a pause; with acks, each number has itself as id."""

    outputs = ("task", "number")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out, self.context = config["out"], context
        self.stop = Path(self.out, "stop")
        self.acked = config["acked"]
        self.task = context.get_task_id()
        self.number = self.failed = 0

    def next_tuple(self) -> None:
        """Emits some numbers; looks for the file now and then."""
        if self.number % LOOKS_EVERY == 0 and self.stop.exists():
            self.end()
            return
        for _ in range(10):
            self.emit([self.task, self.number], tup_id=self.number if self.acked else None)
            self.number += 1

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Counts a number that was lost."""
        self.failed += 1

    def close(self) -> None:
        """Writes how many numbers it has emitted, and how many have failed."""
        write_result(self.out, self.context, [[self.number, self.failed]])


class TallyBolt(Bolt):
    """Counts numbers and their sum by spout task, and notes the seconds in which they come."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out, self.context = config["out"], context
        self.counts: Counter[int] = Counter()
        self.sums: Counter[int] = Counter()
        self.seconds: Counter[int] = Counter()

    def process(self, tup: Tuple) -> None:
        """Counts a number."""
        task, number = tup.values
        self.counts[task] += 1
        self.sums[task] += number
        self.seconds[int(monotonic_s())] += 1
        self.ack(tup)

    def close(self) -> None:
        """Writes the counts and the seconds."""
        tallies = [[task, count, self.sums[task]] for task, count in self.counts.items()]
        write_result(self.out, self.context, [tallies, sorted(self.seconds)])


if __name__ == "__main__":
    options = arguments(mode=api_constants.TopologyReliabilityMode.ATMOST_ONCE.value)
    builder = TopologyBuilder("flooding")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode,
            "out": options.out,
            "acked": options.mode == api_constants.TopologyReliabilityMode.ATLEAST_ONCE,
        }
    )
    numbers = builder.add_spout("numbers", NumberSpout, par=2)
    builder.add_bolt("tally", TallyBolt, par=2, inputs={numbers: Grouping.SHUFFLE})
    builder.build_and_submit()
