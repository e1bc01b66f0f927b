"""Lines that must all arrive: spout and last bolt store their progress on disk.

Spouts append each acked line to ``acked-TASK`` and continue there after a restart. The last bolts append
``line word attempt pid`` to ``journal`` before they ack. Spouts make lines until the file ``stop`` is in the folder of
results. ``taken-TASK`` records the lines: from, to, step.
"""

from __future__ import annotations

import os
import select
import sys
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

WORDS_A_LINE = 3
TASKS = 6  # at the start; ids of later tasks are greater


def appending(path: Path) -> int:
    """A file that all lives of a task append to."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class LineSpout(Spout):
    """Emits its lines in groups until each is acked."""

    outputs = ("line", "attempt")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Skips the lines that an earlier life has finished."""
        out, task_id = Path(config["out"]), context.get_task_id()
        self.stop = out / "stop"
        self.file = appending(out / f"acked-{task_id}")
        done = {int(line) for line in (out / f"acked-{task_id}").read_text(encoding="utf-8").split()}
        self.first, self.step = context.get_task_index(), context.get_parallelism()
        self.taken = os.open(out / f"taken-{task_id}", os.O_RDWR | os.O_CREAT, 0o600)
        words = os.read(self.taken, 100).split()
        self.behind = int(words[1]) if words else self.first
        self.waiting = deque(number for number in range(self.first, self.behind, self.step) if number not in done)
        self.attempts: Counter[int] = Counter()
        self.pause_s = config["pause"]

    def next_tuple(self) -> None:
        """Emits some lines, then waits a little."""
        goes_on = not self.stop.exists()
        if goes_on and not self.waiting:
            self.take(10)
        for _ in range(min(10, len(self.waiting))):
            number = self.waiting.popleft()
            self.attempts[number] += 1
            self.emit([number, self.attempts[number]], tup_id=number)
        if not self.waiting and not goes_on:
            self.end()
        if goes_on:
            select.select([], [], [], self.pause_s)  # time.sleep fails where a test shifts the clock with libfaketime

    def take(self, count: int) -> None:
        """Records new lines before it emits them, because a later life must emit them all."""
        behind = self.behind + count * self.step
        os.pwrite(self.taken, f"{self.first:9} {behind:9} {self.step:9}".encode(), 0)
        self.waiting.extend(range(self.behind, behind, self.step))
        self.behind = behind

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Records the line as done."""
        os.write(self.file, f"{tup_id}\n".encode())

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Queues the line for replay."""
        self.waiting.append(tup_id)


class SplitBolt(Bolt):
    """Splits each line into words."""

    outputs = ("word", "line", "attempt")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Says that a task starts that an update has added; see ``held_instants.py``."""
        if context.get_task_id() > TASKS:
            sys.audit("heron.test.instant", "initialize")

    def process(self, tup: Tuple) -> None:
        """Splits a line."""
        sys.audit("heron.test.instant", "process")
        line, attempt = tup.values
        for word in range(WORDS_A_LINE):
            self.emit([f"word-{word}-{line % 7}", line, attempt], anchors=[tup])
        self.ack(tup)


class JournalBolt(Bolt):
    """Writes each received word to the journal."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Opens the journal."""
        self.file = appending(Path(config["out"], "journal"))

    def process(self, tup: Tuple) -> None:
        """Writes to disk, then acks."""
        word, line, attempt = tup.values
        os.write(self.file, f"{line} {word} {attempt} {os.getpid()}\n".encode())
        self.ack(tup)


if __name__ == "__main__":
    options = arguments(pause=0.02)
    builder = TopologyBuilder("journal")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
            # Without timeouts, a lost line is replayed only if the engine notices the loss.
            api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: False,
            "out": options.out,
            "pause": options.pause,
        }
    )
    lines = builder.add_spout("lines", LineSpout, par=2)
    split = builder.add_bolt("split", SplitBolt, par=2, inputs={lines: Grouping.SHUFFLE})
    builder.add_bolt("journal", JournalBolt, par=2, inputs={split: Grouping.fields("word")})
    builder.build_and_submit()
