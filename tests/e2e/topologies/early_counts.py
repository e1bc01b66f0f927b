"""Counts by key and hour of event time, of two partitions; writes early and final results to folders.

Each partition stops in its middle until there is a file ``go`` among the results. All elements are in one hour.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gated import Gated, key_of
from recording import arguments

from heron_streamlet import Builder, Config, KeyedWindow, Runner, TextFolder, WindowResult, tumbling_window


def pipeline(out: Path, gate: Path | None) -> Builder:
    """The pipeline; a stage before the windows combines what it passes on."""
    builder = Builder()
    source = builder.new_source(Gated(gate)).set_num_partitions(2)
    events = source.event_time(lambda element: 10 + element[0], lag=5).repartition(2)
    counts = events.key_by(key_of).count_by_key_and_window(tumbling_window(3600))
    counts.map(line_of).to_sink(TextFolder(out / "counts"))
    counts.early(0.1).map(early_line_of).to_sink(TextFolder(out / "early"))
    return builder


def line_of(result: Any) -> str:  # noqa: ANN401  # a key and window, and the count
    """A line of the final results."""
    place, count = result
    return f"{place.key} {count}"


def early_line_of(result: WindowResult[KeyedWindow[str], int]) -> str:
    """A line of the results so far."""
    return f"{result.window.key} {result.result} {'final' if result.final else 'early'}"


if __name__ == "__main__":
    options = arguments()
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.3})
    config.set_delivery_semantics(Config.EFFECTIVELY_ONCE).set_num_containers(2)
    results = Path(options.out)
    Runner().run("early_counts", config, pipeline(results, results / "go"))
