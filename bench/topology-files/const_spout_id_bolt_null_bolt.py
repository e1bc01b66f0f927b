"""ConstSpoutIdBoltNullBolt: a constant that is passed on once before it is thrown away. What a second hop costs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench_record import TICK_S, options
from const_spout import BLOCK, ConstSpout, IdBolt, NullBolt

from heron.api import Grouping, TopologyBuilder, api_constants

EXPECTED = {"count": BLOCK}


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("ConstSpoutIdBoltNullBolt")
    builder.set_config({"folder": chosen.folder, "rounds": chosen.rounds})
    spout = builder.add_spout("spout", ConstSpout, par=1)
    bolt = builder.add_bolt("id", IdBolt, par=1, inputs={spout: Grouping.SHUFFLE})
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", NullBolt, par=1, inputs={bolt: Grouping.SHUFFLE}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
