"""ChildWords: words that pass a bolt in a child process, counted by key."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench_record import TICK_S, config_of, options
from simplified_word_count import EXPECTED, AckedWordSpout, WordSpout
from word_bolts import AckedCountBolt, CountBolt

from heron.api import Grouping, TopologyBuilder, api_constants
from heron_runtime_multilang import ShellBolt

__all__ = ["EXPECTED", "topology"]

CHILD = [sys.executable, str(Path(__file__).with_name("child_pass.py")), "bench-child"]


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("ChildWords")
    builder.set_config(config_of(chosen))
    spout, bolt = (AckedWordSpout, AckedCountBolt) if chosen.atleast else (WordSpout, CountBolt)
    words = builder.add_spout("words", spout, par=1)
    passed = ShellBolt.spec(name="pass", inputs=[words], command=CHILD, outputs=["word"])
    builder.add_spec(passed)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", bolt, par=1, inputs={passed: Grouping.fields("word")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
