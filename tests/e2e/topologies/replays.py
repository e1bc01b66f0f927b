"""Numbers at least once, each through four bolts with different habits; what fails, expires or is late comes again.

Spout and last bolt record the calls and the numbers that they get.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from recording import arguments, write_result

from heron.api import (
    Bolt,
    Grouping,
    Spout,
    TopologyBuilder,
    TopologyContext,
    TumblingWindowBolt,
    Tuple,
    WindowContext,
    api_constants,
)

FAILED, FORGOTTEN, LATE = 3, 4, 5
"""The last digits of the numbers that `OddBolt` treats differently."""


class NumberSpout(Spout):
    """Emits numbers and ends at once; emits failed numbers again."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Queues all numbers."""
        self.out, self.context = config["out"], context
        self.waiting = deque(range(config["numbers"]))
        self.acked: list[int] = []
        self.failed: list[int] = []
        self.open = self.most_open = 0

    def next_tuple(self) -> None:
        """Emits a number."""
        if self.waiting:
            number = self.waiting.popleft()
            self.emit([number], tup_id=number)
            self.open += 1
            self.most_open = max(self.open, self.most_open)
        else:
            self.end()  # replays are still allowed

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Records a complete tree."""
        self.acked.append(tup_id)
        self.open -= 1

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Queues the number for replay."""
        self.failed.append(tup_id)
        self.waiting.append(tup_id)
        self.open -= 1

    def close(self) -> None:
        """Writes all records."""
        write_result(self.out, self.context, [self.acked, self.failed, [self.most_open]])


class PassBolt(Bolt):
    """Forwards numbers and acks them; its subclasses treat some of them differently."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no number."""
        self.seen: Counter[int] = Counter()
        self.context = context

    def process(self, tup: Tuple) -> None:
        """Forwards a number."""
        self.seen[tup.values[0]] += 1
        self.pass_on(tup)

    def pass_on(self, tup: Tuple) -> None:
        """Forwards and acks a number normally."""
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)


class OddBolt(PassBolt):
    """Fails some numbers when they first come, keeps some, and forgets some if trees expire."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with nothing kept."""
        super().initialize(config, context)
        self.kept: dict[int, tuple[float, Tuple]] = {}
        self.expires = config[api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS]
        self.keeps_s = math.inf if self.expires else config[api_constants.TOPOLOGY_MESSAGE_TIMEOUT_SECS] + 0.5

    def process(self, tup: Tuple) -> None:
        """Forwards a kept number before its replay, and treats some numbers differently when they first come."""
        number = tup.values[0]
        self.seen[number] += 1
        if late := self.kept.pop(number, None):
            self.pass_on(late[1])
        if self.seen[number] > 1:
            self.pass_on(tup)
        elif number % 10 == FAILED:
            self.emit(tup.values, anchors=[tup])
            self.fail(tup)
            self.ack(tup)  # too late
        elif number % 10 == LATE:
            self.kept[number] = time.monotonic() + self.keeps_s, tup
        elif number % 10 != FORGOTTEN or not self.expires:
            self.pass_on(tup)

    def process_tick(self, tup: Tuple) -> None:
        """Forwards the numbers that were kept for long enough."""
        for number in [number for number, (until_s, _) in self.kept.items() if until_s < time.monotonic()]:
            self.pass_on(self.kept.pop(number)[1])
        self.ack(tup)  # the ack of a tick is counted and harmless


class ThreadBolt(PassBolt):
    """Forwards everything in a separate thread."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts the thread."""
        super().initialize(config, context)
        self.collector = context.threadsafe_collector()
        self.work: deque[Tuple] = deque()
        self.more = threading.Semaphore(0)
        threading.Thread(target=self.run, daemon=True).start()

    def process(self, tup: Tuple) -> None:
        """Queues the tuple for the thread."""
        self.work.append(tup)
        self.more.release()

    def run(self) -> None:
        """Runs in the thread and delays some tuples."""
        while self.more.acquire():
            tup = self.work.popleft()
            if tup.values[0] % 100 == 99:
                time.sleep(0.02)  # slow user code: other tuples overtake these
            self.collector.emit(tup.values, anchors=[tup])
            self.collector.ack(tup)


class WindowBolt(TumblingWindowBolt):
    """Forwards whole windows; their tuples are acked when they leave the window."""

    outputs = ("number",)

    def processWindow(self, window_info: WindowContext, tuples: list[Tuple]) -> None:
        """Emits one number for each of the window, anchored to all of it."""
        for tup in tuples:
            self.emit(tup.values, anchors=tuples)


class FinishBolt(PassBolt):
    """Forwards only at the end, through its own `emit`."""

    def pass_on(self, tup: Tuple) -> None:
        """Keeps the number."""
        self.ack(tup)

    def emit(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # as in the base class
        """Wraps `emit` as an author may."""
        return super().emit(*arguments, **named)

    def finish(self) -> None:
        """Forwards all numbers."""
        for number in self.seen:
            self.emit([number])


class LastBolt(Bolt):
    """Counts each number by the bolt that sent it; it fails the first copy of each number of a `finish`."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no count."""
        self.out, self.context = config["out"], context
        self.seen: Counter[tuple[str, int]] = Counter()

    def process(self, tup: Tuple) -> None:
        """Counts a number, and acks it twice."""
        key = tup.component, tup.values[0]
        self.seen[key] += 1
        if tup.component == "finishing" and self.seen[key] == 1:
            self.fail(tup)
        self.ack(tup)
        self.ack(tup)

    def finish(self) -> None:
        """Writes the counts."""
        write_result(self.out, self.context, [[*key, times] for key, times in self.seen.items()])


BOLTS = {"odd": OddBolt, "threaded": ThreadBolt, "windowed": WindowBolt, "finishing": FinishBolt}

if __name__ == "__main__":
    options = arguments(numbers=300, timeout=30, pending=0)
    builder = TopologyBuilder("replays")
    config: dict[str, object] = {
        api_constants.TOPOLOGY_STMGRS: 2,
        api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
        api_constants.TOPOLOGY_MESSAGE_TIMEOUT_SECS: abs(options.timeout),
        api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: options.timeout > 0,
        "out": options.out,
        "numbers": options.numbers,
    }
    if options.pending:
        config[api_constants.TOPOLOGY_MAX_SPOUT_PENDING] = options.pending
    builder.set_config(config)
    numbers = builder.add_spout("numbers", NumberSpout, par=1)
    of_bolt: dict[str, dict[str, object]] = {
        "odd": {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.1},
        "windowed": {TumblingWindowBolt.WINDOW_DURATION_SECS: 0.3},
    }
    bolts = [
        builder.add_bolt(name, bolt, 1, {numbers: Grouping.SHUFFLE}, config=of_bolt.get(name, {}))
        for name, bolt in BOLTS.items()
    ]
    builder.add_bolt("last", LastBolt, par=2, inputs={bolt: Grouping.fields("number") for bolt in bolts})
    builder.build_and_submit()
