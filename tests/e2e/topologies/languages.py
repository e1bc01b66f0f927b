"""Words of lines, split by a child process: every word arrives with its line and its place.

The spout emits a line again when its tree fails, and goes on while the folder of results has a file ``hold``. It writes
the number of its lines there. The last bolt writes ``line place word`` of all that it has received.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import RecordBolt, arguments, write_result

from heron.api import Grouping, Spout, State, StatefulComponent, TopologyBuilder, TopologyContext, Tuple
from heron_runtime_multilang import ShellBolt, ShellSpout

WORD = ("word", "line", "place")
TEXT = ("text", "line")


class Lines(Spout, StatefulComponent):
    """Emits each line until it is acked."""

    outputs = TEXT

    def init_state(self, state: State) -> None:
        """Keeps the state; it is empty unless there are checkpoints."""
        self.state = state

    def pre_save(self, checkpoint_id: str) -> None:
        """Keeps the position."""
        self.state.put("next", self.next)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins with the first line, or at the position of the checkpoint."""
        self.out, self.least, self.context = config["out"], config["lines"], context
        self.failed: deque[int] = deque()
        self.next = int(self.state.get("next") or 0)

    def next_tuple(self) -> None:
        """Emits a line."""
        if self.failed:
            self.emit_line(self.failed.popleft())
        elif self.next < self.least or Path(self.out, "hold").exists():
            self.emit_line(self.next)
            self.next += 1
        else:
            write_result(self.out, self.context, [self.next])
            self.end()

    def emit_line(self, number: int) -> None:
        """Emits this line."""
        self.emit([f"word{number % 7} word{number % 5}", number], tup_id=number)

    def fail(self, tup_id: object) -> None:
        """Emits it again."""
        assert isinstance(tup_id, int)
        self.failed.append(tup_id)


class Words(RecordBolt, StatefulComponent):
    """Records words."""

    def init_state(self, state: State) -> None:
        """Keeps the state."""
        self.state = state

    def pre_save(self, checkpoint_id: str) -> None:
        """Keeps the words."""
        self.state.put("rows", list(self.rows))

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins with the words of the checkpoint."""
        super().initialize(config, context)
        self.rows = list(self.state.get("rows") or [])

    def process(self, tup: Tuple) -> None:
        """Stores a word."""
        word, number, place = tup.values
        self.rows.append([number, place, word])
        self.ack(tup)


if __name__ == "__main__":
    given = arguments(lines=1000, mode="ATMOST_ONCE", child="{}", spout="", par=2)
    builder = TopologyBuilder("languages")
    config = {
        "out": given.out,
        "lines": given.lines,
        "topology.message.timeout.secs": 60,
        "topology.max.spout.pending": 500,
    }
    every = {"topology.stateful.checkpoint.interval.seconds": 1} if given.mode == "EFFECTIVELY_ONCE" else {}
    builder.set_config({**config, **every, "topology.reliability.mode": given.mode})
    if given.spout:
        lines = ShellSpout.spec(name="lines", resources="parts", outputs=TEXT, **json.loads(given.spout))
        builder.add_spec(lines)
    else:
        lines = builder.add_spout("lines", Lines, par=1)
    split = ShellBolt.spec(
        name="split", inputs=[lines], par=given.par, resources="parts", outputs=WORD, **json.loads(given.child)
    )
    builder.add_spec(split)
    builder.add_bolt("words", Words, par=1, inputs={split: Grouping.LOWEST})
    builder.build_and_submit()
