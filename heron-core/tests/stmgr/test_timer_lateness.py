"""How long a process came too late to its own timer."""

from __future__ import annotations

from heron.stmgr.counters import TimerLateness


def test_what_is_beyond_the_period_counts_and_a_little_of_it_is_forgiven() -> None:
    """A process that runs a tenth of the time is late for most of the rest; a busy one is not late."""
    lateness = TimerLateness(0.1, 10.0)
    for now_s in (10.1, 10.25, 10.35):
        lateness.fired(now_s)
    assert lateness.total_s == 0.0
    lateness.fired(11.35)
    assert round(lateness.total_s, 6) == 0.9
    lateness.fired(11.45)
    assert round(lateness.total_s, 6) == 0.9
