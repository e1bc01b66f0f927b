"""BackPressure: a bolt that is much slower than its spout, and later as fast as it can be. Nothing may be lost."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_record import TICK_S, config_of, options
from const_spout import AckedConstSpout, ConstSpout, NullBolt

from heron.api import Grouping, TopologyBuilder, TopologyContext, Tuple, api_constants

BLOCK = 1_000
EXPECTED = {"count": BLOCK}
RECOVERY_FILE = "recovered"
PAUSE_S = 0.01
PER_PAUSE = 100  # tuples between two pauses: at most 10,000 a second


class TextSpout(ConstSpout):
    """Emits texts of a hundred bytes."""

    block = tuple(f"{number:0100}" for number in range(BLOCK))


class AckedTextSpout(AckedConstSpout):
    """Emits each text with an id."""

    block = TextSpout.block


class SlowBolt(NullBolt):
    """Sleeps after every hundredth tuple, until it has recovered."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.recovery = Path(config["folder"]) / RECOVERY_FILE

    def process(self, tup: Tuple) -> None:
        self.count += 1
        if self.count % PER_PAUSE == 0 and not self.recovery.exists():
            time.sleep(PAUSE_S)


class AckedSlowBolt(SlowBolt):
    """Acks each tuple that it counts."""

    def process(self, tup: Tuple) -> None:
        super().process(tup)
        self.ack(tup)


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("BackPressure")
    builder.set_config(config_of(chosen))
    spout_class, bolt_class = (AckedTextSpout, AckedSlowBolt) if chosen.atleast else (TextSpout, SlowBolt)
    spout = builder.add_spout("spout", spout_class, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", bolt_class, par=1, inputs={spout: Grouping.SHUFFLE}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
