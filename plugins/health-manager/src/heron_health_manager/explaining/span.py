"""How far back a question reaches: ``10min``, or a moment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from heron.errors import UsageError

__all__ = ["Since", "parse_since"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)")
_UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Since:
    """A moment, in wall-clock seconds; or, if `moment_s` is None, `span_s` seconds before the time of interest."""

    span_s: float = 0.0
    moment_s: float | None = None

    def before(self, now_s: float) -> float:
        """The moment, in wall-clock seconds; `now_s` is the time of interest."""
        return now_s - self.span_s if self.moment_s is None else self.moment_s


def parse_since(text: str, now_s: float) -> Since:
    """Return a span (``90s``, ``10min``, ``2h``, ``1d``) or an ISO time, which is UTC if it names no zone.

    Raises:
        UsageError: when the text is neither, or the time is after `now_s`.
    """
    if found := _DURATION.fullmatch(text.strip()):
        return Since(float(found[1]) * _UNITS_S[found[2]])
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        msg = f"--since {text!r} is neither a span such as 90s, 10min, 2h or 1d, nor a time such as 2026-01-31T13:04"
        raise UsageError(msg) from None
    at_s = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if at_s > now_s:
        msg = f"--since {text!r} is in the future: it is {datetime.fromtimestamp(now_s, UTC):%Y-%m-%dT%H:%M} UTC now"
        raise UsageError(msg)
    return Since(moment_s=at_s)
