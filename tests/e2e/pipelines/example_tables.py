"""The examples of pipelines that print a table, and what they must print: recounted without windows."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq

__all__ = ["EXAMPLE_TABLES", "ExampleTable", "loaded", "recommended", "visited"]

PIPELINES = Path(__file__).parents[3] / "examples" / "pipelines"
_DAYS, _CUSTOMERS = 4, 30


@dataclass(frozen=True)
class ExampleTable:
    """An example: its file, its arguments (given a folder for input), and a text that each line of its table has."""

    file: str
    arguments: Callable[[Path], tuple[str, ...]]
    mark: str

    @property
    def path(self) -> Path:
        """The file."""
        return PIPELINES / self.file

    def lines(self, output: str) -> list[str]:
        """The lines of the table in the output of a run."""
        return [line for line in output.splitlines() if self.mark in line]


@contextmanager
def loaded(file: str) -> Iterator[ModuleType]:
    """The program of an example as a module."""
    spec = spec_from_file_location("pipelines_program", PIPELINES / file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.modules.pop(spec.name)


def _with_logs(folder: Path) -> tuple[str, ...]:
    with loaded("sessions.py") as program:
        program.write_logs(folder / "logs")
    return ("--logs", str(folder / "logs"))


EXAMPLE_TABLES = [
    ExampleTable("trends.py", lambda _: ("--seconds", "20"), "#topic"),
    ExampleTable("recommendations.py", lambda _: ("--days", str(_DAYS), "--customers", str(_CUSTOMERS)), "also bought"),
    ExampleTable("sessions.py", _with_logs, "pages in"),
]


def recommended() -> list[str]:
    """The table of recommendations.py."""
    with loaded("recommendations.py") as program:
        baskets: dict[tuple[int, str], set[str]] = defaultdict(set)
        for each in program.purchases(_DAYS, _CUSTOMERS):
            baskets[(each.at - program.START) // program.DAY, each.customer].add(each.thing)
        found = []
        for end in range(1, _DAYS + program.PERIOD // program.DAY):
            buyers: dict[tuple[str, str], set[str]] = defaultdict(set)
            for (day, customer), things in baskets.items():
                if end - program.PERIOD // program.DAY <= day < end:
                    for thing in things:
                        for other in things - {thing}:
                            buyers[thing, other].add(customer)
            for thing in sorted({thing for thing, _ in buyers}):
                ranking = sorted((-len(who), other) for (one, other), who in buyers.items() if one == thing)
                also = ", ".join(f"{other} ({-count})" for count, other in ranking[: program.TOP])
                found.append(f"until {program.START + end * program.DAY:%m-%d}  who bought {thing} also bought {also}")
        return found


def visited(logs: Path) -> list[str]:
    """The table of sessions.py over a folder of logs."""
    pages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in logs.glob("*.parquet"):
        for row in pq.read_table(file).to_pylist():
            if row["status"] < 400 and not row["path"].startswith("/static/"):
                pages[row["user"]].append({**row, "path": row["path"].partition("?")[0]})
    visits: list[tuple[datetime, str, list[dict[str, Any]]]] = []
    pause = timedelta(minutes=30)
    for user, rows in pages.items():
        visit: list[dict[str, Any]] = []
        for row in sorted(rows, key=lambda row: (row["time"], row["path"])):
            if visit and row["time"] > visit[-1]["time"] + pause:
                visits.append((visit[-1]["time"] + pause, user, visit))
                visit = []
            visit.append(row)
        visits.append((visit[-1]["time"] + pause, user, visit))
    return [_visit_line(user, visit) for _, user, visit in sorted(visits, key=lambda each: each[:2])]


def _visit_line(user: str, visit: list[dict[str, Any]]) -> str:
    first, last = visit[0], visit[-1]
    minutes = (last["time"] - first["time"]) / timedelta(minutes=1)
    mean_ms = sum(row["ms"] for row in visit) / len(visit)
    return (
        f"{first['time']:%H:%M:%S}  {user:8} {len(visit):3} pages in {minutes:5.1f} min, {mean_ms:4.0f} ms each, "
        f"{first['path']} to {last['path']}"
    )
