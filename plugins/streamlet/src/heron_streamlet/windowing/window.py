"""Windows: how the elements of a stream are divided before they are reduced or joined.

Times are whole microseconds since 1970-01-01T00:00:00Z, so that all engines compute the same windows. Authors give
lengths as `timedelta` or as seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, Self, TypeVar

from heron.author_text import short_text
from heron.errors import UsageError

__all__ = [
    "CountWindow",
    "Duration",
    "KeyedWindow",
    "SessionWindow",
    "SlidingWindow",
    "TimeWindow",
    "Window",
    "WindowKind",
    "WindowResult",
    "count_window",
    "micros",
    "session_window",
    "sliding_window",
    "tumbling_window",
]

K = TypeVar("K")
P = TypeVar("P")
R = TypeVar("R")

Duration = timedelta | float
"""A `timedelta`, or a number of seconds."""

_MICROS_PER_S = 1_000_000


class Window(NamedTuple):
    """The time from `start_us`, inclusive, to `end_us`, exclusive; in microseconds since the epoch."""

    start_us: int
    end_us: int

    def __repr__(self) -> str:
        return f"Window({self.start:%Y-%m-%dT%H:%M:%S.%fZ}, {(self.end_us - self.start_us) / _MICROS_PER_S:g} s)"

    @property
    def start_time(self) -> float:
        """The start in seconds since the epoch, as in heronpy."""
        return self.start_us / _MICROS_PER_S

    @property
    def end_time(self) -> float:
        """The end in seconds since the epoch, as in heronpy."""
        return self.end_us / _MICROS_PER_S

    @property
    def start(self) -> datetime:
        """The start as a time in UTC."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.start_us)

    @property
    def end(self) -> datetime:
        """The end as a time in UTC."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.end_us)


class KeyedWindow(NamedTuple, Generic[K]):
    """A key and a window: what a result of a keyed window belongs to."""

    key: K
    window: Window


class WindowResult(NamedTuple, Generic[P, R]):
    """A result of a window, which may be early.

    Attributes:
        window: the `KeyedWindow` or `Window` of the result. A session that has no final result may still grow, or
            become one with another session.
        result: what the elements of the window give so far.
        final: whether the window is closed. A window has one final result, behind its early ones.
    """

    window: P
    result: R
    final: bool


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """What windows of time have in common.

    Attributes:
        clock: whether windows follow the clock of the task that reduces them, and not the event time of the stream.
            A stream without event time always has windows by the clock.
        allowed_lateness_us: how much later than its end a window closes, in microseconds of event time.
    """

    clock: bool = field(default=False, kw_only=True)
    allowed_lateness_us: int = field(default=0, kw_only=True)

    def by_clock(self) -> Self:
        """Return this window by the clock of the task."""
        return replace(self, clock=True)

    def allow_lateness(self, lateness: Duration) -> Self:
        """Return this window, closed `lateness` after its end.

        A window has one final result. Records that are late by less than `lateness` are part of it.

        Raises:
            UsageError: when `lateness` is negative or not a duration.
        """
        return replace(self, allowed_lateness_us=micros(lateness, "allow_lateness", zero=True))


@dataclass(frozen=True, slots=True)
class SlidingWindow(TimeWindow):
    """Windows of the length `size_us`, one every `slide_us`; aligned with 1970-01-01T00:00:00Z."""

    size_us: int
    slide_us: int

    def starts_of(self, time_us: int) -> Sequence[int]:
        """The starts of the windows that contain this time, ascending; none where slides leave a gap."""
        last = time_us - time_us % self.slide_us
        first = last - (self.size_us - 1 - time_us % self.slide_us) // self.slide_us * self.slide_us
        return range(first, last + 1, self.slide_us) if last > time_us - self.size_us else ()


@dataclass(frozen=True, slots=True)
class SessionWindow(TimeWindow):
    """Windows that end when a key has had no element for `gap_us`.

    A session closes one gap later than it ends. Without this delay, records that are out of order could connect it with
    another session after it closed, and results would depend on the order in which data of several partitions arrives.
    """

    gap_us: int


@dataclass(frozen=True, slots=True)
class CountWindow:
    """Windows of `size` elements of a key, one every `slide` elements. A window that is not full has no result."""

    size: int
    slide: int


def tumbling_window(size: Duration) -> SlidingWindow:
    """Return windows of this size, each beside the next; aligned with 1970-01-01T00:00:00Z.

    Raises:
        UsageError: when the size is not from 1 µs to 10,000 days.
    """
    return sliding_window(size, size)


def sliding_window(size: Duration, slide: Duration) -> SlidingWindow:
    """Return windows of this size, of which one starts every `slide`.

    Raises:
        UsageError: when a duration is not from 1 µs to 10,000 days.
    """
    return SlidingWindow(micros(size, "window size"), micros(slide, "window slide"))


def session_window(gap: Duration) -> SessionWindow:
    """Return windows that end when a key has had no element for `gap`.

    Raises:
        UsageError: when the gap is not from 1 µs to 10,000 days.
    """
    return SessionWindow(micros(gap, "session gap"))


def count_window(size: int, slide: int | None = None) -> CountWindow:
    """Return windows of `size` elements, one every `slide` elements; without `slide` each beside the next.

    Raises:
        UsageError: when a number is not an integer of at least 1.
    """
    for what, number in (("size", size), ("slide", size if slide is None else slide)):
        if type(number) is not int or number < 1:
            msg = f"count window: {what} {short_text(number, 60)} is not an integer of at least 1"
            raise UsageError(msg)
    return CountWindow(size, size if slide is None else slide)


WindowKind = SlidingWindow | SessionWindow | CountWindow


def micros(duration: object, what: str, *, zero: bool = False) -> int:
    """A duration in whole microseconds.

    Raises:
        UsageError: when it is not a duration, is below one microsecond, or is above 10,000 days; with `zero`, 0 is
            allowed.
    """
    if isinstance(duration, timedelta):
        us: float = duration // timedelta(microseconds=1)
    elif isinstance(duration, (int, float)) and not isinstance(duration, bool) and duration == duration:  # noqa: PLR0124
        us = duration * _MICROS_PER_S
    else:
        msg = f"{what} {short_text(duration, 60)} is not a timedelta or a number of seconds"
        raise UsageError(msg)
    lowest = 0 if zero else 1
    if not lowest <= us <= _LONGEST_US:
        msg = f"{what} {short_text(duration, 60)} is not from {lowest} µs to {_LONGEST_US // _MICROS_PER_S} s"
        raise UsageError(msg)
    return round(us)


_LONGEST_US = 10_000 * 86_400 * _MICROS_PER_S
