"""The constant spout, and bolts that do almost nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from bench_record import CountLog, repeated

from heron.api import Bolt, Spout, TopologyContext, Tuple

BLOCK = 5_000


class ConstSpout(Spout):
    """Emits the same string without end."""

    outputs = ("text",)
    block: Sequence[str] = ("some data",) * BLOCK

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.texts = repeated(self.block, config, context)

    def next_tuple(self) -> None:
        for text in self.texts:
            self.emit([text])
            return
        self.end()


class AckedConstSpout(ConstSpout):
    """Emits each tuple with an id."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.next_id = count().__next__

    def next_tuple(self) -> None:
        for text in self.texts:
            self.emit([text], self.next_id())
            return
        self.end()


class IdBolt(Bolt):
    """Emits each tuple that it receives."""

    outputs = ("text",)

    def process(self, tup: Tuple) -> None:
        self.emit(tup.values)


class AckedIdBolt(IdBolt):
    """Anchors each emitted tuple to the received one, and acks that."""

    def process(self, tup: Tuple) -> None:
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)


class NullBolt(Bolt):
    """Counts the tuples and discards them."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.record = CountLog(config, context)
        self.count = 0

    def process(self, tup: Tuple) -> None:
        self.count += 1

    def process_tick(self, tup: Tuple) -> None:
        self.record.note(self.count)

    def finish(self) -> None:
        self.record.conclude({"count": self.count})


class AckedNullBolt(NullBolt):
    """Acks each tuple that it counts."""

    def process(self, tup: Tuple) -> None:
        self.count += 1
        self.ack(tup)
