"""The Yahoo streaming benchmark: the views of each campaign in windows of ten seconds of event time.

Ad events are filtered, projected to ad and time, and joined with the static table of campaigns. In the form ``rows``
the functions are called for each event, in the form ``columns`` for each batch.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from ad_events import CAMPAIGNS, AdEvent, ad_batches, ad_events
from replay import Tally

from heron.api import TopologyBuilder
from heron_streamlet import Builder, KeyedWindow, Streamlet, tumbling_window
from heron_streamlet.columns import ColumnStreamlet
from heron_streamlet.topology.topology_compiler import compile_topology

__all__ = ["WINDOW_S", "amount", "count_columns", "count_rows", "is_view", "joined", "projected"]

WINDOW_S = 10

_ADS, _CAMPAIGNS = pa.array(CAMPAIGNS.keys()), pa.array(CAMPAIGNS.values())

Count = tuple[KeyedWindow[Any], int]


def is_view(event: AdEvent) -> bool:
    return event.event_type == "view"


def projected(event: AdEvent) -> tuple[str, int]:
    return event.ad, event.time


def joined(view: tuple[str, int]) -> tuple[str, float]:
    """The campaign of the ad, and the time in seconds."""
    return CAMPAIGNS[view[0]], view[1] / 1000


def count_rows(events: Streamlet[AdEvent]) -> Streamlet[Count]:
    """The pipeline on records."""
    views = events.filter(is_view).map(projected).map(joined).event_time(lambda view: view[1])
    return views.key_by(lambda view: view[0]).count_by_key_and_window(tumbling_window(WINDOW_S))


def views_of(batch: pa.RecordBatch) -> pa.Array:
    return pc.equal(batch["event_type"], "view")


def with_campaign(batch: pa.RecordBatch) -> dict[str, Any]:
    return {"campaign": _CAMPAIGNS.take(pc.index_in(batch["ad"], _ADS)), "time": batch["time"]}


def count_columns(events: ColumnStreamlet) -> Streamlet[Count]:
    """The pipeline on columns. The columns that it needs are chosen first: a filter copies all that there are."""
    views = events.select("ad", "time", "event_type").filter_columns(views_of).select("ad", "time")
    timed = views.map_columns(with_campaign).event_time("time")
    return timed.count_by_key_and_window("campaign", tumbling_window(WINDOW_S))


def amount(result: Count) -> tuple[int, int]:
    """One result, and the square of its count: another distribution of the same events has another sum."""
    return 1, result[1] * result[1]


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the notes")
    parser.add_argument("--form", choices=("rows", "columns"), default="rows")
    parser.add_argument("--rounds", type=int, default=10, help="how often the block of events is given")
    parser.add_argument("--partitions", type=int, default=2, help="of the source")
    chosen = parser.parse_args(arguments)
    builder, given = Builder(), (chosen.rounds, chosen.partitions, chosen.folder)
    if chosen.form == "rows":
        counts = count_rows(builder.new_source(ad_events(*given)).set_num_partitions(chosen.partitions))
    else:
        counts = count_columns(builder.new_columns(ad_batches(*given)).set_num_partitions(chosen.partitions))
    counts.set_num_partitions(1).to_sink(Tally(chosen.folder, amount))
    return compile_topology("yahoo_ads", builder.graph(), {})


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
