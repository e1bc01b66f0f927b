"""JvmWordCount: SimplifiedWordCount with spout and bolt in Java."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench_record import TICK_S, config_of, options
from simplified_word_count import EXPECTED, word_block

from heron.api import Grouping, TopologyBuilder, api_constants
from heron_runtime_jvm import JvmBolt, JvmSpout, compiled_classes, expanded_class_path, find_java
from heron_testing_servers.install import installed, maven_jars

__all__ = ["EXPECTED", "topology"]

STORM = "2.8.3"
SOURCE = Path(__file__).parent / "jvm" / "WordCount.java"


def class_path() -> list[str]:
    jars = installed(f"storm-client-{STORM}", maven_jars(f"org.apache.storm:storm-client:{STORM}")) / "lib"
    found = expanded_class_path([f"{jars}/*"], jars)
    return [str(compiled_classes("bench", [SOURCE], found, find_java())), f"{jars}/*"]


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("JvmWordCount")
    builder.set_config(config_of(chosen))
    path = class_path()
    words = JvmSpout.spec(
        "words",
        java_class="bench.WordCount$Words",
        arguments=[word_block(), chosen.atleast],
        class_path=path,
        outputs=["word"],
    )
    last = JvmBolt.spec(
        "last",
        {words: Grouping.fields("word")},
        config={api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S},
        java_class="bench.WordCount$Count",
        class_path=path,
    )
    builder.add_spec(words, last)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
