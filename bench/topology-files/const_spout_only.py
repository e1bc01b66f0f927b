"""ConstSpoutOnly: a spout whose tuples have no consumer. It measures an emit."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench_record import config_of, options
from const_spout import ConstSpout

from heron.api import TopologyBuilder


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("ConstSpoutOnly")
    builder.set_config(config_of(chosen))
    builder.add_spout("last", ConstSpout, par=1)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
