"""Renders metrics for people: a table for each component, task or process."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich.console import Group
from rich.table import Table
from rich.text import Text

from heron.ipc.documents.metrics_table import MetricsRow
from heron_cli.view.text import format_bytes, format_count

__all__ = ["format_amount", "format_seconds", "metrics_text"]

_STEPS = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs"), (0.0, 1e9, "ns"))


def metrics_text(rows: Iterable[MetricsRow]) -> Group:
    """Return the tables in the order of the rows."""
    tables = [_table(source, list(group)) for source, group in groupby(rows, key=_source)]
    return Group(*tables) if tables else Group(Text("nothing has been reported yet"))


def format_amount(amount: float, unit: str) -> str:
    """``1.5 KiB``, ``12 ms``, ``12,345``, ``0.25``: with a unit for bytes and seconds."""
    if unit == "bytes":
        return format_bytes(round(amount))
    if unit == "s":
        return format_seconds(amount)
    return format_count(amount) if amount == int(amount) or abs(amount) >= 100 else f"{amount:.3g}"


def format_seconds(seconds: float) -> str:
    """``1.25 s``, ``3.2 ms``, ``15 µs``, ``120 ns``."""
    if not seconds:
        return "0 s"
    if abs(seconds) >= 100:
        return f"{seconds:,.0f} s"
    factor, unit = next((factor, unit) for least, factor, unit in _STEPS if abs(seconds) >= least)
    return f"{seconds * factor:.3g} {unit}"


def _source(row: MetricsRow) -> str:
    return f"{row.component}/{row.task_id}" if row.task_id else row.process


def _table(source: str, rows: list[MetricsRow]) -> Table:
    table = Table(title=source, title_justify="left", title_style="bold", show_edge=False, pad_edge=False, box=None)
    table.add_column("metric", overflow="fold")  # the column that folds on a narrow terminal
    for heading in ("value", "unit", "per second", "p50", "p99"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "unit" else "right")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: MetricsRow) -> tuple[str, ...]:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(row.labels.items()))
    histogram = row.kind == "histogram"
    return (
        f"{row.name} ({labels})" if labels else row.name,
        format_count(row.value) if histogram else format_amount(row.value, row.unit),
        "entries" if histogram else "" if row.unit in {"bytes", "s", "1"} else row.unit,
        _rate(row),
        "" if row.p50 is None else format_amount(row.p50, row.unit),
        "" if row.p99 is None else format_amount(row.p99, row.unit),
    )


def _rate(row: MetricsRow) -> str:
    if row.rate_per_s is None:
        return ""
    if row.unit == "bytes" and row.kind != "histogram":
        return format_bytes(round(row.rate_per_s))
    return format_count(row.rate_per_s) if row.rate_per_s >= 100 else f"{row.rate_per_s:.3g}"
