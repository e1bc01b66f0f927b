"""Event time: when an element happened, which elements are late, and how far a source has come.

Lateness has one rule on every engine: *an element is late for a window iff the window's end is at or before its bound*.
The bound of an element is the largest event time before it in its source partition, minus the lag. It is found where
event time is assigned, and travels with the element. So results depend only on the order within source partitions, and
not on when data arrives or how an engine divides it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone

from heron.author_text import class_name, short_text
from heron.clock import wall_s
from heron.errors import UserCodeError

__all__ = [
    "END_OF_TIME_US",
    "EXACT_BELOW_S",
    "LIMIT_US",
    "START_OF_TIME_US",
    "EventClock",
    "event_time_us",
    "source_watermark",
]

START_OF_TIME_US = -(2**62)
"""Before every event time: the bound of elements that are never late."""
END_OF_TIME_US = 2**62
"""After every event time: the watermark at the end of the input."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017  # read where `datetime.UTC` would hide the meaning
EXACT_BELOW_S = 2**53 // 1_000_000 - 1
"""Seconds as a float are exact to the microsecond below this number; the year 2255."""
LIMIT_US = 2**53 - 1
"""Above this number of microseconds, seconds as a float are no longer exact to the microsecond; the year 2255."""


def event_time_us(time: object) -> int:
    """An author's event time in microseconds since the epoch.

    Args:
        time: a `datetime` with a time zone, or seconds since 1970-01-01T00:00:00Z.

    Raises:
        UserCodeError: when `time` is None, a naive datetime, not a finite number, or is beyond the years 1684 and 2255.
    """
    if isinstance(time, datetime):
        if time.tzinfo is None:
            msg = "the event time has no time zone; give datetime(..., tzinfo=UTC), or seconds since 1970 in UTC"
            raise UserCodeError(msg)
        us = (time - _EPOCH) // timedelta(microseconds=1)
    elif isinstance(time, (int, float)) and not isinstance(time, bool) and math.isfinite(time):
        us = round(time * 1_000_000)
    else:
        shown = f"{time}" if type(time) is float else f"of type {class_name(time)}"
        msg = f"event time {shown} is neither a datetime with a time zone nor seconds since 1970 in UTC"
        raise UserCodeError(msg)
    if abs(us) > LIMIT_US:
        msg = (
            f"event time {short_text(time, 60)} is beyond the years 1684 and 2255; are these milliseconds instead of "
            "seconds?"
        )
        raise UserCodeError(msg)
    return us


class EventClock:
    """The event time of one source partition.

    Attributes:
        latest_us: the largest event time so far.
        bound_us: the bound of the next element; also the watermark of the partition.
        lag_us: how much older than the newest element an element may be without being late.
        limit_us: a time above it needs `check_future`.
    """

    __slots__ = ("_ahead_us", "_now_s", "bound_us", "lag_us", "latest_us", "limit_us")

    def __init__(
        self,
        lag_us: int,
        latest_us: int = START_OF_TIME_US,
        ahead_us: int | None = None,
        now_s: Callable[[], float] = wall_s,
    ) -> None:
        """The clock of one partition.

        Args:
            lag_us: see above.
            latest_us: the largest event time so far, of an earlier run.
            ahead_us: how far in the future a time may be; None for any time.
            now_s: the time now, in seconds since the epoch.
        """
        self.lag_us = lag_us
        self._ahead_us = ahead_us
        self._now_s = now_s
        self.limit_us = END_OF_TIME_US if ahead_us is None else START_OF_TIME_US
        self.latest_us = latest_us
        self.bound_us = latest_us - lag_us if latest_us > START_OF_TIME_US else START_OF_TIME_US

    def advance(self, time_us: int) -> None:
        """An element has a larger time than all before it.

        Raises:
            UserCodeError: when the time is too far in the future.
        """
        if time_us > self.limit_us:
            self.check_future(time_us)
        self.latest_us = time_us
        self.bound_us = time_us - self.lag_us

    def check_future(self, time_us: int) -> int:
        """Refuse a time that is too far in the future; return the new limit, above which it must be called again.

        Raises:
            UserCodeError: when it is.
        """
        now_s, ahead_us = self._now_s(), self._ahead_us or 0
        self.limit_us = round(now_s * 1_000_000) + ahead_us
        if time_us > self.limit_us:
            msg = (
                f"event time {time_us / 1_000_000:.6f} s is {time_us / 1_000_000 - now_s:.0f} s in the future, and "
                f"would make all other elements late; the limit is {ahead_us / 1_000_000:g} s (max_ahead of event_time)"
            )
            raise UserCodeError(msg)
        return self.limit_us


def source_watermark(partitions: Sequence[tuple[int, float]]) -> tuple[int, bool] | None:
    """The watermark of a task that reads source partitions, and whether it is idle.

    Idle partitions do not count while others have elements. If all are idle, event time goes on with the clock.

    Args:
        partitions: the bound of each in microseconds, and for how many seconds it has been idle; 0 if it is not.

    Returns:
        None while a partition that has to be waited for has no element.
    """
    active = [bound_us for bound_us, idle_s in partitions if not idle_s]
    if active:
        return (min(active), False) if min(active) > START_OF_TIME_US else None
    times = [bound_us for bound_us, _ in partitions if bound_us > START_OF_TIME_US]
    if not times:
        return (START_OF_TIME_US, True)
    silent_s = min(idle_s for _, idle_s in partitions)
    return max(times) + round(silent_s * 1_000_000), True
