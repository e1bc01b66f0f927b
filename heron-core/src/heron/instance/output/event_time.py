"""An event time as a watermark marker carries it."""

from __future__ import annotations

import math
from numbers import Real

from heron.author_text import number_or_class
from heron.errors import EmitError

__all__ = ["to_microseconds"]

_MICROSECONDS = 1_000_000
_LIMIT_US = 2**63  # a marker carries an i64


def to_microseconds(time_s: object) -> int:
    """The value of a marker for an event time in seconds.

    Raises:
        EmitError: when it is not a finite number, or its microseconds exceed 64 bits.
    """
    try:
        seconds = float(time_s) if not isinstance(time_s, bool) and isinstance(time_s, Real) else math.nan
    except OverflowError:  # of an integer
        seconds = math.inf
    if not abs(seconds * _MICROSECONDS) < _LIMIT_US:  # nor is NaN
        msg = (
            f"emit_watermark: time {number_or_class(time_s)} is not a finite number of seconds whose "
            "microseconds fit 64 bits"
        )
        raise EmitError(msg)
    return round(seconds * _MICROSECONDS)
