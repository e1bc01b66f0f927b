"""A word count whose spout is in C++, and whose bolts are in Go, JavaScript and Python; at least once.

    cd examples/languages/parts && c++ -O2 -o lines lines.cpp && go build -o split split.go && cd ..
    heron run word_count_in_languages.py

A child that dies is started again, and its tuples are emitted again. The counts stay exact, because each word is known
by its line and its place, and is counted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from heron.api import Bolt, Grouping, Topology, TopologyContext, Tuple
from heron_runtime_multilang import ShellBolt, ShellSpout


class Count(Bolt):
    """Counts each word once, and prints the counts at the end."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin without words."""
        self.words: dict[tuple[int, int], str] = {}

    def process(self, tup: Tuple) -> None:
        """Keep a word by its line and its place."""
        word, number, place = tup.values
        self.words[number, place] = word
        self.ack(tup)

    def finish(self) -> None:
        """Print the counts."""
        print(sorted(Counter(self.words.values()).items()))


class WordCount(Topology):
    """Lines, words, words in lower case, counts."""

    config = {"topology.reliability.mode": "ATLEAST_ONCE"}
    lines = ShellSpout.spec(command=["./lines", "1000"], resources="parts", outputs=["text", "line"])
    split = ShellBolt.spec(
        command="./split", resources="parts", outputs=["word", "line", "place"], inputs={lines: Grouping.SHUFFLE}, par=2
    )
    fold = ShellBolt.spec(
        command="node", script="fold.js", resources="parts", outputs=["word", "line", "place"], inputs=[split]
    )
    count = Count.spec(inputs={fold: Grouping.LOWEST})
