"""ConstSpoutIdBoltNullBolt: a constant that one bolt forwards and another discards. It measures a second hop."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench_record import TICK_S, config_of, options
from const_spout import BLOCK, AckedConstSpout, AckedIdBolt, AckedNullBolt, ConstSpout, IdBolt, NullBolt

from heron.api import Grouping, TopologyBuilder, api_constants

EXPECTED = {"count": BLOCK}


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("ConstSpoutIdBoltNullBolt")
    builder.set_config(config_of(chosen))
    plain, acked = (ConstSpout, IdBolt, NullBolt), (AckedConstSpout, AckedIdBolt, AckedNullBolt)
    spout_class, id_class, null_class = acked if chosen.atleast else plain
    spout = builder.add_spout("spout", spout_class, par=1)
    bolt = builder.add_bolt("id", id_class, par=1, inputs={spout: Grouping.SHUFFLE})
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", null_class, par=1, inputs={bolt: Grouping.SHUFFLE}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
