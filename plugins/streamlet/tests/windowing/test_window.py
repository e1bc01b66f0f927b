"""Windows as authors see them."""

from __future__ import annotations

from datetime import UTC, datetime

from heron_streamlet import KeyedWindow, Window


def test_a_window_shows_times() -> None:
    """In a log nobody reads microseconds."""
    window = Window(1_700_000_000_000_000, 1_700_000_060_500_000)
    assert repr(KeyedWindow("a", window)) == "KeyedWindow(key='a', window=Window(2023-11-14T22:13:20.000000Z, 60.5 s))"
    assert (window.start, window.end_time) == (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), 1_700_000_060.5)
