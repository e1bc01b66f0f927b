"""The benchmark Nexmark: queries on the events of an auction house.

    heron run examples/pipelines/nexmark.py -- q5
    heron run examples/pipelines/nexmark.py -- q5 --columns
    heron run examples/pipelines/nexmark.py --profile spark-batch -- q8 --events 10000 --per-s 100

`nexmark_rows` has the queries, `nexmark_columns` those on columns, and `nexmark_events` the source.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from nexmark_events import NexmarkEvents
from nexmark_rows import QUERIES

from heron_streamlet import Builder, Config, Runner

IN_COLUMNS = ("q0", "q1", "q2", "q5", "q7")


def nexmark(query: str, events: NexmarkEvents, tasks: int, *, columns: bool = False) -> Builder:
    """Build the pipeline; `tasks` is the number of tasks of the source, and of each operator with keys."""
    builder = Builder()
    if columns:
        from nexmark_columns import COLUMN_QUERIES, NexmarkColumns  # noqa: PLC0415  # it needs pyarrow

        source = builder.new_columns(NexmarkColumns(events)).set_num_partitions(tasks)
        COLUMN_QUERIES[query](source).log()
    else:
        read = builder.new_source(events).set_num_partitions(tasks)
        QUERIES[query](read, tasks).log()
    return builder


def main(arguments: Sequence[str]) -> None:
    """Parse the command line and submit the pipeline."""
    parser = argparse.ArgumentParser(prog="nexmark.py", description="runs a query of Nexmark")
    parser.add_argument("query", choices=sorted(QUERIES))
    parser.add_argument("--events", type=int, default=200_000, help="how many (default: %(default)s)")
    parser.add_argument(
        "--per-s", type=int, default=10_000, help="events per second of event time (default: %(default)s)"
    )
    parser.add_argument("--tasks", type=int, default=1, help="tasks of source and keys (default: %(default)s)")
    parser.add_argument("--columns", action="store_true", help=f"on columns: {', '.join(IN_COLUMNS)}")
    options = parser.parse_args(arguments)
    if options.events < 1 or options.tasks < 1 or not 1 <= options.per_s <= 1_000_000:
        given = f"--events {options.events} --tasks {options.tasks} --per-s {options.per_s}"
        parser.error(f"{given}: give at least 1 of each, and at most 1,000,000 events per second")
    if options.columns and options.query not in IN_COLUMNS:
        parser.error(f"{options.query} has no form on columns; {', '.join(IN_COLUMNS)} have")
    events = NexmarkEvents(options.events, options.tasks, round(1_000_000 / options.per_s))
    builder = nexmark(options.query, events, options.tasks, columns=options.columns)
    Runner().run(f"nexmark_{options.query}", Config(), builder)


if __name__ == "__main__":
    main(sys.argv[1:])
