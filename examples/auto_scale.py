"""Lines at a rate that a file gives; a bolt calls a service for each line, which takes 20 ms. The right size follows.

Run it:  heron run examples/auto_scale.py --set health.mode=act
Then write another number of lines per second into load.txt. `./dev demo -- autoscale` does this and tells the story.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple

CALL_S = 0.02
LOOK_S = 0.5
BEHIND_S = 0.2  # a source that was held back does not catch up


class Lines(Spout):
    """Emits as many lines per second as the file says."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.load = Path(config["load"])
        self.due_s = self.look_s = 0.0
        self.rate = 0.0

    def next_tuple(self) -> None:
        now_s = time.monotonic()
        if now_s >= self.look_s:
            self.look_s = now_s + LOOK_S
            self.rate = float(self.load.read_text(encoding="utf-8"))
        self.due_s = max(self.due_s, now_s - BEHIND_S)
        if self.rate and self.due_s <= now_s:
            self.due_s += 1.0 / self.rate
            self.emit(["to be or not to be"])


class Translate(Bolt):
    """Calls a service, here a wait, for each line."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        time.sleep(CALL_S)
        for word in tup.values[0].split():
            self.emit([word])


class Count(Bolt):
    """Counts the words."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1


def auto_scale(arguments: Sequence[str] = ()) -> TopologyBuilder:
    """Parse the command line, write the file of the load if there is none, and build the topology."""
    parser = argparse.ArgumentParser(prog="auto_scale.py", description="a topology whose load changes")
    parser.add_argument(
        "--load", type=Path, default=Path("load.txt"), help="a file with the number of lines per second (%(default)s)"
    )
    load = parser.parse_args(arguments).load.resolve()
    try:
        if not load.exists():
            load.write_text("30", encoding="utf-8")
        float(load.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        parser.error(f"--load {load}: {error}")
    builder = TopologyBuilder("auto_scale")
    lines = builder.add_spout("lines", Lines, par=1, config={"load": str(load)})
    translate = builder.add_bolt("translate", Translate, par=1, inputs={lines: Grouping.SHUFFLE})
    builder.add_bolt("count", Count, par=1, inputs={translate: Grouping.fields("word")})
    return builder


if __name__ == "__main__":
    auto_scale(sys.argv[1:]).build_and_submit()
