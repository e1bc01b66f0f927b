"""Copies the lines of a text into files, each line once and in order, whichever processes die or tasks are added.

The text is divided into ranges of bytes. The position in each range is keyed state. The sink writes files that become
part of the output when their checkpoint is complete: ``OUT/TASK.CHECKPOINT``. Files with other names are not output.
Each line of the output begins with the offset of the line in the text.

Run it:     heron run examples/exactly_once_files.py -- --text BOOK.txt --out FOLDER
Change it:  heron update exactly_once_files --component-parallelism ranges:4
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from pydoc_data import topics
from typing import IO, Any

from heron.api import (
    Bolt,
    Grouping,
    ITwoPhaseStatefulComponent,
    Spout,
    TopologyBuilder,
    TopologyContext,
    TopologyReliabilityMode,
    Tuple,
    ValueState,
    api_constants,
)

RANGE_BYTES = 20_000
DEFAULT_OUT = "exactly_once_files.out"


class RangeSpout(Spout):
    """Emits the lines of the ranges that its task owns.

    `context.owns` divides the ranges among the tasks as it divides the state. So a range moves together with its
    position when the number of tasks changes.
    """

    outputs = ("range", "offset", "line")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Continue each range at its position. After a death this is the position of the last checkpoint."""
        text = Path(config["text"])
        self.text = text.open("rb")
        self.positions: ValueState[int, int] = context.keyed_state("position", ValueState)
        ranges = range(-(-os.fstat(self.text.fileno()).st_size // RANGE_BYTES))
        self.rest = (line for mine in ranges if context.owns(mine) for line in self.lines(mine))

    def lines(self, mine: int) -> Iterator[tuple[int, int, bytes]]:
        """Read the lines that begin in a range and are still to be emitted. The last one may end in the next range."""
        position = self.positions.get(mine)
        if position is None and mine:
            self.text.seek(mine * RANGE_BYTES - 1)
            self.text.readline()  # it began in the range before
        else:
            self.text.seek(position or 0)
        offset = self.text.tell()
        while offset < (mine + 1) * RANGE_BYTES and (line := self.text.readline()):
            yield mine, offset, line
            offset += len(line)

    def next_tuple(self) -> None:
        """Emit some lines. A checkpoint comes between two calls, so a position always fits the emitted lines."""
        batch = list(islice(self.rest, 20))
        for mine, offset, line in batch:
            self.emit([mine, offset, line.decode(errors="replace").rstrip("\r\n")])
            self.positions.put(mine, offset + len(line))
        if not batch:
            self.end()

    def close(self) -> None:
        """Close the text. A restore calls this too, and then `initialize` of a new spout."""
        self.text.close()


class FileSink(Bolt, ITwoPhaseStatefulComponent):
    """Writes a file for each checkpoint; a rename commits it."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin no file before the first line."""
        self.out, self.task = Path(config["out"]), context.get_task_id()
        self.out.mkdir(parents=True, exist_ok=True)
        self.open = self.out / f"{self.task}.open"
        self.file: IO[str] | None = None

    def process(self, tup: Tuple) -> None:
        """Write a line with its offset."""
        if self.file is None:
            self.file = self.open.open("w", encoding="utf-8")
        _, offset, line = tup.values
        self.file.write(f"{offset}\t{line}\n")

    def pre_save(self, checkpoint_id: str) -> None:
        """First phase: the lines since the last checkpoint belong to this one, and survive a crash."""
        if self.file is not None:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            self.file = None
            self.open.rename(self.out / f"{self.task}.pending.{checkpoint_id}")

    def post_save(self, checkpoint_id: str) -> None:
        """Second phase: the checkpoint is complete. Earlier ones may not have had this call."""
        for path in self.pending():
            if int(path.suffix[1:]) <= int(checkpoint_id):
                path.rename(self.out / f"{self.task}{path.suffix}")

    def pre_restore(self, checkpoint_id: str) -> None:
        """Commit what belongs to the checkpoint, and remove what is newer: the spout emits it again."""
        if checkpoint_id:
            self.post_save(checkpoint_id)
        for path in (*self.pending(), self.open):
            path.unlink(missing_ok=True)

    def pending(self) -> list[Path]:
        """Return the files that are not committed."""
        return list(self.out.glob(f"{self.task}.pending.*"))


def exactly_once_files(arguments: Sequence[str] = ()) -> TopologyBuilder:
    """Build the topology for these command-line arguments."""
    parser = argparse.ArgumentParser(prog="exactly_once_files.py", description="copies lines, each exactly once")
    parser.add_argument(
        "--text", default=topics.__file__, help="the text to copy (default: Python's own documentation)"
    )
    parser.add_argument("--out", default=DEFAULT_OUT, help="an empty or new folder (default: %(default)s)")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between checkpoints (default: 1)")
    options = parser.parse_args(arguments)
    if not os.access(options.text, os.R_OK):
        parser.error(f"--text {options.text}: the file does not exist or is not readable")

    builder = TopologyBuilder("exactly_once_files")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: options.interval,
            # The components run in other processes with another working directory, so they need absolute paths.
            "text": str(Path(options.text).resolve()),
            "out": str(Path(options.out).resolve()),
        }
    )
    ranges = builder.add_spout("ranges", RangeSpout, par=2)
    builder.add_bolt("sink", FileSink, par=2, inputs={ranges: Grouping.fields("range")})
    return builder


if __name__ == "__main__":
    exactly_once_files(sys.argv[1:]).build_and_submit()
