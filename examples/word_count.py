"""Counts the words of a text: lines -> words -> counts -> a report that checks itself.

Run it:  heron run examples/word_count.py -- --text BOOK.txt --out counts.tsv --loops 3
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from pydoc_data import topics
from typing import Any

from heron.api import (
    Bolt,
    Grouping,
    Spout,
    Stream,
    TopologyBuilder,
    TopologyContext,
    TopologyReliabilityMode,
    Tuple,
    api_constants,
)

TOP = 20
DEFAULT_LOOPS = 60  # 3.9 million words


def read_lines(text: str | None) -> list[str]:
    """Return the lines of a file, or of the documentation that Python contains."""
    if text is None:
        return "\n".join(topics.topics.values()).splitlines()
    return Path(text).read_text(encoding="utf-8", errors="replace").splitlines()


def words_of(line: str) -> list[str]:
    """Return the words of a line. The topology and the recount both use this function."""
    return line.lower().split()


class LineSpout(Spout):
    """Emits the lines of the text `loops` times. Its tasks divide the lines among themselves.

    Delivery is at least once: each line has its number as id, and is emitted again if it fails.
    """

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Take this task's share: every nth line of n tasks."""
        self.mine = read_lines(config["text"])[context.get_task_index() :: context.get_parallelism()]
        self.numbers = iter(range(config["loops"] * len(self.mine)))
        self.failed: list[int] = []

    def next_tuple(self) -> None:
        """Emit one line, or report the end. Failed lines may come again even after the end."""
        number = self.failed.pop() if self.failed else next(self.numbers, None)
        if number is None:
            self.end()
        else:
            self.emit([self.mine[number % len(self.mine)]], tup_id=number)

    def fail(self, tup_id: object) -> None:
        """Queue a line again: one of its words was not counted in time, or was lost with a process."""
        self.failed.append(int(str(tup_id)))


class SplitBolt(Bolt):
    """Splits lines into words."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        """Emit each word anchored to its line: the line is complete when all its words are acked."""
        for word in words_of(tup.values[0]):
            self.emit([word], anchors=[tup])
        self.ack(tup)


class CountBolt(Bolt):
    """Counts words. The fields grouping brings every occurrence of a word to the same task."""

    outputs = ("word", "count", Stream(fields=["seen", "top"], name="so_far"))

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start from zero."""
        self.counts: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Count one word."""
        self.counts[tup.values[0]] += 1
        self.ack(tup)

    def process_tick(self, tup: Tuple) -> None:
        """Emit the progress of this task every second."""
        self.emit([self.counts.total(), self.counts.most_common(TOP)], stream="so_far")

    def finish(self) -> None:
        """Emit the totals after the last word."""
        for word, count in self.counts.items():
            self.emit([word, count])


class ReportBolt(Bolt):
    """Prints the most frequent words during the count, and writes and checks the totals at the end."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Store the paths of the text and of the report."""
        self.text, self.out, self.loops = config["text"], config["out"], config["loops"]
        self.totals: Counter[str] = Counter()
        self.so_far: dict[int, tuple[int, list[tuple[str, int]]]] = {}  # by counting task

    def process(self, tup: Tuple) -> None:
        """Store a total, or the progress of a counting task."""
        if tup.stream == "so_far":
            seen, top = tup.values
            self.so_far[tup.task] = (seen, top)
        else:
            word, count = tup.values
            self.totals[word] += count
        self.ack(tup)

    def process_tick(self, tup: Tuple) -> None:
        """Print the most frequent words so far, every two seconds."""
        if self.so_far and not self.totals:
            seen = sum(task_seen for task_seen, _ in self.so_far.values())
            # Only one task counts a word, so the lists of the tasks can be merged.
            top = Counter({word: count for _, pairs in self.so_far.values() for word, count in pairs})
            print(f"after {seen:,} words: {shown(top)}", flush=True)

    def finish(self) -> None:
        """Write the totals, most frequent first, and compare them with a recount of the text."""
        ranked = sorted(self.totals.items(), key=lambda pair: (-pair[1], pair[0]))
        if self.out is not None:
            Path(self.out).write_text("".join(f"{word}\t{count}\n" for word, count in ranked), encoding="utf-8")
        print(f"the {TOP} most frequent words: {shown(self.totals)}")

        recount = Counter(word for line in read_lines(self.text) for word in words_of(line))
        expected = Counter({word: count * self.loops for word, count in recount.items()})
        if self.totals != expected:
            wrong = sorted(word for word in self.totals | expected if self.totals[word] != expected[word])
            message = (
                f"counts differ from the recount for {len(wrong):,} words, such as {wrong[:5]}; at least once, "
                "the words of a failed line are counted again"
            )
            raise ValueError(message)
        print(f"counts verified: {self.totals.total():,} words, {len(self.totals):,} distinct", flush=True)


def shown(counts: Counter[str]) -> str:
    """Return the most frequent words in one line; equal counts are in alphabetical order."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{word} {count:,}" for word, count in ranked[:TOP])


def word_count(arguments: Sequence[str] = ()) -> TopologyBuilder:
    """Build the topology for these command-line arguments."""
    parser = argparse.ArgumentParser(prog="word_count.py", description="counts the words of a text")
    parser.add_argument("--text", help="the text to count (default: Python's own documentation)")
    parser.add_argument("--out", help="where to write word<TAB>count, most frequent first (default: nowhere)")
    parser.add_argument("--loops", type=int, default=DEFAULT_LOOPS, help="times to read it (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.loops < 1:
        parser.error(f"--loops {options.loops} is below 1")
    if options.text is not None and not os.access(options.text, os.R_OK):
        parser.error(f"--text {options.text}: the file does not exist or is not readable")
    if options.out is not None and not os.access(Path(options.out).resolve().parent, os.W_OK):
        parser.error(f"--out {options.out}: its folder does not exist or is not writable")

    # The components run in other processes with another working directory, so they need absolute paths.
    config = {
        "text": str(Path(options.text).resolve()) if options.text else None,
        "out": str(Path(options.out).resolve()) if options.out else None,
        "loops": options.loops,
    }
    every = api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS
    builder = TopologyBuilder("word_count")
    at_least_once = {api_constants.TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.ATLEAST_ONCE}
    builder.set_config({api_constants.TOPOLOGY_STMGRS: 2, **at_least_once, **config})
    lines = builder.add_spout("lines", LineSpout, par=1)
    split = builder.add_bolt("split", SplitBolt, par=2, inputs={lines: Grouping.SHUFFLE})
    count = builder.add_bolt("count", CountBolt, par=3, inputs={split: Grouping.fields("word")}, config={every: 1})
    to_one = {count["default"]: Grouping.LOWEST, count["so_far"]: Grouping.LOWEST}
    builder.add_bolt("report", ReportBolt, par=1, inputs=to_one, config={every: 2})
    return builder


if __name__ == "__main__":
    word_count(sys.argv[1:]).build_and_submit()
