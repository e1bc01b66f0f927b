"""The desk of ledgers and the way to it: who hears what, and when everything fails."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heron.api.definition import ComponentDefinition, ComponentKind, StreamDefinition, TopologyDefinition
from heron.errors import RemoteProtocolError
from heron.ipc.frame import FRAME_HEADER_BYTES, SegmentKind, parse_segment, segment_routes
from heron.ipc.tracking import (
    COUNTER_BITS,
    LISTED,
    RootOutcome,
    ack_range,
    new_roots_derived,
    parse_settled,
    tracking_segment,
)
from heron.ipc.tracking_arrays import acks, edge_keys, fails
from heron.planner.physical_plan import PhysicalPlan, TaskPlan, TopologyState
from heron.stmgr.ack_outcomes import AckOutcomes
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.ledger import SEGMENT_ROOTS, Ledger
from heron.stmgr.stmgr_metrics import ack_metrics

SPOUT, OTHER, BOLT, KEY = 2, 3, 5, 77


def told(desk: AckOutcomes, task_id: int = SPOUT) -> list[tuple[str, list[int]]]:
    """What a task is told now."""
    found = []
    for data in desk.take_settled().get(task_id, []):
        outcome, roots = parse_settled(data, parse_segment(data, 0))
        found.append((outcome.name, list(roots)))
    return found


def roots(*counters: int, task_id: int = SPOUT) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([(task_id << COUNTER_BITS) | counter for counter in counters], dtype=np.uint64)


def ack_of(*rows: int, base: int = 100) -> bytes:
    keys = edge_keys(KEY, np.array(rows, dtype=np.uint64), BOLT)
    (data,) = acks(roots(*(base + row for row in rows)), keys)
    return data


def desk_with(rows: int, base: int = 100, now_s: float = 0.0) -> AckOutcomes:
    desk = AckOutcomes()
    desk.timeout_s = 30.0
    desk.take(new_roots_derived(SPOUT, base, KEY, rows, (BOLT,)), 0, SPOUT, now_s)
    return desk


def test_a_task_hears_of_its_roots_in_the_order_in_which_they_settle() -> None:
    """Complete and failed ones interleaved, each once."""
    desk = desk_with(6)
    for data in (ack_of(4), next(iter(fails(roots(102, 101)))), ack_of(0, 1), ack_of(5, 3), ack_of(5)):
        desk.take(data, 0, SPOUT, 1.0)
    found = told(desk)
    assert [each for each in found if each[0] == "FAILED"] == [("FAILED", [101, 102])]
    assert [root for how, each in found if how == "COMPLETE" for root in each] == [104, 100, 105, 103]
    assert found.index(("FAILED", [101, 102])) == 1
    assert told(desk) == []
    assert desk.in_flight() == 0


def test_what_is_too_old_expires_and_later_acks_mean_nothing() -> None:
    """A full timeout after its insertion, whatever happened since."""
    desk = desk_with(3)
    desk.take(new_roots_derived(SPOUT, 103, KEY, 2, (BOLT,)), 0, SPOUT, 10.0)
    desk.take(ack_of(1), 0, SPOUT, 29.0)
    desk.expire(29.9)
    assert told(desk) == [("COMPLETE", [101])]
    desk.expire(30.0)
    assert told(desk) == [("EXPIRED", [100, 102])]
    desk.take(ack_of(0, 2), 0, SPOUT, 31.0)
    desk.take(next(iter(fails(roots(100)))), 0, SPOUT, 31.0)
    assert told(desk) == []
    desk.expire(40.0)
    assert told(desk) == [("EXPIRED", [103, 104])]
    assert desk.counters.settled == {
        RootOutcome.COMPLETE: 1,
        RootOutcome.FAILED: 0,
        RootOutcome.EXPIRED: 4,
        RootOutcome.LOST: 0,
    }
    assert (desk.counters.late_acks, desk.counters.late_fails) == (2, 1)


def test_a_loss_fails_all_that_is_in_flight_and_nothing_that_comes_after() -> None:
    """A loss anywhere may have hit any tree (design D5)."""
    desk = desk_with(2)
    desk.take(new_roots_derived(OTHER, 9, KEY, 1, (BOLT,)), 0, OTHER, 0.0)
    desk.fail_all()
    desk.take(new_roots_derived(SPOUT, 102, KEY, 1, (BOLT,)), 0, SPOUT, 0.0)
    desk.take(ack_of(0, 1), 0, SPOUT, 0.0)
    settled = desk.take_settled()
    assert {task: [parse_settled(data, parse_segment(data, 0)) for data in each] for task, each in settled.items()} == {
        SPOUT: [(RootOutcome.LOST, range(100, 102))],
        OTHER: [(RootOutcome.LOST, range(9, 10))],
    }
    assert desk.in_flight() == 1


def test_a_task_that_is_gone_is_told_nothing() -> None:
    """Its next life would take it for news of its own roots."""
    desk = desk_with(2)
    desk.take(ack_of(0), 0, SPOUT, 0.0)
    desk.forget(SPOUT)
    assert desk.take_settled() == {}
    desk.take(ack_of(1), 0, SPOUT, 0.0)
    desk.take(next(iter(fails(roots(101)))), 0, SPOUT, 0.0)
    assert desk.take_settled() == {}
    assert desk.in_flight() == 0


def test_a_root_without_copies_is_complete_at_once() -> None:
    """Nobody hears of its stream."""
    desk = desk_with(2)
    desk.take(new_roots_derived(SPOUT, 102, KEY, 2, ()), 0, SPOUT, 0.0)
    assert told(desk) == [("COMPLETE", [102, 103])]


@pytest.mark.parametrize("kind", [SegmentKind.ROOTS, SegmentKind.ACK, SegmentKind.FAIL])
def test_a_garbled_segment_changes_nothing(kind: SegmentKind) -> None:
    """It ends the session; what other sessions have told stays."""
    desk = desk_with(2)
    with pytest.raises(RemoteProtocolError):
        desk.take(tracking_segment(SPOUT, kind, LISTED, 3, b"\0" * 7), 0, SPOUT, 0.0)
    assert desk.in_flight() == 2


def plan_with(config: dict[str, object]) -> PhysicalPlan:
    spout = ComponentDefinition("spout", ComponentKind.SPOUT, "m:S", 1, (StreamDefinition("default", ("v",)),))
    topology = TopologyDefinition("t", (spout,), config)
    return PhysicalPlan(1, 1, "t-1", topology, TopologyState.RUNNING, (TaskPlan(SPOUT, "spout", 0, 1),), ())


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def give(routes: AckRouting, *segments: bytes) -> None:
    """Gives a frame of segments, as the router does."""
    frame = bytes(FRAME_HEADER_BYTES) + b"".join(segments)
    for start, end, destinations in segment_routes(frame):
        routes.take(frame, start, end, destinations[0])


def test_what_is_about_other_tasks_roots_goes_elsewhere() -> None:
    """In order, and only once."""
    routes = AckRouting(frozenset({SPOUT}), Clock())
    mine = new_roots_derived(SPOUT, 100, KEY, 1, (BOLT,))
    theirs = [ack_range((OTHER << COUNTER_BITS) | base, KEY, BOLT, 4) for base in (7, 8)]
    give(routes, theirs[0], mine, theirs[1], ack_of(0))
    assert routes.take_remote() == {OTHER: theirs}
    assert routes.take_remote() == {}
    assert list(routes.take_settled()) == [SPOUT]


@pytest.mark.parametrize(
    ("config", "timeout_s"),
    [
        ({}, 30.0),
        ({"topology.message.timeout.secs": 4}, 4.0),
        ({"topology.message.timeout.secs": 4, "topology.enable.message.timeouts": False}, math.inf),
    ],
)
@pytest.mark.parametrize("plan_first", [True, False])
def test_the_plan_brings_the_message_timeout(config: dict[str, object], timeout_s: float, plan_first: bool) -> None:
    """Switched off, nothing expires. Before the plan nothing does either."""
    clock = Clock()
    routes = AckRouting(frozenset({SPOUT}), clock)
    if plan_first:
        routes.set_plan(plan_with(config))
    give(routes, new_roots_derived(SPOUT, 100, KEY, 1, (BOLT,)))
    routes.set_plan(plan_with(config))
    give(routes, new_roots_derived(SPOUT, 101, KEY, 1, (BOLT,)))
    clock.now_s += min(timeout_s, 1e9) - 0.01
    routes.expire()
    assert routes.take_settled() == {}
    clock.now_s += 0.02
    routes.expire()
    assert bool(routes.take_settled()) == (timeout_s != math.inf)


def test_what_comes_too_late_is_counted_and_shown() -> None:
    """Acks and fails after an expiry, and of a task that is gone: harmless, and visible."""
    clock = Clock()
    routes = AckRouting(frozenset({SPOUT}), clock)
    assert {each.value for each in ack_metrics(routes.counters(), routes.in_flight())} == {0}
    routes.set_plan(plan_with({}))
    give(routes, new_roots_derived(SPOUT, 100, KEY, 3, (BOLT,)))
    clock.now_s += 31.0
    give(routes, new_roots_derived(SPOUT, 103, KEY, 2, (BOLT,)))
    routes.expire()
    give(routes, ack_of(0, 1), ack_of(0, base=103), *fails(roots(102, 104)), *fails(roots(104)))
    values = {
        (each.name, *each.labels.values()): each.value for each in ack_metrics(routes.counters(), routes.in_flight())
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
    routes.local_task_lost(SPOUT)
    give(routes, ack_range((SPOUT << COUNTER_BITS) | 103, KEY, BOLT, 2), *fails(roots(103)))
    counts = routes.counters()
    assert (counts.late_acks, counts.late_fails) == (4, 3)


def test_losses_before_the_first_root_need_no_ledger() -> None:
    """At most once, numpy is never loaded for them."""
    routes = AckRouting(frozenset({SPOUT}), Clock())
    routes.fail_all("task 9")
    routes.local_task_lost(SPOUT)
    routes.expire()
    assert routes.take_settled() == {}


def test_a_lost_task_takes_its_own_roots_and_fails_the_others() -> None:
    """Its next incarnation has other ones."""
    routes = AckRouting(frozenset({SPOUT, OTHER}), Clock())
    give(routes, *(new_roots_derived(task, 100, KEY, 1, (BOLT,)) for task in (SPOUT, OTHER)))
    routes.local_task_lost(SPOUT)
    assert list(routes.take_settled()) == [OTHER]


@pytest.mark.parametrize("size", [1, 512, SEGMENT_ROOTS, 3 * SEGMENT_ROOTS])
@pytest.mark.parametrize("acked", [True, False])
def test_a_ledger_without_timeouts_keeps_nothing_of_what_is_complete(size: int, acked: bool) -> None:
    """Also where batches end exactly where its segments do, and for roots that have no copies."""
    ledger = Ledger(0)
    for _ in range(6 * SEGMENT_ROOTS // size if acked else 6):
        base = ledger.next_root
        keys = edge_keys(base + 1, np.arange(size, dtype=np.uint64), BOLT)
        complete = ledger.insert(base, keys if acked else np.zeros(size, dtype=np.uint64), math.inf)
        assert len(ledger.update_range(base, keys)) + len(complete) == size
    assert len(ledger._segments) <= 1
