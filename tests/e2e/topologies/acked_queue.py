"""Messages of queues that are delivered again until they are acked, counted in keyed state, at least once.

Folder ``acked`` is the record of the broker: one file for each queue, with the numbers that were acked. Each message
carries its queue and number. At the end the counts of all messages are written, one file for each task.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import RecordBolt, arguments

from heron.api import Bolt, Grouping, MapState, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

QUEUES = 12
MESSAGES = 800  # of each queue
_UNACKED = 400  # of each task


class QueueSpout(Spout):
    """Takes messages of the queues that its task owns, and acks them."""

    outputs = ("queue", "number")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Asks for everything that was not acked before."""
        self.record = Path(config["out"], "acked")
        self.record.mkdir(exist_ok=True)
        self.waiting: deque[tuple[int, int]] = deque()
        self.unacked: set[tuple[int, int]] = set()
        self.held = Path(config["out"], "hold")
        for number in range(MESSAGES):
            self.waiting += [(queue, number) for queue in range(QUEUES) if context.owns(queue)]
        acked = {each for queue in range(QUEUES) for each in self._acked(queue)}
        self.waiting = deque(each for each in self.waiting if each not in acked)

    def next_tuple(self) -> None:
        """Emits a message; the last ones wait as long as there is a file ``hold``."""
        if not self.waiting:
            if not self.unacked:
                self.end()
            return
        if len(self.unacked) >= _UNACKED or (self.waiting[0][1] > MESSAGES // 2 and self.held.exists()):
            return
        message = self.waiting.popleft()
        self.unacked.add(message)
        self.emit([*message], tup_id=message)
        time.sleep(0.0005)  # some processor time is left for the commands of a test

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """The broker forgets the message."""
        self.unacked.discard(tup_id)
        with (self.record / str(tup_id[0])).open("a", encoding="utf-8") as record:
            record.write(f"{tup_id[1]}\n")

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """The broker delivers the message again."""
        if tup_id in self.unacked:
            self.unacked.discard(tup_id)
            self.waiting.appendleft(tup_id)

    def _acked(self, queue: int) -> list[tuple[int, int]]:
        record = self.record / str(queue)
        lines = record.read_text(encoding="utf-8").split("\n")[:-1] if record.exists() else []
        return [(queue, int(line)) for line in lines]


class CountBolt(Bolt):
    """Counts each message in keyed state."""

    outputs = ("queue", "number", "count")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes its state."""
        self.counts: MapState[int, int, int] = context.keyed_state("counts", MapState)

    def process(self, tup: Tuple) -> None:
        """Counts a message."""
        queue, number = tup.values
        self.counts.put(queue, number, (self.counts.get(queue, number) or 0) + 1)
        self.ack(tup)

    def finish(self) -> None:
        """Emits all counts."""
        for queue in list(self.counts.keys()):
            for number in self.counts.fields(queue):
                self.emit([queue, number, self.counts.get(queue, number)])


class AckedRecordBolt(RecordBolt):
    """Stores the counts, and acks them."""

    def process(self, tup: Tuple) -> None:
        """Stores a count."""
        super().process(tup)
        self.ack(tup)


if __name__ == "__main__":
    options = arguments(interval=0.5)
    builder = TopologyBuilder("acked_queue")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: api_constants.TopologyReliabilityMode.ATLEAST_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: options.interval,
            "out": options.out,
        }
    )
    read = builder.add_spout("read", QueueSpout, par=2)
    count = builder.add_bolt("count", CountBolt, par=2, inputs={read: Grouping.fields("queue")})
    builder.add_bolt("record", AckedRecordBolt, par=1, inputs={count: Grouping.ALL})
    builder.build_and_submit()
