"""Adds up the entries of a partitioned log by account, each once, whichever processes die or tasks are added.

The log is a folder with a file for each partition: ``0``, ``1``, … Each line is an entry: ``ACCOUNT SEQUENCE AMOUNT``.
Other programs may append while the topology runs. The topology ends when the folder has a file ``closed`` and all
entries are counted.

Run it:     heron run examples/partitioned_log.py -- --log FOLDER --out BALANCES.tsv
Change it:  heron update partitioned_log --component-parallelism log:4 --component-parallelism balances:3
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heron.api import (
    Bolt,
    CounterState,
    Grouping,
    Spout,
    TopologyBuilder,
    TopologyContext,
    TopologyReliabilityMode,
    Tuple,
    ValueState,
    api_constants,
)

DEFAULT_LOG, DEFAULT_OUT = "partitioned_log.in", "partitioned_log.tsv"
CLOSED = "closed"
PARTITIONS, ACCOUNTS, ENTRIES = 8, 40, 200_000


def write_log(folder: Path) -> None:
    """Write a log to try. All entries of an account are in one partition, so their order is certain."""
    folder.mkdir()
    files = [(folder / str(partition)).open("w", encoding="utf-8") for partition in range(PARTITIONS)]
    for number in range(ENTRIES):
        account, sequence = number % ACCOUNTS, number // ACCOUNTS + 1
        files[account % PARTITIONS].write(f"{account} {sequence} {number % 13 - 5}\n")
    for file in files:
        file.close()
    (folder / CLOSED).touch()


class LogConsumer:
    """Has the calls of a Kafka consumer. An offset is a place in the file of a partition, in bytes."""

    def __init__(self, folder: Path, offsets: Mapping[int, int]) -> None:
        """Assign the partitions, and seek the offsets."""
        self.files = {partition: (folder / str(partition)).open("rb") for partition in offsets}
        for partition, offset in offsets.items():
            self.files[partition].seek(offset)

    def poll(self, most: int) -> Iterator[tuple[int, str]]:
        """Return the next entries with their partition, at most `most` of each partition."""
        for partition, file in self.files.items():
            for _ in range(most):
                line = file.readline()
                if not line.endswith(b"\n"):  # the end, or an entry that is not whole
                    file.seek(-len(line), os.SEEK_CUR)
                    break
                yield partition, line.decode()

    def position(self, partition: int) -> int:
        """Return the offset of the entry that the next poll returns."""
        return self.files[partition].tell()

    def close(self) -> None:
        """Close the files."""
        for file in self.files.values():
            file.close()


class LogSpout(Spout):
    """Emits the entries of the partitions that its task owns.

    `context.owns` divides the partitions among the tasks as it divides the state. So a partition moves together with
    its offset when the number of tasks changes. No offset is committed to the log: it belongs to the checkpoint.
    """

    outputs = ("account", "sequence", "amount")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Continue each partition at its offset. After a death or an update this is the offset of the checkpoint."""
        log = Path(config["log"])
        self.closed = log / CLOSED
        self.offsets: ValueState[int, int] = context.keyed_state("offset", ValueState)
        mine = filter(context.owns, range(config["partitions"]))
        self.consumer = LogConsumer(log, {partition: self.offsets.get(partition) or 0 for partition in mine})

    def next_tuple(self) -> None:
        """Emit some entries. A checkpoint comes between two calls, so an offset always fits the emitted entries."""
        closed = self.closed.exists()  # before the poll: nothing is appended afterwards
        polled = set()
        for partition, entry in self.consumer.poll(most=20):
            self.emit([int(word) for word in entry.split()])
            polled.add(partition)
        for partition in polled:
            self.offsets.put(partition, self.consumer.position(partition))
        if closed and not polled:
            self.end()

    def close(self) -> None:
        """Close the log. A restore calls this too, and then `initialize` of a new spout."""
        self.consumer.close()


class BalanceBolt(Bolt):
    """Adds up the amounts of each account."""

    outputs = ("account", "entries", "balance")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Receive the sums of the accounts that this task owns."""
        self.entries: CounterState[int] = context.keyed_state("entries", CounterState)
        self.balances: CounterState[int] = context.keyed_state("balance", CounterState)

    def process(self, tup: Tuple) -> None:
        """Add an entry. The sequence shows that none is missing, counted twice or early."""
        account, sequence, amount = tup.values
        expected = self.entries.add(account)
        if sequence != expected:
            msg = f"account {account}: entry {sequence} instead of {expected}; the log has a gap or a repetition"
            raise ValueError(msg)
        self.balances.add(account, amount)

    def finish(self) -> None:
        """Emit the sums: all entries are counted."""
        for account, entries in self.entries.items():
            self.emit([account, entries, self.balances.get(account)])


class ReportBolt(Bolt):
    """Writes the sums at the end. A repetition writes the same file, so this sink needs no two phases."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Keep the rows in state: the bolts before do not emit them again after a restore."""
        self.out = Path(config["out"])
        self.rows: ValueState[int, str] = context.keyed_state("row", ValueState)

    def process(self, tup: Tuple) -> None:
        """Receive the sums of an account."""
        self.rows.put(tup.values[0], "\t".join(map(str, tup.values)) + "\n")

    def finish(self) -> None:
        """Write all rows."""
        self.out.write_text("".join(row for _, row in sorted(self.rows.items())), encoding="utf-8")


def partitioned_log(arguments: Sequence[str] = ()) -> TopologyBuilder:
    """Build the topology for these command-line arguments."""
    parser = argparse.ArgumentParser(prog="partitioned_log.py", description="adds up a log, each entry exactly once")
    parser.add_argument("--log", help=f"folder of the log (default: {DEFAULT_LOG}, which is written if it is missing)")
    parser.add_argument("--out", default=DEFAULT_OUT, help="file of the result (default: %(default)s)")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between checkpoints (default: 1)")
    options = parser.parse_args(arguments)
    # The components run in other processes with another working directory, so they need absolute paths.
    log, out = Path(options.log or DEFAULT_LOG).resolve(), Path(options.out).resolve()
    if options.log is None and not log.exists():
        write_log(log)
    partitions = len([path for path in log.glob("[0-9]*") if path.name.isdecimal()])
    if not partitions:
        parser.error(f"--log {log}: the folder does not exist or has no partitions")
    if not os.access(out.parent, os.W_OK):
        parser.error(f"--out {out}: its folder does not exist or is not writable")

    builder = TopologyBuilder("partitioned_log")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: options.interval,
            "log": str(log),
            "partitions": partitions,
            "out": str(out),
        }
    )
    entries = builder.add_spout("log", LogSpout, par=2)
    balances = builder.add_bolt("balances", BalanceBolt, par=2, inputs={entries: Grouping.fields("account")})
    builder.add_bolt("report", ReportBolt, par=1, inputs={balances: Grouping.fields("account")})
    return builder


if __name__ == "__main__":
    partitioned_log(sys.argv[1:]).build_and_submit()
