"""Outlets: watermarks, credit, held releases, and the choice of the next segments for a peer."""

from __future__ import annotations

from dataclasses import dataclass

from heron.stmgr.outlet import HeldRelease, Outlet, Watermarks


@dataclass(eq=False)
class Room:
    """A producer that counts released bytes."""

    released: int = 0

    def release(self, size_bytes: int) -> None:
        self.released += size_bytes


def outlet_of(high_bytes: int = 100, low_bytes: int = 40, hard_bytes: int = 150) -> Outlet:
    return Outlet(7, Watermarks(low_bytes, high_bytes, hard_bytes))


def test_no_segment_is_sent_without_a_session() -> None:
    """The segments of a task that starts or restarts wait."""
    outlet = outlet_of()
    outlet.put(b"x" * 10)
    assert outlet.ready() is None
    outlet.open(1000)
    assert outlet.ready() == b"x" * 10
    outlet.close()
    assert outlet.ready() is None
    assert outlet.queued_bytes == 10


def test_credit_limits_the_segments_and_a_new_session_has_a_full_window() -> None:
    """Segments under way in an ended session are lost, and must not count against the next one."""
    outlet = outlet_of()
    for size in (60, 60):
        outlet.put(b"x" * size)
    outlet.open(100)
    outlet.pop(60)
    assert outlet.ready() is None
    outlet.close()
    outlet.open(100)
    assert outlet.ready() is not None


def test_congestion_has_two_watermarks() -> None:
    """A single watermark would switch back pressure with each segment."""
    outlet = outlet_of(high_bytes=100, low_bytes=40)
    outlet.open(10_000)
    states = []
    for size in (*[10] * 10, 1):
        outlet.put(b"x" * size)
        states.append((outlet.queued_bytes, outlet.congested))
    assert states[9:] == [(100, False), (101, True)]
    states = []
    while outlet.queue:
        outlet.pop(len(outlet.queue[0]))
        states.append((outlet.queued_bytes, outlet.congested))
    assert states[5:7] == [(41, True), (31, False)]
    assert not any(congested for _, congested in states[6:])


def test_an_outlet_is_full_from_the_hard_limit_to_the_high_watermark() -> None:
    """Bolts stop at the hard limit and continue at the high watermark, long before the spouts do."""
    outlet = outlet_of(high_bytes=100, low_bytes=40, hard_bytes=150)
    outlet.open(10_000)
    states = []
    for _ in range(16):
        outlet.put(b"x" * 10)
        states.append((outlet.queued_bytes, outlet.congested, outlet.full))
    assert states[10:11] + states[14:] == [(110, True, False), (150, True, False), (160, True, True)]
    states = []
    while outlet.queue:
        outlet.pop(10)
        states.append((outlet.queued_bytes, outlet.congested, outlet.full))
    assert states[4:6] + states[10:12] == [
        (110, True, True),
        (100, True, False),
        (50, True, False),
        (40, False, False),
    ]


def test_held_releases_are_given_back_once_when_the_outlet_has_room() -> None:
    """They are given back together, exactly once."""
    outlet, room = outlet_of(), Room()
    outlet.open(10_000)
    outlet.put(b"x" * 151)
    outlet.hold(HeldRelease(room, 5))
    outlet.hold(HeldRelease(room, 6))
    assert outlet.take_held() == []
    outlet.pop(151)
    assert [release.size_bytes for release in outlet.take_held()] == [5, 6]
    assert outlet.take_held() == []


def test_only_the_releases_of_a_gone_producer_are_dropped() -> None:
    """A restarted instance must not get credit for data of its former incarnation."""
    outlet, gone, there = outlet_of(), Room(), Room()
    outlet.hold(HeldRelease(gone, 5))
    outlet.hold(HeldRelease(there, 6))
    outlet.forget(gone)
    assert [release.producer for release in outlet.take_held()] == [there]


def test_credit_is_spent_for_the_bytes_that_are_sent() -> None:
    """A segment with fewer destinations is shorter, and its receiver releases only its bytes."""
    outlet = outlet_of()
    outlet.open(100)
    outlet.put(b"x" * 80)
    outlet.pop(72)
    assert outlet.window is not None
    assert outlet.window.sent_bytes == 72
    assert outlet.queued_bytes == 0


def test_small_segments_count_with_their_overhead() -> None:
    """Otherwise many small segments would fill the memory below every watermark."""
    outlet = Outlet(7, Watermarks(low_bytes=500, high_bytes=1000, hard_bytes=2000, segment_bytes=64))
    outlet.open(10_000)
    states = []
    for _ in range(28):
        outlet.put(b"x" * 10)
        states.append((outlet.congested, outlet.full))
    assert states.index((True, False)) == 13  # the 14th: 14 * 74 is 1,036
    assert states.index((True, True)) == 27
    assert outlet.queued_bytes == 280
    while outlet.queue:
        outlet.pop(10)
        states.append((outlet.congested, outlet.full))
    assert states[28:].index((True, False)) == 14
    assert states[28:].index((False, False)) == 21


def test_an_outlet_reports_whose_releases_it_holds() -> None:
    """A task that only waits for a full outlet is not the cause of back pressure."""
    outlet, one, other = outlet_of(), Room(), Room()
    outlet.hold(HeldRelease(one, 5))
    assert outlet.holds(one)
    assert not outlet.holds(other)
