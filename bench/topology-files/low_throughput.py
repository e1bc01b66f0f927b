"""LowThroughput: tuples at a given rate. Each latency is from the due time of the tuple until the bolt has it.

The delay of a late emit counts too, because the tuple was due earlier.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bench_record import STOP_FILE, TICK_S, CountLog, Latencies, config_of, options

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

LOOK_EVERY_S = 0.05


class PacedSpout(Spout):
    """Emits each tuple when it is due."""

    outputs: ClassVar[tuple[str, ...]] = ("due_s",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.stop = Path(config["folder"]) / STOP_FILE
        self.record = CountLog(config, context)
        self.period_s = 1 / config["rate"]
        self.start_s = self.look_s = time.monotonic()
        self.sent = 0
        self.ended = False

    def next_tuple(self) -> None:
        due_s = self.start_s + self.sent * self.period_s
        now_s = time.monotonic()
        if now_s >= due_s and not self.ended:
            self.send(due_s)
            self.sent += 1
        if now_s >= self.look_s:
            self.look_s = now_s + LOOK_EVERY_S
            if not self.ended and self.stop.exists():
                self.record.conclude(self.sent)
                self.ended = True  # the remaining calls of this round emit nothing
                self.end()

    def send(self, due_s: float) -> None:
        self.emit([due_s])


class AckedPacedSpout(PacedSpout):
    """Emits each tuple with an id."""

    def send(self, due_s: float) -> None:
        self.emit([due_s], self.sent)


class LatencyBolt(Bolt):
    """Records the latency of each tuple."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.record = CountLog(config, context)
        self.latencies = Latencies(config, context)
        self.note = self.latencies.pairs.extend

    def process(self, tup: Tuple) -> None:
        due_s = tup.values[0]
        self.note((due_s, time.monotonic() - due_s))

    def process_tick(self, tup: Tuple) -> None:
        self.record.note(len(self.latencies.pairs) // 2)

    def finish(self) -> None:
        self.latencies.conclude()
        self.record.conclude({"count": len(self.latencies.pairs) // 2})


class AckedLatencyBolt(LatencyBolt):
    """Acks each tuple that it has recorded."""

    def process(self, tup: Tuple) -> None:
        super().process(tup)
        self.ack(tup)


EXPECTED = {"count": 1}  # per tuple that the spout reports as sent


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, rate=1_000)
    builder = TopologyBuilder("LowThroughput")
    builder.set_config(config_of(chosen, rate=chosen.rate))
    spout_class, bolt_class = (AckedPacedSpout, AckedLatencyBolt) if chosen.atleast else (PacedSpout, LatencyBolt)
    spout = builder.add_spout("spout", spout_class, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", bolt_class, par=1, inputs={spout: Grouping.SHUFFLE}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
