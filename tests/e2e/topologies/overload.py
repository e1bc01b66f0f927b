"""Fast spouts, optionally a bolt that makes many tuples of one, and bolts that are slow or block on request.

Files in the folder of results control it: ``go``, ``stop``, and ``slow-N`` and ``block-N`` for task index N of the last
bolt. Every tenth of a second each task of that bolt appends a line to a journal: its process, the machine's monotonic
clock, the tuples that this life has counted, and its processor seconds. With ``--keeps`` it records each number before
it acks it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

SLOW_CALL_S = 0.001
LOOK_EVERY_S = 0.05


class Lines(Spout):
    """Numbers from zero with a text; failed numbers come again."""

    outputs = ("number", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts at zero; records its first call."""
        self.folder, self.context = Path(config["out"]), context
        self.text = "x" * config["bytes"]
        self.next_number = 0
        self.again: deque[int] = deque()
        self.acked = self.failed = 0
        self.going = False
        (self.folder / f"ready-{context.get_task_id()}").touch()

    def next_tuple(self) -> None:
        """Emits one."""
        if not self.going:
            self.going = (self.folder / "go").exists()
            if not self.going:
                return
            (self.folder / f"first-call-of-{os.getpid()}").touch()
        if self.again:
            number = self.again.popleft()
        elif self.next_number % 256 == 0 and (self.folder / "stop").exists():
            self.end()
            return
        else:
            number = self.next_number
            self.next_number += 1
        self.emit([number, self.text], tup_id=number)

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Queues the number for replay."""
        self.failed += 1
        self.again.append(tup_id)

    def close(self) -> None:
        """Writes the count of numbers and the largest count of replays."""
        write_result(self.folder.as_posix(), self.context, [self.next_number, self.failed])


class Many(Bolt):
    """Makes many tuples of one."""

    outputs = ("number", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Reads the number of tuples to make."""
        self.times = range(config["fan"])

    def process(self, tup: Tuple) -> None:
        """Makes the tuples, and acks the input."""
        number, text = tup.values
        anchors = [tup]
        for _ in self.times:
            self.emit([number, text[:100]], anchors=anchors)
        self.ack(tup)


class Work(Bolt):
    """Counts tuples: fast, slowly, or not at all."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no count."""
        self.folder, self.context = Path(config["out"]), context
        index = context.get_task_index()
        self.slow, self.block = self.folder / f"slow-{index}", self.folder / f"block-{index}"
        self.journal = self.folder / f"journal-{context.get_task_id()}"
        self.count = self.look_at = 0
        self.pause_s = 0.0
        seen = self.folder / f"seen-{context.get_task_id()}"
        self.seen = os.open(seen, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if config["keeps"] else None

    def process(self, tup: Tuple) -> None:
        """Counts a tuple in the requested time."""
        if self.count >= self.look_at:
            self.look()
        self.count += 1
        if self.pause_s:
            time.sleep(self.pause_s)  # slow user code is the subject of the test
        if self.seen is not None:
            os.write(self.seen, tup.values[0].to_bytes(8, "little"))
        self.ack(tup)

    def look(self) -> None:
        """Reads the requested behaviour, at most every 256 tuples or twentieth of a second."""
        while self.block.exists():
            time.sleep(0.01)  # blocking user code is the subject of the test
        self.pause_s = SLOW_CALL_S if self.slow.exists() else 0.0
        self.look_at = self.count + (int(LOOK_EVERY_S / SLOW_CALL_S) if self.pause_s else 256)

    def process_tick(self, tup: Tuple) -> None:
        """Appends a line to the journal."""
        with self.journal.open("a", encoding="utf-8") as journal:
            journal.write(f"{os.getpid()} {time.monotonic()} {self.count} {time.process_time()}\n")

    def finish(self) -> None:
        """Writes the result."""
        write_result(self.folder.as_posix(), self.context, [self.count])


if __name__ == "__main__":
    options = arguments(spouts=1, fan=0, tasks=1, fields=0, acks=0, timeout=30, bytes=100, keeps=0)
    config: dict[str, object] = {
        api_constants.TOPOLOGY_STMGRS: 2,
        "out": options.out,
        "bytes": options.bytes,
        "fan": options.fan,
        "keeps": bool(options.keeps),
    }
    if options.acks:
        config[api_constants.TOPOLOGY_RELIABILITY_MODE] = "ATLEAST_ONCE"
        config[api_constants.TOPOLOGY_MESSAGE_TIMEOUT_SECS] = options.timeout
    builder = TopologyBuilder("overload")
    builder.set_config(config)
    source = builder.add_spout("lines", Lines, par=options.spouts)
    if options.fan:
        source = builder.add_bolt("many", Many, par=1, inputs={source: Grouping.SHUFFLE})
    grouping = Grouping.fields("number") if options.fields else Grouping.SHUFFLE
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.1}
    builder.add_bolt("work", Work, par=options.tasks, inputs={source: grouping}, config=every)
    builder.build_and_submit()
