"""The tables that the bench prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.table import Table

from bench.findings import Findings
from bench.gate import Check
from bench.parts import PARTS
from bench.profiling import ProcessProfile, Profile

__all__ = ["checks_table", "functions_table", "parts_table", "ratios_table", "rows_table"]

_MOST_FUNCTIONS = 12
_LEAST_SHARE = 0.02


def rows_table(findings: Findings) -> Table:
    """Return a table of every figure."""
    table = Table("subject", "mode", "runs", box=None)
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("spread", justify="right")
    for row in findings.rows:
        value = f"{row.value:,.0f}" if row.value >= 1000 else f"{row.value:.3g}"
        spread = f"{row.spread:.0%}" if row.runs > 1 else ""
        table.add_row(row.subject, row.mode, str(row.runs), value, row.unit, spread)
    return table


def ratios_table(findings: Findings) -> Table:
    """Return a table of every ratio."""
    table = Table("ratio", box=None)
    table.add_column("value", justify="right")
    for name, value in findings.ratios.items():
        table.add_row(name, f"{value:.3f}")
    return table


def checks_table(checks: Sequence[Check]) -> Table:
    """Return a table of each ratio and its bound."""
    table = Table("ratio", box=None)
    table.add_column("measured", justify="right")
    table.add_column("bound", justify="right")
    table.add_column("")
    for each in checks:
        measured = "none" if each.measured is None else f"{each.measured:.3f}"
        bound = f"{'at least' if each.least else 'at most'} {each.bound:g}"
        table.add_row(each.name, measured, bound, "" if each.holds else "BROKEN", style=None if each.holds else "red")
    return table


def parts_table(roles: Profile) -> Table:
    """Return CPU seconds per million tuples: a column for each role, a row for each part."""
    whole = sum(sum(each.parts.values()) for each in roles.values())
    on_path = {role: each for role, each in roles.items() if sum(each.parts.values()) >= _LEAST_SHARE * whole}
    table = Table("CPU s/million tuples", box=None)
    for role in (*on_path, "all"):
        table.add_column(role, justify="right")
    lines: defaultdict[str, list[float]] = defaultdict(list)
    for part in PARTS:
        lines[part] = [each.parts[part] for each in on_path.values()]
    lines["all"] = [sum(each.parts.values()) for each in on_path.values()]
    for part, values in lines.items():
        table.add_row(part, *(f"{value:.3f}" if value >= 0.0005 else "" for value in (*values, sum(values))))
    return table


def functions_table(role: str, found: ProcessProfile) -> Table:
    """Return the functions that take the most time."""
    table = Table(f"{role}: function", box=None)
    table.add_column("CPU s/million tuples", justify="right", no_wrap=True)
    ordered = sorted(found.functions.items(), key=lambda item: -item[1])
    for name, used_s in ordered[:_MOST_FUNCTIONS]:
        table.add_row(name, f"{used_s:.3f}")
    return table
