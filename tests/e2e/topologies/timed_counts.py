"""Counts per second of event time, with late elements, of two partitions; writes results and late elements to folders.

Each partition stops in its middle until there is a file ``go`` among the results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from gated import Gated, key_of
from recording import arguments

from heron_streamlet import Builder, Config, Runner, TextFolder, sliding_window


def pipeline(out: Path, gate: Path | None, *, columns: bool = False) -> Builder:
    """The pipeline, of records or of columns."""
    builder = Builder()
    source = builder.new_source(Gated(gate)).set_num_partitions(2)
    timed = source.event_time(lambda element: element[0], lag=0.5)
    if columns:
        rows = timed.map(lambda element: [key_of(element)]).to_columns(pa.schema({"key": pa.string()}), 50)
        windows = rows.count_by_key_and_window("key", sliding_window(1, 0.5))
        windows.map(line_of).to_sink(TextFolder(out / "counts"))
        windows.late.rows().map(lambda row: row["key"]).to_sink(TextFolder(out / "late"))
        return builder
    pairs = timed.key_by(key_of, lambda _: 1)
    counts = pairs.reduce_by_key_and_window(sliding_window(1, 0.5), lambda one, other: one + other)
    counts.map(line_of).to_sink(TextFolder(out / "counts"))
    counts.late.map(lambda pair: pair[0]).to_sink(TextFolder(out / "late"))
    return builder


def line_of(result: Any) -> str:  # noqa: ANN401  # a key and window, and the count
    """A line of the results."""
    place, count = result
    return f"{place.key} {place.window.start_us} {count}"


if __name__ == "__main__":
    options = arguments(delivery=Config.EFFECTIVELY_ONCE, containers=2, form="records")
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.3} if options.delivery > 1 else None)
    config.set_delivery_semantics(options.delivery).set_num_containers(options.containers)
    results = Path(options.out)
    Runner().run("timed_counts", config, pipeline(results, results / "go", columns=options.form == "columns"))
