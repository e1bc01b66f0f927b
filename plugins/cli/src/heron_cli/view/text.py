"""Formats values for the output of commands: JSON, tables, counts, sizes and times.

Names, errors and records come from files and users of others. A terminal obeys control characters in them: they can
change what was printed before, the title, or the clipboard. So everything that is for people is printed with `echo` or
on a console of `heron_cli.view.console`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click
import msgspec

__all__ = [
    "columns",
    "counted",
    "echo",
    "format_age",
    "format_bytes",
    "format_count",
    "format_time",
    "json_text",
    "output_width",
    "print_json",
    "printable",
    "printable_and_colours",
]

_DAY_S = 86400.0
_CONTROL = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f"  # control characters, but not the tab and the end of a line
    "\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"  # direction
    "\\ud800-\\udfff\\U000e0000-\\U000e007f]"  # halves of characters, invisible tags
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_MARK = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Return the text with a mark in place of each character that a terminal would obey, other than tab and newline."""
    return _CONTROL.sub(_MARK, text)


def printable_and_colours(text: str) -> str:
    """Return the text as `printable` does, with its colours: the output of the author's own program has some."""
    parts, end = [], 0
    for each in _COLOUR.finditer(text):
        parts += [printable(text[end : each.start()]), each[0]]
        end = each.end()
    return "".join((*parts, printable(text[end:])))


def echo(text: str, *, err: bool = False) -> None:
    """Print a text for people on stdout, or with `err` on stderr: it is made printable."""
    click.echo(printable(text), err=err)


def json_text(document: bytes) -> str:
    """Return a JSON document as text that a terminal shows and JSON readers read unchanged."""
    return _CONTROL.sub(lambda match: _escape(match[0]), document.decode())


def print_json(value: object) -> None:
    """Print any of Heron's values as readable JSON; a path is text."""
    click.echo(json_text(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2)))


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


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
