"""What waits for one task: watermarks, credit, and the releases it keeps back."""

from __future__ import annotations

from dataclasses import dataclass

from heron.stmgr.outlet import HeldRelease, Outlet, Watermarks


@dataclass(eq=False)
class Room:
    """A producer that counts what it is given back."""

    released: int = 0

    def release(self, size_bytes: int) -> None:
        self.released += size_bytes


def outlet_of(high_bytes: int = 100, low_bytes: int = 40, hard_bytes: int = 150) -> Outlet:
    return Outlet(7, Watermarks(low_bytes, high_bytes, hard_bytes))


def test_nothing_goes_without_a_session() -> None:
    """A task that is not there yet, or restarting, loses nothing: its segments wait."""
    outlet = outlet_of()
    outlet.put(b"x" * 10)
    assert outlet.ready() is None
    outlet.open(1000)
    assert outlet.ready() == b"x" * 10
    outlet.close()
    assert outlet.ready() is None
    assert outlet.queued_bytes == 10


def test_credit_limits_what_goes_and_a_new_session_starts_afresh() -> None:
    """What was under way to a dead session is lost and must not count against the next."""
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
    """One alone would switch back pressure with every segment."""
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


def test_the_hard_limit_has_a_way_down_of_its_own() -> None:
    """Bolts are held back at the hard limit, and go on at the high watermark, long before the spouts do."""
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


def test_held_releases_come_back_once_when_it_is_over() -> None:
    """They are given back all together and exactly once."""
    outlet, room = outlet_of(), Room()
    outlet.open(10_000)
    outlet.put(b"x" * 151)
    outlet.hold(HeldRelease(room, 5))
    outlet.hold(HeldRelease(room, 6))
    assert outlet.take_held() == []
    outlet.pop(151)
    assert [release.size_bytes for release in outlet.take_held()] == [5, 6]
    assert outlet.take_held() == []


def test_a_gone_producer_is_forgotten_alone() -> None:
    """A restarted instance must not be credited with what its former life sent."""
    outlet, gone, there = outlet_of(), Room(), Room()
    outlet.hold(HeldRelease(gone, 5))
    outlet.hold(HeldRelease(there, 6))
    outlet.forget(gone)
    assert [release.producer for release in outlet.take_held()] == [there]


def test_credit_is_spent_for_what_is_sent() -> None:
    """A segment that is sent with fewer destinations is shorter: its receiver can only release that much."""
    outlet = outlet_of()
    outlet.open(100)
    outlet.put(b"x" * 80)
    outlet.pop(72)
    assert outlet.window is not None
    assert outlet.window.sent_bytes == 72
    assert outlet.queued_bytes == 0


def test_small_segments_count_for_what_they_take() -> None:
    """A trickle of single tuples would else fill memory with what stands beside each, far below every watermark."""
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


def test_it_knows_whose_credit_it_keeps() -> None:
    """Who only waits for a full task is not the cause of the pressure."""
    outlet, one, other = outlet_of(), Room(), Room()
    outlet.hold(HeldRelease(one, 5))
    assert outlet.holds(one)
    assert not outlet.holds(other)
