"""The tables of docs/performance.md with stored results of our benches, from the templates in `stored_tables/`.

A template is Markdown with figures in braces: ``{NAME}`` is a ratio, ``{BENCH / MODE / SUBJECT}`` is a row, and a rate
in tuples per second is shown in millions. A target may follow, as in ``{NAME ≥ 0.9}``; a figure that misses it is bold.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench.findings import Findings
from bench.records import BenchError

__all__ = ["filled", "marks_of", "templates"]

_FOLDER = Path(__file__).with_name("stored_tables")
_FIGURE = re.compile(r"\{(?P<name>[^{}≥≤]+?)(?: (?P<sign>[≥≤]) (?P<bound>[\d.]+))?\}")
_RATE = "tuples/s"
_MISSING = "not measured"


def templates() -> dict[str, str]:
    """Return the text of each template, by the name that the marks of its section have."""
    return {path.stem: path.read_text(encoding="utf-8").strip() for path in sorted(_FOLDER.glob("*.md"))}


def marks_of(name: str) -> tuple[str, str]:
    """Return the lines of the document before and after the table."""
    return f"<!-- written by ./dev bench -- report: {name} -->", f"<!-- end of {name} -->"


def filled(template: str, findings: Findings) -> str:
    """Return the template with the stored figures, three digits each.

    Raises:
        BenchError: when the findings have several rows of one name.
    """

    def shown(figure: re.Match[str]) -> str:
        value = _value(figure["name"], findings)
        if value is None:
            return _MISSING
        return f"**{value:.3g}**" if _is_missed(value, figure["sign"], figure["bound"]) else f"{value:.3g}"

    return _FIGURE.sub(shown, template)


def _value(name: str, findings: Findings) -> float | None:
    if " / " not in name:
        return findings.ratios.get(name)
    bench, mode, subject = name.split(" / ", 2)
    wanted = (bench, mode, subject)
    found = [row for row in findings.rows if (row.bench, row.mode, row.subject) == wanted]
    if not found:
        return None
    if len(found) > 1:
        units = ", ".join(sorted({row.unit for row in found}))
        msg = f"{name}: the stored results have {len(found)} rows of this name, in {units}"
        raise BenchError(msg)
    row = found[0]
    return row.value / 1e6 if row.unit == _RATE else row.value


def _is_missed(value: float, sign: str | None, bound: str | None) -> bool:
    if sign is None or bound is None:
        return False
    return value < float(bound) if sign == "≥" else value > float(bound)
