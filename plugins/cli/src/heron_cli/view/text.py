"""Formats values for the output of commands: JSON, tables, counts, sizes and times."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click
import msgspec

__all__ = [
    "columns",
    "counted",
    "format_age",
    "format_bytes",
    "format_count",
    "format_time",
    "output_width",
    "print_json",
]

_DAY_S = 86400.0


def print_json(value: object) -> None:
    """Print any of Heron's values as readable JSON; a path is text."""
    click.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode())


def output_width() -> int | None:
    """Return the width for a table: that of the terminal (None), or 200 characters on a pipe."""
    return None if sys.stdout.isatty() else 200


def format_count(count: float) -> str:
    """``12,345``."""
    return f"{count:,.0f}"


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def format_bytes(count: int) -> str:
    """``512 B``, ``1.5 KiB``, ``8.0 MiB``."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def format_age(age_s: float) -> str:
    """``40 s``, ``3 min``, ``5 h``, ``2 d``."""
    for unit_s, unit in ((_DAY_S, "d"), (3600.0, "h"), (60.0, "min")):
        if age_s >= unit_s:
            return f"{age_s / unit_s:.0f} {unit}"
    return f"{age_s:.0f} s"


def format_time(at_s: float | None) -> str:
    """``2026-01-02 03:04:05+00:00`` for wall-clock seconds; "" for None."""
    return "" if at_s is None else datetime.fromtimestamp(at_s, UTC).isoformat(sep=" ", timespec="seconds")


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
