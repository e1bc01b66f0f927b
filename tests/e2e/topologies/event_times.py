"""Windows of event time: two spouts with watermarks, of which one becomes idle, two tasks that count, and a record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

KEYS = 5
WINDOW_S = 10
END_S = (40, 15)
"""Where the event times of each spout task end; the second task is idle then."""


class TimedSpout(Spout):
    """Emits a row of each key for each second of event time; ends when the record has heard of the last time."""

    outputs = ("key", "time_s")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts at time 0."""
        self.heard = Path(config["out"], "heard")
        self.end_s = END_S[context.get_task_index()]
        self.time_s = 0

    def next_tuple(self) -> None:
        """Emits the rows of one second, and that they are complete."""
        if self.time_s < self.end_s:
            for key in range(KEYS):
                self.emit([f"k{key}", self.time_s], tup_id=f"k{key} {self.time_s}")
            self.time_s += 1
            self.emit_watermark(self.time_s, idle=self.time_s == min(END_S) == self.end_s)
        elif self.heard.exists():
            self.end()


class WindowBolt(Bolt):
    """Keeps the tuples of each key and window; emits their number and acks them when the watermark has passed."""

    outputs = ("key", "end_s", "rows")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no window."""
        self.windows: defaultdict[tuple[int, str], list[Tuple]] = defaultdict(list)

    def process(self, tup: Tuple) -> None:
        """Keeps."""
        key, time_s = tup.values
        self.windows[((time_s // WINDOW_S + 1) * WINDOW_S, key)].append(tup)

    def process_watermark(self, time_s: float) -> None:
        """Emits."""
        for end_s, key in sorted(each for each in self.windows if each[0] <= time_s):
            kept = self.windows.pop((end_s, key))
            self.emit([key, end_s, len(kept)], anchors=kept)
            for tup in kept:
                self.ack(tup)


class LastBolt(Bolt):
    """Stores each window, with the watermark at its arrival, and says when it has heard of the last time."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no window."""
        self.out, self.context = config["out"], context
        self.rows: list[Any] = []
        self.watermark_s: float | None = None

    def process(self, tup: Tuple) -> None:
        """Stores a window."""
        self.rows.append([*tup.values, self.watermark_s])
        self.ack(tup)

    def process_watermark(self, time_s: float) -> None:
        """Notes the time."""
        self.watermark_s = time_s
        if time_s == max(END_S):
            Path(self.out, "heard").touch()

    def finish(self) -> None:
        """Writes the windows."""
        write_result(self.out, self.context, self.rows)


if __name__ == "__main__":
    options = arguments(mode="ATMOST_ONCE")
    builder = TopologyBuilder("event_times")
    delivery = {api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode}
    builder.set_config({api_constants.TOPOLOGY_STMGRS: 2, "out": options.out, **delivery})
    timed = builder.add_spout("timed", TimedSpout, par=2)
    counted = builder.add_bolt("counted", WindowBolt, par=2, inputs={timed: Grouping.fields("key")})
    builder.add_bolt("last", LastBolt, par=1, inputs={counted: Grouping.SHUFFLE})
    builder.build_and_submit()
