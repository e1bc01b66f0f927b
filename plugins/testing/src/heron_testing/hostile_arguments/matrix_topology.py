"""The topology that calls with hostile arguments, for the simulator and for processes."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from heron.api import Grouping, TopologyBuilder
from heron_testing.hostile_arguments.calls import CALLS, Caller
from heron_testing.hostile_arguments.components import OTHER_STREAMS, Place, Source

__all__ = ["topology_of"]


def topology_of(
    author: ModuleType, place: Place, chosen: Sequence[tuple[int, str]], *, out: str = ""
) -> TopologyBuilder:
    """The topology that calls for some cells, which are given by the number of the call and the argument.

    With `out`, a folder, its processes run many cells and write there what arrived; errors of `initialize` and `finish`
    are then reported, because they would end the run.
    """
    callers = {CALLS[call].caller for call, _ in chosen}
    builder = TopologyBuilder("hostile")
    builder.set_config(
        {
            "topology.reliability.mode": "ATLEAST_ONCE",
            "topology.enable.message.timeouts": False,
            "place": place,
            "cells": [list(each) for each in chosen],
            "grouping": Caller.GROUPING in callers,
            "out": out,
        }
    )
    named = [name for name in OTHER_STREAMS if any(f'"{name}"' in CALLS[call].line for call, _ in chosen)]
    named += ["chosen"] if Caller.GROUPING in callers else []
    streams = [OTHER_STREAMS[name] for name in named]
    if Caller.SPOUT in callers:
        hostile = builder.add_spout("hostile", author.AuthorSpout, 1, optional_outputs=streams)
    else:
        source = builder.add_spout("source", Source, 1)
        ticks = {"topology.tick.tuple.freq.secs": 0.05 if out else 1} if place is Place.TICK else {}
        hostile = builder.add_bolt("hostile", author.AuthorBolt, 1, {source: Grouping.SHUFFLE}, ticks, streams)
    groupings = {
        "keyed": Grouping.fields("value"),
        "partial": Grouping.PARTIAL_KEY("value"),
        "columns": Grouping.SHUFFLE,
        "direct": Grouping.DIRECT,
        "chosen": Grouping.custom(author.AuthorGrouping),
    }
    inputs = {hostile["default"]: Grouping.SHUFFLE, hostile["neighbour"]: Grouping.SHUFFLE}
    builder.add_bolt("sink", author.AuthorSink, 1, {**inputs, **{hostile[name]: groupings[name] for name in named}})
    return builder
