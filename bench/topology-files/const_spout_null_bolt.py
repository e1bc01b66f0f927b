"""ConstSpoutNullBolt: a spout that emits one constant, and a bolt that discards it. It measures the cheapest hop."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench_record import TICK_S, config_of, options
from const_spout import BLOCK, AckedConstSpout, AckedNullBolt, ConstSpout, NullBolt

from heron.api import Grouping, TopologyBuilder, api_constants

EXPECTED = {"count": BLOCK}


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("ConstSpoutNullBolt")
    builder.set_config(config_of(chosen))
    spout_class, bolt_class = (AckedConstSpout, AckedNullBolt) if chosen.atleast else (ConstSpout, NullBolt)
    spout = builder.add_spout("spout", spout_class, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", bolt_class, par=1, inputs={spout: Grouping.SHUFFLE}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
