"""Counts elements by key in a view: live with two partitions that wait in their middle, and by a batch over history."""

from __future__ import annotations

from pathlib import Path

from gated import Gated, key_of
from recording import arguments

from heron_streamlet import Builder, Config, Runner
from heron_streamlet.views import Count, HistoryAndLive, View

VIEW = View("keys", Count(), span=1.0)
HISTORY_UNTIL = 2.5  # its last span is not complete


def pipeline(gate: Path | None, history: Path | None = None) -> Builder:
    """The pipeline; a lag that nothing exceeds, so that each element counts."""
    builder = Builder()
    source = HistoryAndLive(Gated(history), Gated(gate), until=HISTORY_UNTIL)
    timed = builder.new_source(source).set_num_partitions(2).event_time(lambda element: element[0], lag=60)
    timed.key_by(key_of).to_view(VIEW)
    return builder


if __name__ == "__main__":
    options = arguments(containers=2, history="")
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.3})
    config.set_delivery_semantics(Config.EFFECTIVELY_ONCE).set_num_containers(options.containers)
    wait = Path(options.history) if options.history else None
    Runner().run("viewed_counts", config, pipeline(Path(options.out) / "go", wait))
