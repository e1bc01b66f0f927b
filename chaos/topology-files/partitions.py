"""The chaos topology for effectively once: partitions with a known content, counts by key, and committed records.

Partition P consists of the numbers 0, 1, 2, …; the key of each number follows from both. A spout emits the numbers of
its partitions at a constant rate since the begin of the run, so it catches up after an outage. The file ``stop`` has
the number of lines of each partition. So the content of the output is known without the engine.

A record is 16 bytes, little-endian: partition, key (16 bits each), number, count of the key, and the milliseconds from
the begin of the run until the line was made (32 bits each). A file is part of the output when its name is
``TASK-committed-CHECKPOINT``.
"""

from __future__ import annotations

import struct
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from heron.api import (
    Bolt,
    CounterState,
    Grouping,
    ITwoPhaseStatefulComponent,
    Spout,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    api_constants,
)

PARTITIONS = 48
KEYS = 509
RECORD = struct.Struct("<HHIII")
EMITS_A_CALL = 100


class PartitionSpout(Spout):
    """Emits the numbers of the partitions that its task owns; their positions are keyed state."""

    outputs = ("partition", "key", "number", "made_ms")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Continue at the positions of the partitions."""
        self.folder, self.began_s = Path(config["folder"]), config["began_s"]
        self.rate = config["rate"] / PARTITIONS
        self.stop = self.folder / "stop"
        self.task = context.get_task_id()
        self.positions = context.keyed_state("position", CounterState)
        self.made = {each: self.positions.get(each) for each in range(PARTITIONS) if context.owns(each)}

    def next_tuple(self) -> None:
        """Emit the numbers that are due, at most `EMITS_A_CALL` of each partition.

        The time is read before the look for the file. So no number is made that the file excludes.
        """
        now_s = time.monotonic() - self.began_s
        stopping = self.stop.exists()
        due = int(self.stop.read_text(encoding="utf-8")) if stopping else int(now_s * self.rate)
        for partition, made in self.made.items():
            self.emit_numbers(partition, made, min(due, made + EMITS_A_CALL), int(now_s * 1000))
        if stopping and all(made == due for made in self.made.values()):
            self.end()

    def emit_numbers(self, partition: int, start: int, end: int, made_ms: int) -> None:
        """Emit the numbers from `start` to `end` of a partition."""
        if start >= end:
            return
        for number in range(start, end):
            self.emit([partition, (partition * 7 + number) % KEYS, number, made_ms])
        self.positions.add(partition, end - start)
        self.made[partition] = end


class CountBolt(Bolt):
    """Counts the lines of each key in keyed state."""

    outputs = ("partition", "key", "number", "count", "made_ms")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Take the counts."""
        self.counts = context.keyed_state("count", CounterState)

    def process(self, tup: Tuple) -> None:
        """Count a line."""
        partition, key, number, made_ms = tup.values
        self.emit([partition, key, number, self.counts.add(key), made_ms])


class CommitBolt(Bolt, ITwoPhaseStatefulComponent):
    """Writes records to a file that is part of the output when its checkpoint is complete."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin a file at the first record."""
        self.folder, self.task = Path(config["folder"]), context.get_task_id()
        self.open = self.folder / f"{self.task}-open"
        self.file: IO[bytes] | None = None

    def process(self, tup: Tuple) -> None:
        """Write a record."""
        if self.file is None:
            self.file = self.open.open("wb")
        self.file.write(RECORD.pack(*tup.values))

    def pre_save(self, checkpoint_id: str) -> None:
        """The records since the last checkpoint belong to this one."""
        if self.file is not None:
            self.file.close()
            self.file = None
            self.open.rename(self.folder / f"{self.task}-pending-{int(checkpoint_id)}")

    def post_save(self, checkpoint_id: str) -> None:
        """Commit the files of checkpoints up to this one."""
        for path in self._pending():
            if int(path.name.rpartition("-")[2]) <= int(checkpoint_id):
                path.rename(path.with_name(path.name.replace("pending", "committed")))

    def pre_restore(self, checkpoint_id: str) -> None:
        """Commit the files of checkpoints up to this one, and remove the others."""
        if checkpoint_id:
            self.post_save(checkpoint_id)
        for path in (*self._pending(), self.open):
            path.unlink(missing_ok=True)

    def _pending(self) -> list[Path]:
        return list(self.folder.glob(f"{self.task}-pending-*"))


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the output and of the stop file")
    parser.add_argument("--rate", type=int, default=10_000, help="lines a second of all partitions")
    parser.add_argument(
        "--began", type=float, required=True, help="begin of the run on the monotonic clock, in seconds"
    )
    chosen = parser.parse_args()
    builder = TopologyBuilder("chaos")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: api_constants.TopologyReliabilityMode.EFFECTIVELY_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: 1.0,
            "folder": chosen.folder,
            "rate": chosen.rate,
            "began_s": chosen.began,
        }
    )
    lines = builder.add_spout("lines", PartitionSpout, par=2)
    count = builder.add_bolt("count", CountBolt, par=4, inputs={lines: Grouping.fields("key")})
    builder.add_bolt("commit", CommitBolt, par=2, inputs={count: Grouping.fields("key")})
    builder.build_and_submit()
