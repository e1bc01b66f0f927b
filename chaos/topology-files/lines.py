"""The chaos topology. Its trees have two levels, and the last bolts write each part to a file before they ack it.

Each spout numbers its lines from 0. It stores the position below which all lines are acked, continues there in its next
life, and records each life and each failed tree. A split bolt makes two parts of a line. The last bolts append every
part that they receive to a file. `line_files` describes the files.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from line_files import LINE, PARTS, Flow, LineTag, Log, Position, options

from heron.api import Bolt, CounterState, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

KEYS = 1009
EMITS_A_CALL = 100
LOOK_EVERY_S = 0.05
POSITION_EVERY = 2_000


class LineSpout(Spout):
    """Makes lines at its rate since its first life, so it catches up after an outage."""

    outputs = ("tag",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start at the position of the life before."""
        self.index = context.get_task_index()
        self.folder = Path(config["folder"])
        self.rate = config["rate"] / context.get_parallelism()
        self.kept = Position(self.folder / f"position-{self.index}")
        self.position = self.made = self.kept.read()
        self.began_s, life = self.next_life()
        self.tag = LineTag(self.index, life)
        self.failed = Log(self.folder / f"failed-{self.index}")
        self.strange = Log(self.folder / f"strange-{self.index}")
        self.flow = Flow(self.folder, context)
        self.acked_ahead: set[int] = set()
        self.attempts: dict[int, int] = {}
        self.replays: deque[int] = deque()
        self.stopping = False
        self.look_at_s = 0.0

    def next_life(self) -> tuple[float, int]:
        """Return the start time of the first life and the number of this life; append a line for this life."""
        path = self.folder / f"lives-{self.index}"
        lives = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        Log(path).write(f"{self.position} {time.monotonic()}\n".encode())
        return float(lives[0].split()[1]) if lives else time.monotonic(), len(lives)

    def next_tuple(self) -> None:
        """Emit replays first, then the lines that are due."""
        if self.replays:
            for _ in range(min(EMITS_A_CALL, len(self.replays))):
                line = self.replays.popleft()
                self.emit([self.tag.of(line, self.attempts[line])], tup_id=line)
            return
        now_s = time.monotonic()
        if now_s >= self.look_at_s:
            self.look_at_s = now_s + LOOK_EVERY_S
            self.stopping = Path(self.folder, "stop").exists()
        if self.stopping:
            due = self.flow.lines - self.made  # includes the lines of earlier lives
        else:
            due = int((now_s - self.began_s) * self.rate) - self.made if self.rate else EMITS_A_CALL
        if self.stopping and not due and self.position == self.made:
            self.kept.write(self.position)
            self.end()
        for line in range(self.made, self.made + min(due, EMITS_A_CALL)):
            self.emit([self.tag.of(line, 0)], tup_id=line)
            self.made = line + 1
        self.flow.lines = self.made

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Advance the position."""
        if self.attempts:
            self.attempts.pop(tup_id, None)
        if tup_id == self.position:
            self.position += 1
            while self.position in self.acked_ahead:
                self.acked_ahead.remove(self.position)
                self.position += 1
            if self.position >= self.kept.written + POSITION_EVERY:
                self.kept.write(self.position)
        elif tup_id < self.position or tup_id in self.acked_ahead:
            self.strange.write(f"line {tup_id} was acked twice\n".encode())
        else:
            self.acked_ahead.add(tup_id)
        self.flow.handled(self.index, tup_id)

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Record the failure and queue the line for replay."""
        attempt = self.attempts.get(tup_id, 0)
        self.failed.write_tag(self.tag.of(tup_id, attempt))
        self.attempts[tup_id] = attempt + 1
        self.replays.append(tup_id)


class SplitBolt(Bolt):
    """Makes two parts of a line, which usually go to different tasks."""

    outputs = ("key", "tag")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Open the flow file."""
        self.flow = Flow(Path(config["folder"]), context)

    def process(self, tup: Tuple) -> None:
        (tag,) = tup.values
        for part in range(PARTS):
            self.emit([((tag & LINE) + part * 500) % KEYS, LineTag.with_part(tag, part)], anchors=[tup])
        self.ack(tup)
        self.flow.handled(LineTag.spout(tag), tag & LINE)


class JournalBolt(Bolt):
    """Writes each received part to a journal, and may count the parts of each key."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Open the journal of this task."""
        folder = self.folder = Path(config["folder"])
        self.task_id = context.get_task_id()
        self.counts = context.keyed_state("parts", CounterState[int]) if config["state"] else None
        self.journal = Log(folder / f"journal-{context.get_task_index()}") if config["journal"] else None
        self.flow = Flow(folder, context)

    def process(self, tup: Tuple) -> None:
        """Write the part to the file, then ack it."""
        key, tag = tup.values
        if self.journal is not None:
            self.journal.write_tag(tag)
        if self.counts is not None:
            self.counts.add(key)
        self.ack(tup)
        self.flow.handled(LineTag.spout(tag), tag & LINE)

    def finish(self) -> None:
        """Write the counts of this task's keys to a file."""
        if self.counts is not None:
            path = self.folder / f"counts-{self.task_id}"
            path.with_suffix(".new").write_text(json.dumps(dict(self.counts.items())), encoding="utf-8")
            path.with_suffix(".new").replace(path)


if __name__ == "__main__":
    chosen = options()
    builder = TopologyBuilder("chaos")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
            # Without timeouts, a lost line is replayed only if the engine notices the loss.
            api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: False,
            api_constants.TOPOLOGY_MAX_SPOUT_PENDING: 20_000,
            "folder": chosen.folder,
            "rate": chosen.rate,
            "journal": chosen.journal,
            "state": chosen.state,
            **({api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: 1.0} if chosen.state else {}),
        }
    )
    lines = builder.add_spout("lines", LineSpout, par=2)
    split = builder.add_bolt("split", SplitBolt, par=2, inputs={lines: Grouping.SHUFFLE})
    builder.add_bolt("journal", JournalBolt, par=4, inputs={split: Grouping.fields("key")})
    builder.build_and_submit()
