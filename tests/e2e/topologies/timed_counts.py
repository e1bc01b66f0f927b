"""Counts per second of event time, with late elements, of two partitions; writes results and late elements to folders.

Each partition stops in its middle until there is a file ``go`` among the results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gated import Gated, key_of
from recording import arguments

from heron_streamlet import Builder, Config, Runner, TextFolder, sliding_window


def pipeline(out: Path, gate: Path | None) -> Builder:
    """The pipeline."""
    builder = Builder()
    source = builder.new_source(Gated(gate)).set_num_partitions(2)
    pairs = source.event_time(lambda element: element[0], lag=0.5).key_by(key_of, lambda _: 1)
    counts = pairs.reduce_by_key_and_window(sliding_window(1, 0.5), lambda one, other: one + other)
    counts.map(line_of).to_sink(TextFolder(out / "counts"))
    counts.late.map(lambda pair: pair[0]).to_sink(TextFolder(out / "late"))
    return builder


def line_of(result: Any) -> str:  # noqa: ANN401  # a key and window, and the count
    """A line of the results."""
    place, count = result
    return f"{place.key} {place.window.start_us} {count}"


if __name__ == "__main__":
    options = arguments(delivery=Config.EFFECTIVELY_ONCE, containers=2)
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.3} if options.delivery > 1 else None)
    config.set_delivery_semantics(options.delivery).set_num_containers(options.containers)
    results = Path(options.out)
    Runner().run("timed_counts", config, pipeline(results, results / "go"))
