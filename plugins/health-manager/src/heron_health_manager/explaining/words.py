"""Numbers and moments as the explanation writes them."""

from __future__ import annotations

from datetime import UTC, datetime

from heron_cli.view.status_text import format_duration

__all__ = ["clock_time", "duration", "large"]

_SHORT_S = 10.0


def duration(seconds: float) -> str:
    """``1.5 s``, ``12 s``, ``3 min 20 s``."""
    return f"{max(0.0, seconds):.1f} s" if seconds < _SHORT_S else format_duration(seconds)


def clock_time(at_s: float) -> str:
    """``13:04:12 UTC`` for wall-clock seconds."""
    return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S} UTC"


def large(number: float) -> str:
    """``12``, ``3,100``, ``3.1 M``."""
    if abs(number) >= 1e6:
        return f"{number / 1e6:,.1f} M"
    return f"{number:,.0f}" if abs(number) >= 10 or number == int(number) else f"{number:.2g}"
