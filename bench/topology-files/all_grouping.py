"""AllGrouping: every tuple goes to every task of the bolt."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench_record import TICK_S, options
from const_spout import BLOCK, ConstSpout, NullBolt

from heron.api import Grouping, TopologyBuilder, api_constants

TASKS = 4
EXPECTED = {"count": BLOCK * TASKS}


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("AllGrouping")
    builder.set_config({"folder": chosen.folder, "rounds": chosen.rounds})
    spout = builder.add_spout("spout", ConstSpout, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", NullBolt, par=TASKS, inputs={spout: Grouping.ALL}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
