"""Lines between two containers until there is a file ``stop``; received words are in ``journal-TASK``.

Every spout and every bolt feeds tasks of both containers. Spouts replay failed lines. A restarted spout continues with
the lines that were not acked. The last bolts append ``line word source-task own-task wall-seconds`` before they ack.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journal import appending
from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

WORDS_A_LINE = 3


class LineSpout(Spout):
    """Emits some hundred lines a second, and each again until it is acked."""

    outputs = ("line", "attempt", "source", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes every second number as a line."""
        self.stop = Path(config["out"], "stop")
        self.task = context.get_task_id()
        self.step = context.get_parallelism()
        acked = Path(config["out"], f"acked-{self.task}")
        self.file = appending(acked)
        done = {int(line) for line in acked.read_text(encoding="utf-8").split()}
        self.emitted = Path(config["out"], f"emitted-{self.task}")
        first = context.get_task_index()
        self.number = self.bound = int(self.emitted.read_text(encoding="utf-8")) if self.emitted.exists() else first
        self.again = deque(line for line in range(first, self.bound, self.step) if line not in done)
        self.attempts: Counter[int] = Counter()
        self.text = "x" * config["size"]

    def next_tuple(self) -> None:
        """Emits some lines, replays first, then waits a little."""
        stops = self.stop.exists()
        for _ in range(5):
            if self.again:
                line = self.again.popleft()
            elif not stops:
                if self.number >= self.bound:
                    self.keep(self.number + 100 * self.step)
                line, self.number = self.number, self.number + self.step
            else:
                break
            self.attempts[line] += 1
            self.emit([line, self.attempts[line], self.task, self.text], tup_id=line)
        if stops and not self.again:
            self.keep(self.number)
            self.end()
        time.sleep(0.01)

    def keep(self, bound: int) -> None:
        """Records that no life of this spout has emitted a line from there on."""
        self.bound = bound
        part = self.emitted.with_suffix(".part")
        part.write_text(str(bound), encoding="utf-8")
        part.rename(self.emitted)

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Records the line as done."""
        del self.attempts[tup_id]
        os.write(self.file, f"{tup_id}\n".encode())

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Queues the line for replay."""
        self.again.append(tup_id)


class SplitBolt(Bolt):
    """Splits each line into words."""

    outputs = ("word", "line", "source", "text")

    def process(self, tup: Tuple) -> None:
        """Splits a line."""
        line, _attempt, source, text = tup.values
        for word in range(WORDS_A_LINE):
            self.emit([f"word-{word}-{line % 7}", line, source, text], anchors=[tup])
        self.ack(tup)


class JournalBolt(Bolt):
    """Writes each received word to the journal."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Opens this task's part of the journal."""
        self.task = context.get_task_id()
        self.file = appending(Path(config["out"], f"journal-{self.task}"))

    def process(self, tup: Tuple) -> None:
        """Writes to disk, then acks."""
        word, line, source, _text = tup.values
        os.write(self.file, f"{line} {word} {source} {self.task} {time.time():.3f}\n".encode())
        self.ack(tup)


if __name__ == "__main__":
    options = arguments(size=400)
    builder = TopologyBuilder("crossing")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
            # Without timeouts, a lost line is replayed only if the engine notices the loss.
            api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: False,
            "out": options.out,
            "size": options.size,
        }
    )
    lines = builder.add_spout("lines", LineSpout, par=2)
    split = builder.add_bolt("split", SplitBolt, par=2, inputs={lines: Grouping.SHUFFLE})
    builder.add_bolt("journal", JournalBolt, par=2, inputs={split: Grouping.fields("word")})
    builder.build_and_submit()
