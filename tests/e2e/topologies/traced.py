"""Lines between two containers at a pace, split into words; the bolt `work` takes some milliseconds for each word."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

BOLTS = 3  # tasks


def note_begin(config: Mapping[str, Any], context: TopologyContext) -> None:
    """Lets the spout know that a bolt runs: what waits for processes that start says nothing about hops."""
    Path(config["out"], f"bolt-{context.get_task_id()}").touch()


class LineSpout(Spout):
    """Emits a line when one is due, and all bolts run; it never blocks, because acks would wait for it.

    With `alone`, a line is also due only when the words of the former are done. A pause alone would not keep lines
    apart on a busy machine, where a line may be late, and then the next one waits behind it.
    """

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero, and says so."""
        self.pause_s = config["pause_ms"] / 1000
        self.number = 0
        self.due_s = float("inf")
        self.out = Path(config["out"])
        self.words = config["words"] if config["alone"] else 0
        Path(self.out, "done").touch()
        Path(self.out, "began").touch()

    def next_tuple(self) -> None:
        """Emits one if it is due."""
        now_s = time.monotonic()
        if self.due_s == float("inf") and len(list(self.out.glob("bolt-*"))) == BOLTS:
            self.due_s = now_s
        if now_s < self.due_s or (self.out / "done").stat().st_size < self.number * self.words:
            return
        self.due_s = now_s + self.pause_s
        self.number += 1
        self.emit([self.number], tup_id=self.number)


class SplitBolt(Bolt):
    """Splits each line into words."""

    outputs = ("word",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes the number of words of a line."""
        self.words = config["words"]
        note_begin(config, context)

    def process(self, tup: Tuple) -> None:
        """Splits a line."""
        for word in range(self.words):
            self.emit([f"{tup.values[0]} {word}"], anchors=[tup])
        self.ack(tup)


class WorkBolt(Bolt):
    """Sleeps for each word."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes its pace."""
        self.work_s = config["work_ms"] / 1000
        self.done = os.open(Path(config["out"], "done"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        note_begin(config, context)

    def process(self, tup: Tuple) -> None:
        """Works."""
        time.sleep(self.work_s)
        self.ack(tup)
        os.write(self.done, b".")


if __name__ == "__main__":
    options = arguments(pause_ms=50, work_ms=1, words=1, one_in=1, acks=0, alone=0)
    builder = TopologyBuilder("traced")
    mode = "ATLEAST_ONCE" if options.acks else "ATMOST_ONCE"
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: mode,
            api_constants.TOPOLOGY_MAX_SPOUT_PENDING: 200,
            api_constants.TOPOLOGY_TRACE_ONE_IN: options.one_in,
            "out": options.out,
            "pause_ms": options.pause_ms,
            "work_ms": options.work_ms,
            "words": options.words,
            "alone": options.alone,
        }
    )
    lines = builder.add_spout("lines", LineSpout, par=1)
    split = builder.add_bolt("split", SplitBolt, par=2, inputs={lines: Grouping.SHUFFLE})
    builder.add_bolt("work", WorkBolt, par=1, inputs={split: Grouping.fields("word")})
    builder.build_and_submit()
