"""Counts words into an SQLite database whose tables are exact, whichever processes die.

A database cannot keep a transaction open across the death of its client. So the sink ends it in the first phase, into a
table of pending rows, and moves these rows into the result in the second phase. Both phases may come again:

    pending (sink INTEGER, checkpoint INTEGER, word TEXT, count INTEGER, PRIMARY KEY (sink, checkpoint, word))
    counts  (word TEXT PRIMARY KEY, count INTEGER)

The number of spout tasks must not change, because the words are divided by task.

Run it:  heron run examples/exactly_once_sqlite.py -- --text BOOK.txt --database words.db
         sqlite3 words.db 'SELECT * FROM counts ORDER BY count DESC LIMIT 10'
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from pydoc_data import topics
from typing import Any

from heron.api import (
    Bolt,
    Grouping,
    ITwoPhaseStatefulComponent,
    Spout,
    State,
    StatefulComponent,
    TopologyBuilder,
    TopologyContext,
    TopologyReliabilityMode,
    Tuple,
    api_constants,
)

DEFAULT_DATABASE = "exactly_once.db"
LOCK_WAIT_S = 30.0
SCHEMA = """
    CREATE TABLE IF NOT EXISTS pending (
        sink INTEGER, checkpoint INTEGER, word TEXT, count INTEGER, PRIMARY KEY (sink, checkpoint, word)
    );
    CREATE TABLE IF NOT EXISTS counts (word TEXT PRIMARY KEY, count INTEGER);
"""


def read_words(text: str | None) -> list[str]:
    """Return the words of a file, or of the documentation that Python contains."""
    found = "\n".join(topics.topics.values()) if text is None else Path(text).read_text("utf-8", errors="replace")
    return found.lower().split()


class WordSpout(Spout, StatefulComponent):
    """Emits words. Its position is operator state: the state of this task."""

    outputs = ("word",)

    def init_state(self, state: State) -> None:
        """Receive the state of the last checkpoint; at the first start it is empty."""
        self.state = state

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Continue with this task's share: every nth word of n tasks."""
        self.position = self.state.get("position") or 0
        mine = read_words(config["text"])[context.get_task_index() :: context.get_parallelism()]
        self.rest = islice(mine, self.position, None)

    def next_tuple(self) -> None:
        """Emit some words."""
        words = list(islice(self.rest, 20))
        for word in words:
            self.emit([word])
        self.position += len(words)
        if not words:
            self.end()

    def pre_save(self, checkpoint_id: str) -> None:
        """Put the position into the state."""
        self.state.put("position", self.position)


class SqliteSink(Bolt, ITwoPhaseStatefulComponent):
    """Adds the counts of each checkpoint to the table."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Open the database. `with self.database` is one transaction."""
        self.sink = context.get_task_id()
        self.database = sqlite3.connect(config["database"], timeout=LOCK_WAIT_S)
        self.database.executescript(SCHEMA)
        self.added: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Count a word of the present checkpoint."""
        self.added[tup.values[0]] += 1

    def pre_save(self, checkpoint_id: str) -> None:
        """First phase: store the rows with the id of the checkpoint. They are not part of the result yet."""
        rows = [(self.sink, int(checkpoint_id), word, count) for word, count in self.added.items()]
        with self.database:
            self.database.executemany("INSERT INTO pending VALUES (?, ?, ?, ?)", rows)
        self.added.clear()

    def post_save(self, checkpoint_id: str) -> None:
        """Second phase: add the rows of all complete checkpoints, and remove them, in one transaction.

        If this is called again, there are no such rows any more.
        """
        which = (self.sink, int(checkpoint_id))
        with self.database:
            self.database.execute(
                "INSERT INTO counts SELECT word, sum(count) FROM pending WHERE sink = ? AND checkpoint <= ? "
                "GROUP BY word ON CONFLICT (word) DO UPDATE SET count = count + excluded.count",
                which,
            )
            self.database.execute("DELETE FROM pending WHERE sink = ? AND checkpoint <= ?", which)

    def pre_restore(self, checkpoint_id: str) -> None:
        """Add what belongs to the checkpoint, and remove what is newer: the spout emits it again."""
        if checkpoint_id:
            self.post_save(checkpoint_id)
        with self.database:
            self.database.execute("DELETE FROM pending WHERE sink = ?", (self.sink,))


def exactly_once_sqlite(arguments: Sequence[str] = ()) -> TopologyBuilder:
    """Build the topology for these command-line arguments."""
    parser = argparse.ArgumentParser(prog="exactly_once_sqlite.py", description="counts words, each exactly once")
    parser.add_argument("--text", help="the text to count (default: Python's own documentation)")
    parser.add_argument("--database", default=DEFAULT_DATABASE, help="a new database (default: %(default)s)")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between checkpoints (default: 1)")
    options = parser.parse_args(arguments)
    if options.text is not None and not os.access(options.text, os.R_OK):
        parser.error(f"--text {options.text}: the file does not exist or is not readable")
    if not os.access(Path(options.database).resolve().parent, os.W_OK):
        parser.error(f"--database {options.database}: its folder does not exist or is not writable")

    builder = TopologyBuilder("exactly_once_sqlite")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: options.interval,
            # The components run in other processes with another working directory, so they need absolute paths.
            "text": str(Path(options.text).resolve()) if options.text else None,
            "database": str(Path(options.database).resolve()),
        }
    )
    words = builder.add_spout("words", WordSpout, par=2)
    builder.add_bolt("sink", SqliteSink, par=2, inputs={words: Grouping.fields("word")})
    return builder


if __name__ == "__main__":
    exactly_once_sqlite(sys.argv[1:]).build_and_submit()
