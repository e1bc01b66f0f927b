"""The visits to a web site, from its logs in Parquet files: a visit ends when its user does nothing for half an hour.

    pip install 'heron-streamlet[columns]'
    heron run examples/pipelines/sessions.py

Rows that do not matter are dropped in columns, thousands at a time; sessions are found in records. Each server writes a
log, and a user may reach any of them. Without ``--logs FOLDER`` the program writes a folder of logs first.
"""

from __future__ import annotations

import argparse
import operator
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from heron_streamlet import Builder, Config, KeyedWindow, Runner, Window, session_window, tumbling_window
from heron_streamlet.columns import ParquetFiles

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
PAUSE = timedelta(minutes=30)
DELAY = timedelta(seconds=20)  # a server may write a request this much later than others
SERVERS, USERS, HOURS = 3, 30, 6
SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", tz="UTC")),
        ("user", pa.string()),
        ("path", pa.string()),
        ("status", pa.int16()),
        ("ms", pa.int32()),
        ("agent", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit, or a part of it. `entry` and `exit` are the time and path of its first and last page."""

    entry: tuple[datetime, str]
    exit: tuple[datetime, str]
    pages: int
    ms: int


def sessions(logs: Path) -> Builder:
    """Build the pipeline."""
    builder = Builder()
    source = ParquetFiles(logs / "*.parquet", ["time", "user", "path", "status", "ms"])
    requests = builder.new_columns(source).set_num_partitions(2).event_time("time", lag=DELAY)
    pages = requests.filter_columns(is_page).map_columns(without_query).select("time", "user", "path", "ms")
    seen = pages.rows().key_by(lambda row: row["user"], visit_of)
    visits = seen.reduce_by_key_and_window(session_window(PAUSE), joined).set_num_partitions(2)
    # A visit has the last moment of its window as event time, so an hour has the visits that ended in it.
    by_hour = visits.map(lambda result: [result]).reduce_by_window(tumbling_window(HOUR), operator.add)
    by_hour.flat_map(lines).log()
    return builder


def is_page(batch: pa.RecordBatch) -> pa.Array:
    """Say which requests of a batch have shown a page."""
    shown = pc.less(batch["status"], 400)
    return pc.and_(shown, pc.invert(pc.starts_with(batch["path"], "/static/")))


def without_query(batch: pa.RecordBatch) -> dict[str, Any]:
    """Cut the paths of a batch at the question mark."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return {**columns, "path": pc.replace_substring_regex(batch["path"], r"\?.*", "")}


def visit_of(row: dict[str, Any]) -> Visit:
    """Return the visit of a single page."""
    page = (row["time"], row["path"])
    return Visit(page, page, 1, row["ms"])


def joined(one: Visit, other: Visit) -> Visit:
    """Return the visit of both parts."""
    return Visit(min(one.entry, other.entry), max(one.exit, other.exit), one.pages + other.pages, one.ms + other.ms)


def lines(result: tuple[Window, list[tuple[KeyedWindow[str], Visit]]]) -> Iterator[str]:
    """Yield the lines of the visits that ended in an hour."""
    _, visits = result
    for place, visit in sorted(visits, key=lambda each: (each[0].window.end_us, each[0].key)):
        minutes = (visit.exit[0] - visit.entry[0]) / timedelta(minutes=1)
        yield (
            f"{visit.entry[0]:%H:%M:%S}  {place.key:8} {visit.pages:3} pages in {minutes:5.1f} min, "
            f"{visit.ms / visit.pages:4.0f} ms each, {visit.entry[1]} to {visit.exit[1]}"
        )


def write_logs(folder: Path) -> None:
    """Write a log for each server, always the same, with rows a little out of order."""
    chance = random.Random(11)
    logs: list[list[tuple[datetime, dict[str, Any]]]] = [[] for _ in range(SERVERS)]
    for user in range(USERS):
        at = START + chance.random() * HOUR
        while at < START + HOURS * HOUR:
            for request in requests_of(chance, f"user{user}", at):
                written = request["time"] + chance.random() * DELAY
                chance.choice(logs).append((written, request))
            at += chance.uniform(0.8, 3) * HOUR
    part = folder.with_name(f"{folder.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    for number, log in enumerate(logs):
        rows = [request for _, request in sorted(log, key=lambda each: each[0])]
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), part / f"server{number}.parquet")
    part.rename(folder)


def requests_of(chance: random.Random, user: str, at: datetime) -> Iterator[dict[str, Any]]:
    """Yield the requests of a visit: pages with what they contain, and some errors."""
    for _ in range(chance.randrange(1, 8)):
        path = f"/item/{chance.randrange(20)}"
        status = 500 if chance.random() < 0.1 else 200
        for each in (f"{path}?from=mail", "/static/site.css"):
            yield {
                "time": at,
                "user": user,
                "path": each,
                "status": status,
                "ms": chance.randrange(5, 200),
                "agent": "Mozilla/5.0",
            }
        at += timedelta(seconds=chance.uniform(5, 240))


def main(arguments: Sequence[str]) -> None:
    """Parse the command line; write logs if there are none; submit the pipeline."""
    parser = argparse.ArgumentParser(prog="sessions.py", description="shows the visits to a web site")
    parser.add_argument("--logs", type=Path, help="folder of Parquet files with time, user, path, status and ms")
    logs = parser.parse_args(arguments).logs
    if logs is None:
        logs = Path(tempfile.gettempdir(), "heron-example-visits")
        if not logs.exists():
            write_logs(logs)
    elif not any(logs.glob("*.parquet")):
        parser.error(f"--logs {logs}: the folder does not exist or has no Parquet files")
    Runner().run("sessions", Config(), sessions(logs.absolute()))


if __name__ == "__main__":
    main(sys.argv[1:])
