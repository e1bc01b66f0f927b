"""Acks: their routing to the ledgers, and the outcomes that tasks receive."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heron.errors import RemoteProtocolError
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, SegmentKind, parse_segment, segment_routes
from heron.ipc.frames.tracking import (
    COUNTER_BITS,
    LISTED,
    RootOutcome,
    ack_range,
    new_roots_derived,
    parse_settled,
    tracking_segment,
)
from heron.ipc.frames.tracking_arrays import acks, edge_keys, fails
from heron.planner.physical_plan import PhysicalPlan
from heron.stmgr.ack_outcomes import AckOutcomes
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.ledger import SEGMENT_ROOTS, Ledger
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.stmgr_metrics import ack_metrics
from heron_testing.builders import physical_plan, spout, topology

SPOUT, OTHER, BOLT, KEY = 2, 3, 5, 77


def received(outcomes: AckOutcomes, task_id: int = SPOUT) -> list[tuple[str, list[int]]]:
    """The outcomes that a task receives now."""
    found = []
    for data in outcomes.take_settled().get(task_id, []):
        outcome, roots = parse_settled(data, parse_segment(data, 0))
        found.append((outcome.name, list(roots)))
    return found


def roots(*counters: int, task_id: int = SPOUT) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([(task_id << COUNTER_BITS) | counter for counter in counters], dtype=np.uint64)


def ack_of(*rows: int, base: int = 100) -> bytes:
    keys = edge_keys(KEY, np.array(rows, dtype=np.uint64), BOLT)
    (data,) = acks(roots(*(base + row for row in rows)), keys)
    return data


def outcomes_with(rows: int, base: int = 100, now_s: float = 0.0) -> AckOutcomes:
    outcomes = AckOutcomes()
    outcomes.timeout_s = 30.0
    outcomes.take(new_roots_derived(SPOUT, base, KEY, rows, (BOLT,)), 0, SPOUT, now_s)
    return outcomes


def test_a_task_receives_outcomes_in_the_order_of_completion() -> None:
    """Complete and failed roots alternate; each comes once."""
    outcomes = outcomes_with(6)
    for data in (ack_of(4), next(iter(fails(roots(102, 101)))), ack_of(0, 1), ack_of(5, 3), ack_of(5)):
        outcomes.take(data, 0, SPOUT, 1.0)
    found = received(outcomes)
    assert [each for each in found if each[0] == "FAILED"] == [("FAILED", [101, 102])]
    assert [root for how, each in found if how == "COMPLETE" for root in each] == [104, 100, 105, 103]
    assert found.index(("FAILED", [101, 102])) == 1
    assert received(outcomes) == []
    assert outcomes.in_flight() == 0


def test_complete_roots_around_failed_ones_are_a_range() -> None:
    """A list of them costs their spout five times as much; the failed ones have ended for it before."""
    outcomes = outcomes_with(6)
    for data in (next(iter(fails(roots(101, 104)))), ack_of(0, 2, 3, 5)):
        outcomes.take(data, 0, SPOUT, 1.0)
    (_, complete) = outcomes.take_settled()[SPOUT]
    assert parse_settled(complete, parse_segment(complete, 0)) == (RootOutcome.COMPLETE, range(100, 106))
    assert outcomes.counters.settled[RootOutcome.COMPLETE] == 4
    assert (outcomes.in_flight(), outcomes.counters.late_acks) == (0, 0)


def test_the_ack_of_a_batch_leaves_out_the_roots_that_failed_in_front_of_it() -> None:
    """The others are complete, as if they were listed, and none of their acks is late."""
    outcomes = outcomes_with(6)
    whole = ack_range((SPOUT << COUNTER_BITS) | 100, KEY, BOLT, 6, failed=2)
    for data in (next(iter(fails(roots(101, 104)))), whole):
        outcomes.take(data, 0, SPOUT, 1.0)
    assert outcomes.counters.settled[RootOutcome.COMPLETE] == 4
    assert (outcomes.in_flight(), outcomes.counters.late_acks) == (0, 0)
    outcomes.take(whole, 0, SPOUT, 1.0)
    assert outcomes.counters.late_acks == 4


@pytest.mark.parametrize("acked", [[0, 2, 3], [3, 2, 0], [0, 5]])
def test_complete_roots_are_listed_if_others_between_them_have_not_ended(acked: list[int]) -> None:
    """A range would complete them too."""
    outcomes = outcomes_with(6)
    outcomes.take(ack_of(*acked), 0, SPOUT, 1.0)
    assert received(outcomes) == [("COMPLETE", [100 + each for each in acked])]
    outcomes.take(next(iter(fails(roots(*(100 + each for each in range(6) if each not in acked))))), 0, SPOUT, 1.0)
    ((how, _),) = received(outcomes)
    assert (how, outcomes.in_flight()) == ("FAILED", 0)


def test_old_roots_expire_and_later_acks_have_no_effect() -> None:
    """A root expires a full timeout after its insertion."""
    outcomes = outcomes_with(3)
    outcomes.take(new_roots_derived(SPOUT, 103, KEY, 2, (BOLT,)), 0, SPOUT, 10.0)
    outcomes.take(ack_of(1), 0, SPOUT, 29.0)
    outcomes.expire(29.9)
    assert received(outcomes) == [("COMPLETE", [101])]
    outcomes.expire(30.0)
    assert received(outcomes) == [("EXPIRED", [100, 102])]
    outcomes.take(ack_of(0, 2), 0, SPOUT, 31.0)
    outcomes.take(next(iter(fails(roots(100)))), 0, SPOUT, 31.0)
    assert received(outcomes) == []
    outcomes.expire(40.0)
    assert received(outcomes) == [("EXPIRED", [103, 104])]
    assert outcomes.counters.settled == {
        RootOutcome.COMPLETE: 1,
        RootOutcome.FAILED: 0,
        RootOutcome.EXPIRED: 4,
        RootOutcome.LOST: 0,
    }
    assert (outcomes.counters.late_acks, outcomes.counters.late_fails) == (2, 1)


def test_a_loss_fails_all_roots_in_flight_and_no_later_ones() -> None:
    """A loss anywhere may affect any tree."""
    outcomes = outcomes_with(2)
    outcomes.take(new_roots_derived(OTHER, 9, KEY, 1, (BOLT,)), 0, OTHER, 0.0)
    outcomes.fail_all()
    outcomes.take(new_roots_derived(SPOUT, 102, KEY, 1, (BOLT,)), 0, SPOUT, 0.0)
    outcomes.take(ack_of(0, 1), 0, SPOUT, 0.0)
    settled = outcomes.take_settled()
    assert {task: [parse_settled(data, parse_segment(data, 0)) for data in each] for task, each in settled.items()} == {
        SPOUT: [(RootOutcome.LOST, range(100, 102))],
        OTHER: [(RootOutcome.LOST, range(9, 10))],
    }
    assert outcomes.in_flight() == 1


def test_a_task_that_is_gone_receives_no_outcomes() -> None:
    """Its next incarnation would take them for outcomes of its own roots."""
    outcomes = outcomes_with(2)
    outcomes.take(ack_of(0), 0, SPOUT, 0.0)
    outcomes.forget(SPOUT)
    assert outcomes.take_settled() == {}
    outcomes.take(ack_of(1), 0, SPOUT, 0.0)
    outcomes.take(next(iter(fails(roots(101)))), 0, SPOUT, 0.0)
    assert outcomes.take_settled() == {}
    assert outcomes.in_flight() == 0


def test_a_root_without_copies_is_complete_at_once() -> None:
    """A stream may have no consumers."""
    outcomes = outcomes_with(2)
    outcomes.take(new_roots_derived(SPOUT, 102, KEY, 2, ()), 0, SPOUT, 0.0)
    assert received(outcomes) == [("COMPLETE", [102, 103])]


@pytest.mark.parametrize("kind", [SegmentKind.ROOTS, SegmentKind.ACK, SegmentKind.FAIL])
def test_a_garbled_segment_changes_nothing(kind: SegmentKind) -> None:
    """It ends its session; the roots of other sessions stay."""
    outcomes = outcomes_with(2)
    with pytest.raises(RemoteProtocolError):
        outcomes.take(tracking_segment(SPOUT, kind, LISTED, 3, b"\0" * 7), 0, SPOUT, 0.0)
    assert outcomes.in_flight() == 2


def plan_with(config: dict[str, object]) -> PhysicalPlan:
    return physical_plan(topology(spout("spout"), config=config), {"spout": [SPOUT]})


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def give(routing: AckRouting, *segments: bytes) -> None:
    """Passes the segments of a frame, as the router does."""
    frame = bytes(FRAME_HEADER_BYTES) + b"".join(segments)
    for start, end, destinations in segment_routes(frame):
        routing.take(frame, start, end, destinations[0])


def test_segments_about_roots_of_remote_tasks_are_collected_for_their_stream_manager() -> None:
    """They are collected in order, and only once."""
    routing = AckRouting(LocalTasks(1, {SPOUT}), Clock())
    mine = new_roots_derived(SPOUT, 100, KEY, 1, (BOLT,))
    theirs = [ack_range((OTHER << COUNTER_BITS) | base, KEY, BOLT, 4) for base in (7, 8)]
    give(routing, theirs[0], mine, theirs[1], ack_of(0))
    assert routing.take_remote() == {OTHER: theirs}
    assert routing.take_remote() == {}
    assert list(routing.take_settled()) == [SPOUT]


@pytest.mark.parametrize(
    ("config", "timeout_s"),
    [
        ({}, 30.0),
        ({"topology.message.timeout.secs": 4}, 4.0),
        ({"topology.message.timeout.secs": 4, "topology.enable.message.timeouts": False}, math.inf),
    ],
)
@pytest.mark.parametrize("plan_first", [True, False])
def test_the_plan_sets_the_message_timeout(config: dict[str, object], timeout_s: float, plan_first: bool) -> None:
    """Without timeouts no root expires, and neither does any before the plan."""
    clock = Clock()
    routing = AckRouting(LocalTasks(1, {SPOUT}), clock)
    if plan_first:
        routing.set_plan(plan_with(config))
    give(routing, new_roots_derived(SPOUT, 100, KEY, 1, (BOLT,)))
    routing.set_plan(plan_with(config))
    give(routing, new_roots_derived(SPOUT, 101, KEY, 1, (BOLT,)))
    clock.now_s += min(timeout_s, 1e9) - 0.01
    routing.expire()
    assert routing.take_settled() == {}
    clock.now_s += 0.02
    routing.expire()
    assert bool(routing.take_settled()) == (timeout_s != math.inf)


def test_late_acks_and_fails_are_counted() -> None:
    """Acks and fails after an expiry, and for a task that is gone, do no harm but are visible."""
    clock = Clock()
    routing = AckRouting(LocalTasks(1, {SPOUT}), clock)
    assert {each.value for each in ack_metrics(routing.counters(), routing.in_flight())} == {0}
    routing.set_plan(plan_with({}))
    give(routing, new_roots_derived(SPOUT, 100, KEY, 3, (BOLT,)))
    clock.now_s += 31.0
    give(routing, new_roots_derived(SPOUT, 103, KEY, 2, (BOLT,)))
    routing.expire()
    give(routing, ack_of(0, 1), ack_of(0, base=103), *fails(roots(102, 104)), *fails(roots(104)))
    values = {
        (each.name, *each.labels.values()): each.value for each in ack_metrics(routing.counters(), routing.in_flight())
    }
    assert values == {
        ("roots-in-flight",): 0,
        ("settled-roots", "complete"): 1,
        ("settled-roots", "failed"): 1,
        ("settled-roots", "expired"): 3,
        ("settled-roots", "lost"): 0,
        ("late-acks", "ack"): 2,
        ("late-acks", "fail"): 2,
    }
    routing.local_task_lost(SPOUT)
    give(routing, ack_range((SPOUT << COUNTER_BITS) | 103, KEY, BOLT, 2), *fails(roots(103)))
    counts = routing.counters()
    assert (counts.late_acks, counts.late_fails) == (4, 3)


def test_losses_before_the_first_root_load_no_ledger() -> None:
    """A topology without acks must never load numpy."""
    routing = AckRouting(LocalTasks(1, {SPOUT}), Clock())
    routing.fail_all("task 9")
    routing.local_task_lost(SPOUT)
    routing.expire()
    assert routing.take_settled() == {}


def test_a_lost_task_drops_its_own_roots_and_fails_the_others() -> None:
    """Its next incarnation has new roots."""
    routing = AckRouting(LocalTasks(1, {SPOUT, OTHER}), Clock())
    give(routing, *(new_roots_derived(task, 100, KEY, 1, (BOLT,)) for task in (SPOUT, OTHER)))
    routing.local_task_lost(SPOUT)
    assert list(routing.take_settled()) == [OTHER]


@pytest.mark.parametrize("size", [1, 512, SEGMENT_ROOTS, 3 * SEGMENT_ROOTS])
@pytest.mark.parametrize("acked", [True, False])
def test_a_ledger_without_timeouts_frees_complete_roots(size: int, acked: bool) -> None:
    """So it does for batches that end with a segment, and for roots without copies."""
    ledger = Ledger(0)
    for _ in range(6 * SEGMENT_ROOTS // size if acked else 6):
        base = ledger.next_root
        keys = edge_keys(base + 1, np.arange(size, dtype=np.uint64), BOLT)
        complete = ledger.insert(base, keys if acked else np.zeros(size, dtype=np.uint64), math.inf)
        assert len(ledger.update_range(base, keys)) + len(complete) == size
    assert len(ledger._segments) <= 1


def test_the_cause_of_a_fail_reaches_the_task_in_front_of_it() -> None:
    """Also if the root is not in flight: only the task knows its roots."""
    outcomes = AckOutcomes()
    outcomes.take(new_roots_derived(SPOUT, 100, KEY, 2, (BOLT,)), 0, SPOUT, 0.0)
    cause, fail = fails(roots(101), [(b"why", b"")])
    for data in (cause, fail):
        outcomes.take(data, 0, SPOUT, 0.0)
    first, second = outcomes.take_settled()[SPOUT]
    assert first == cause
    assert parse_settled(second, parse_segment(second, 0)) == (RootOutcome.FAILED, [101])
    assert outcomes.take_settled() == {}
