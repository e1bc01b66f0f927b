"""AutoScale: lines at a rate that changes; a bolt of known cost splits them, another of known cost counts the words.

DS2's word count. A bolt waits for its cost instead of computing: so the topology can have more busy tasks than the
machine has processors, and the optimum is known.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_record import STOP_FILE, TICK_S, config_of, options

from heron.api import Bolt, CounterState, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple

WORD = "word"  # the key of the position
WORDS = 10  # in a line
DIFFERENT = 5000  # words: enough to give every task the same share of them
LINE_S, WORD_S = 0.040, 0.004
WORD_LENGTH = 100  # bytes, so that a few seconds of missing capacity are back pressure
RATE_FILE = "rate"
BEHIND_S = 0.1  # a source that was held back does not catch up: its rate is what it is offered


class Lines(Spout):
    """Emits at the rate in the file ``rate``."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        folder = Path(config["folder"])
        self.stop, self.rate_file = folder / STOP_FILE, folder / RATE_FILE
        self.done = context.keyed_state("done", CounterState[str])
        self.due_s = self.read_s = 0.0
        self.rate = 1.0

    def next_tuple(self) -> None:
        now_s = time.monotonic()
        if now_s >= self.read_s:
            self.read_s = now_s + TICK_S
            if self.stop.exists():
                self.stop.with_name("sent").write_text(str(self.done.get(WORD)), encoding="utf-8")
                self.end()
                return
            self.rate = float(self.rate_file.read_text(encoding="utf-8"))
        self.due_s = max(self.due_s, now_s - BEHIND_S)
        if self.due_s <= now_s:
            self.due_s += 1.0 / self.rate
            first = self.done.get(WORD)
            self.emit([" ".join(f"{number % DIFFERENT:0{WORD_LENGTH}d}" for number in range(first, first + WORDS))])
            self.done.add(WORD, WORDS)


class Cost:
    """Waits of known length. What a wait was too long is taken from the next ones, so the mean is exact."""

    def __init__(self, cost_s: float) -> None:
        self.cost_s = cost_s
        self.late_s = 0.0

    def spend(self) -> None:
        """Wait for the cost of one tuple."""
        start_s, wait_s = time.monotonic(), self.cost_s - self.late_s
        if wait_s > 0:
            time.sleep(wait_s)
        self.late_s += time.monotonic() - start_s - self.cost_s


class Split(Bolt):
    """Emits the words of each line."""

    outputs = ("word",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.cost = Cost(LINE_S)

    def process(self, tup: Tuple) -> None:
        self.cost.spend()
        for word in tup.values[0].split():
            self.emit([word])


class Count(Bolt):
    """Counts in state, and records ``monotonic seconds, words since the last record`` in a file of its task."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.cost = Cost(WORD_S)
        self.counts = context.keyed_state("counts", CounterState[str])
        self.path = Path(config["folder"]) / f"last-{context.get_task_id()}"
        self.file = self.path.with_suffix(".done").open("a", encoding="utf-8")
        self.next_s, self.done = 0.0, 0

    def process(self, tup: Tuple) -> None:
        self.cost.spend()
        self.counts.add(tup.values[0])
        self.done += 1
        if (now_s := time.monotonic()) >= self.next_s:
            self.next_s = now_s + TICK_S
            self.note(now_s)

    def finish(self) -> None:
        self.path.with_suffix(".counted").write_text(str(sum(count for _, count in self.counts.items())))

    def close(self) -> None:
        self.note(time.monotonic())
        self.file.close()

    def note(self, now_s: float) -> None:
        """Write the words since the last record."""
        self.file.write(f"{now_s} {self.done}\n")
        self.file.flush()
        self.done = 0


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("AutoScale")
    builder.set_config(config_of(chosen))
    lines = builder.add_spout("lines", Lines, par=1)
    split = builder.add_bolt("split", Split, par=1, inputs={lines: Grouping.SHUFFLE})
    builder.add_bolt("last", Count, par=1, inputs={split: Grouping.fields("word")})
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
