"""Skewed words from two tasks until there is a file ``stop``, and bolts that ack, count and write the counts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

MAKES_UP_S = 0.25
"""The most that a bolt makes up for."""


class WordSpout(Spout):
    """Emits some hundreds of words a second, the first ones most often."""

    outputs = ("word", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.stop = Path(config["out"], "stop")
        self.number, self.words, self.pause_s = context.get_task_index(), config["words"], config["pause"]
        self.next_s = time.monotonic()

    def next_tuple(self) -> None:
        """Emits a few words, then waits a little."""
        if self.stop.exists():
            self.end()
            return
        for _ in range(5):
            self.number += 1
            self.emit([f"word {self.number % (1 + self.number % self.words)}", "x" * 20], self.number)
        self.next_s += self.pause_s
        time.sleep(max(0.0, self.next_s - time.monotonic()))


class CountBolt(Bolt):
    """Counts by word, with a wait for each; an empty file ``flows`` says that words arrive.

    What a sleep takes too long, the next ones are shorter, so the pace does not depend on the processors.
    """

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Has seen nothing."""
        self.out, self.context, self.wait_s = config["out"], context, config["wait"]
        self.counts: Counter[str] = Counter()
        self.late_s = 0.0

    def process(self, tup: Tuple) -> None:
        """Counts one."""
        if not self.counts:
            Path(self.out, "flows").touch()
        before_s = time.monotonic()
        if (wait_s := self.wait_s - self.late_s) > 0:
            time.sleep(wait_s)
        self.late_s = min(MAKES_UP_S, self.late_s + time.monotonic() - before_s - self.wait_s)
        self.counts[tup.values[0]] += 1
        self.ack(tup)

    def finish(self) -> None:
        """Writes the counts."""
        write_result(self.out, self.context, sorted(self.counts.items()))


if __name__ == "__main__":
    options = arguments(mode="ATLEAST_ONCE", words=7, pause=0.02, wait=0.0, tasks=2)
    builder = TopologyBuilder("captured")
    own = {name: getattr(options, name) for name in ("out", "words", "pause", "wait")}
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode, **own})
    words = builder.add_spout("words", WordSpout, par=2)
    builder.add_bolt("count", CountBolt, par=options.tasks, inputs={words: Grouping.fields("word")})
    builder.build_and_submit()
