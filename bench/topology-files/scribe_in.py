"""A Scribe collector, and a bolt that counts its messages by category; with ``--columns 1``, both in columns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench_record import TICK_S, config_of, options
from column_word_count import AckedColumnCountBolt, ColumnCountBolt
from word_bolts import AckedCountBolt, CountBolt

from heron.api import Grouping, TopologyBuilder, api_constants
from heron_connector_scribe import ScribeSpout, ServiceOptions
from heron_connector_scribe.column_spout import ScribeColumnSpout


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, columns=0)
    builder = TopologyBuilder("ScribeIn")
    builder.set_config(config_of(chosen))
    service = ServiceOptions(ports=(0,), announce=str(Path(chosen.folder, "collectors")))
    spout = ScribeColumnSpout if chosen.columns else ScribeSpout
    lines = builder.add_spout("lines", spout, par=1, config=service.config())
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    bolts = (ColumnCountBolt, AckedColumnCountBolt) if chosen.columns else (CountBolt, AckedCountBolt)
    bolt = bolts[chosen.atleast]
    builder.add_bolt("last", bolt, par=1, inputs={lines: Grouping.fields("category")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
