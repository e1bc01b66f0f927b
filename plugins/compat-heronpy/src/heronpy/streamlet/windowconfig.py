"""Windows of time."""

from __future__ import annotations

from datetime import timedelta

from heron_streamlet import sliding_window
from heron_streamlet.windowing.window import SlidingWindow

__all__ = ["WindowConfig"]


class WindowConfig:
    """Makes windows; a duration is a `timedelta` or a number of seconds. They follow the clock, as in heronpy."""

    def __new__(cls, window_duration: timedelta | float, slide_interval: timedelta | float) -> SlidingWindow:  # type: ignore[misc]
        """Return windows of `window_duration`, one every `slide_interval`."""
        return sliding_window(window_duration, slide_interval)

    @staticmethod
    def create_tumbling_window(window_duration: timedelta | float) -> SlidingWindow:
        """Return windows that are beside each other."""
        return sliding_window(window_duration, window_duration)

    @staticmethod
    def create_sliding_window(window_duration: timedelta | float, slide_interval: timedelta | float) -> SlidingWindow:
        """Return windows of `window_duration`, one every `slide_interval`."""
        return sliding_window(window_duration, slide_interval)
