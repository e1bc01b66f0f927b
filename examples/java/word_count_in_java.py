"""A word count whose counting bolt is in Java; spout and output are in Python.

    cd examples/java && mvn -q dependency:copy-dependencies -DoutputDirectory=storm
    javac -cp 'storm/*' -d java_parts/classes java_parts/CountWords.java
    heron run word_count_in_java.py

Maven fetches the jars of storm-client, 59 MB, into the folder `storm`. The variable STORM_JARS may name another
folder that has them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heron.api import Bolt, Grouping, Spout, Topology, TopologyContext, Tuple
from heron_runtime_jvm import JvmBolt

STORM = os.environ.get("STORM_JARS", str(Path(__file__).resolve().parent / "storm"))
TEXT = "to be or not to be that is the question "


class Words(Spout):
    """Emits the words of a text, ten times."""

    outputs = ["word"]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin with the first word."""
        self.words = iter((TEXT * 10).split())

    def next_tuple(self) -> None:
        """Emit a word."""
        word = next(self.words, None)
        self.emit([word]) if word else self.end()


class Print(Bolt):
    """Prints the last count of each word."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin without counts."""
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        """Keep a count."""
        word, count = tup.values
        self.counts[word] = count

    def finish(self) -> None:
        """Print the counts."""
        print(sorted(self.counts.items()))


class WordCount(Topology):
    """Words, counts, output."""

    words = Words.spec()
    count = JvmBolt.spec(
        java_class="CountWords",
        arguments=[1],
        class_path=["classes", f"{STORM}/*"],
        resources="java_parts",
        outputs=["word", "count"],
        inputs={words: Grouping.fields("word")},
        par=2,
    )
    output = Print.spec(inputs={count: Grouping.LOWEST})
