"""The hops between the stamps of a span."""

from __future__ import annotations

import pytest

from heron.spi.tracing import HopKind, Stamp, StampKind, hops_of


def stamps(*given: tuple[StampKind, int, int]) -> tuple[Stamp, ...]:
    """Kind, clock and milliseconds of each; the wall clock of clock 2 is 5 ms ahead."""
    return tuple(
        Stamp(kind, clock, ms * 1_000_000 + clock, ms * 1_000_000 + (5_000_000 if clock == 2 else 0))
        for kind, clock, ms in given
    )


def test_each_hop_ends_with_its_stamp_in_any_order() -> None:
    """The time between two stamps belongs to what ended then."""
    found = hops_of(
        stamps(
            (StampKind.ENDED, 1, 60),
            (StampKind.EMITTED, 1, 0),
            (StampKind.SENT, 1, 13),
            (StampKind.FLUSHED, 1, 10),
            (StampKind.STARTED, 1, 20),
        )
    )
    assert [(hop.kind, round(1000 * hop.duration_s), hop.is_estimate) for hop in found] == [
        (HopKind.EMIT_BATCH, 10, False),
        (HopKind.GATEWAY, 3, False),
        (HopKind.QUEUE, 7, False),  # the stamps between are missing
        (HopKind.EXECUTE, 40, False),
    ]


@pytest.mark.parametrize(("arrives_ms", "expected_s"), [(10, 0.011), (0, 0.001), (-20, 0.0)])
def test_the_time_between_two_clocks_is_an_estimate_and_never_negative(arrives_ms: int, expected_s: float) -> None:
    """Wall clocks may be apart by more than the way takes."""
    (hop,) = hops_of(stamps((StampKind.FORWARDED, 1, 4), (StampKind.PEER_ROUTED, 2, arrives_ms)))
    assert (hop.kind, hop.is_estimate) == (HopKind.WIRE, True)
    assert hop.duration_s == pytest.approx(expected_s)


def test_times_that_go_back_take_no_time() -> None:
    """A peer may write anything."""
    (hop,) = hops_of(stamps((StampKind.STARTED, 1, 9), (StampKind.ENDED, 1, 4)))
    assert hop.duration_s == 0


def test_fewer_than_two_stamps_are_no_hop() -> None:
    """The span of a root has only its emit."""
    assert hops_of(stamps((StampKind.EMITTED, 1, 0))) == ()
    assert hops_of(()) == ()
