"""Ticks, a tumbling and a sliding window, several streams, emits from a separate thread, and results of `finish`."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from recording import RecordBolt, arguments, write_result

from heron.api import (
    Bolt,
    Grouping,
    SlidingWindowBolt,
    Spout,
    Stream,
    TopologyBuilder,
    TopologyContext,
    TumblingWindowBolt,
    Tuple,
    WindowContext,
    api_constants,
)

NUMBERS = 300
TICKS = 5


class ThreadSpout(Spout):
    """Emits on two streams from a separate thread; ends when the tick bolt has ticked five times."""

    outputs = ("number", Stream(fields=["number", "square"], name="squares"))

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts the thread."""
        collector = context.threadsafe_collector()

        def produce() -> None:
            pause = threading.Event()
            for number in range(NUMBERS):
                collector.emit([number])
                collector.emit([number, number**2], stream="squares")
                pause.wait(0.004)  # so that the numbers fall into several windows
            while not Path(config["out"], "ticked").exists():
                pause.wait(0.01)
            collector.end()

        threading.Thread(target=produce, daemon=True).start()

    def next_tuple(self) -> None:
        """Does nothing: the thread emits."""


class TickBolt(Bolt):
    """Counts tuples. At the end it emits the count and the shortest time between two ticks on two streams."""

    outputs = ("count", Stream(fields=["gap_s"], name="ticks"))

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.count = 0
        self.ticks: list[float] = []
        self.ticked = Path(config["out"], "ticked")

    def process(self, tup: Tuple) -> None:
        """Counts."""
        assert tup.stream == "default"
        assert not self.is_tick(tup)
        self.count += 1

    def process_tick(self, tup: Tuple) -> None:
        """Records the time."""
        assert self.is_tick(tup)
        self.ticks.append(time.monotonic())
        if len(self.ticks) == TICKS:
            self.ticked.touch()

    def finish(self) -> None:
        """Emits both results, which must reach the recorder."""
        self.emit([self.count])
        self.emit([min(later - former for former, later in pairwise(self.ticks))], stream="ticks")


class Windows:
    """The common part of both window bolts."""

    windows: list[Any]

    def keep(self, info: WindowContext, tuples: list[Tuple]) -> None:
        """Stores its span and numbers."""
        self.windows.append([info.end - info.start, [tup.values[0] for tup in tuples]])


class TumblingBolt(TumblingWindowBolt, Windows):
    """Stores its windows."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no window."""
        super().initialize(config, context)
        self.out, self.context, self.windows = config["out"], context, []

    def processWindow(self, window_info: WindowContext, tuples: list[Tuple]) -> None:
        """Stores a window."""
        self.keep(window_info, tuples)

    def finish(self) -> None:
        """Emits the last window, then writes all of them."""
        super().finish()
        write_result(self.out, self.context, self.windows)


class SlidingBolt(SlidingWindowBolt, Windows):
    """Stores its windows."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no window."""
        super().initialize(config, context)
        self.out, self.context, self.windows = config["out"], context, []

    def processWindow(self, window_info: WindowContext, tuples: list[Tuple]) -> None:
        """Stores a window."""
        self.keep(window_info, tuples)

    def finish(self) -> None:
        """Emits the last window, then writes all of them."""
        super().finish()
        write_result(self.out, self.context, self.windows)


if __name__ == "__main__":
    options = arguments()
    builder = TopologyBuilder("features")
    builder.set_config({"out": options.out})
    spout = builder.add_spout("numbers", ThreadSpout, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.1}
    ticks = builder.add_bolt("ticks", TickBolt, par=1, inputs={spout: Grouping.ALL}, config=every)
    both = {ticks["default"]: Grouping.SHUFFLE, ticks["ticks"]: Grouping.SHUFFLE}
    builder.add_bolt("record", RecordBolt, par=1, inputs=both)
    builder.add_bolt("squares", RecordBolt, par=1, inputs={spout["squares"]: Grouping.SHUFFLE})
    tumbling = {TumblingWindowBolt.WINDOW_DURATION_SECS: 0.25}
    builder.add_bolt("tumbling", TumblingBolt, par=1, inputs={spout: Grouping.ALL}, config=tumbling)
    sliding = {SlidingWindowBolt.WINDOW_DURATION_SECS: 0.5, SlidingWindowBolt.WINDOW_SLIDEINTERVAL_SECS: 0.25}
    builder.add_bolt("sliding", SlidingBolt, par=1, inputs={spout: Grouping.ALL}, config=sliding)
    builder.build_and_submit()
