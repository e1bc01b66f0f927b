"""Where segments go, and when their credit is released."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

import pytest

from heron.clock import monotonic_s
from heron.errors import RemoteProtocolError, Violation
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    SEGMENT_KIND_AT,
    FrameKind,
    Marker,
    frame_header,
    marker_segment,
    parse_segment,
)
from heron.ipc.frames.trace_field import TRACED, TraceEntry, parse_trace, trace_option, traced_segment
from heron.spi.tracing import StampKind
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.outlet import Watermarks
from heron.stmgr.router import Router
from parts import data_frame, end_marker, tuple_segment


@dataclass(eq=False)
class Room:
    """A producer that counts released bytes."""

    released: int = 0

    def release(self, size_bytes: int) -> None:
        self.released += size_bytes


@dataclass
class Peer:
    """The producers of a peer, one per task."""

    rooms: dict[int, Room] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)

    def receive(self, task_id: int, size_bytes: int) -> Room:
        self.received[task_id] = self.received.get(task_id, 0) + size_bytes
        return self.rooms.setdefault(task_id, Room())


def tuples(destinations: Sequence[int], payload: bytes = b"rows") -> bytes:
    return tuple_segment([(payload,)], destinations)


def router_of(*task_ids: int, high_bytes: int = 200, low_bytes: int = 100, hard_bytes: int = 200) -> Router:
    router = Router(AckRouting(LocalTasks(1, ()), monotonic_s), Watermarks(low_bytes, high_bytes, hard_bytes))
    router.set_tasks(task_ids)
    return router


def take_all(router: Router, task_id: int) -> list[bytes]:
    outlet = router.outlets[task_id]
    if outlet.window is None:
        outlet.open(1_000_000)
    taken = []
    while (head := outlet.ready()) is not None:
        taken.append(bytes(outlet.pop(len(head))))
        assert outlet.window is not None
        outlet.window.release(outlet.window.sent_bytes)
    router.release_held()
    return taken


def sent_bytes(router: Router, task_id: int) -> int:
    window = router.outlets[task_id].window
    assert window is not None
    return window.sent_bytes


def test_segments_reach_their_tasks_in_order() -> None:
    """Each task gets its segments of a frame in the order of sending."""
    router, room = router_of(1, 2, 3), Room()
    first, both, last = tuples([1], b"a"), tuples([2, 1], b"b"), tuples([2], b"c" * 100)
    router.route(data_frame(first, both, last), room)
    assert router.take_changed() == {1, 2}
    assert router.take_changed() == set()
    assert take_all(router, 1) == [first, both]
    assert take_all(router, 2) == [both, last]
    assert take_all(router, 3) == []


def test_credit_is_released_at_once_below_the_watermark() -> None:
    """It is the size of the frame without its header, as the instance counts it."""
    router, room = router_of(1, 2), Room()
    frame = data_frame(tuples([1]), tuples([2]))
    router.route(frame, room)
    assert room.released == len(frame) - FRAME_HEADER_BYTES


def test_bolts_continue_between_the_watermark_and_the_hard_limit() -> None:
    """A task above the high watermark is a culprit, but only the hard limit stops the bolts that feed it."""
    router, room, peer = router_of(1, high_bytes=200, low_bytes=100, hard_bytes=1000), Room(), Peer()
    frame = data_frame(tuples([1], b"x" * 300))
    router.route(frame, room)
    router.route_from_peer(frame, peer)
    assert router.culprits() == {1}
    assert room.released == peer.rooms[1].released == len(frame) - FRAME_HEADER_BYTES
    router.route(data_frame(tuples([1], b"x" * 300)), room)
    assert room.released == len(frame) - FRAME_HEADER_BYTES
    take_all(router, 1)
    assert room.released == 2 * (len(frame) - FRAME_HEADER_BYTES)


def test_tuples_are_dropped_and_counted_if_the_topology_says_so() -> None:
    """With ``topology.droptuples.upon.backpressure``, markers stay and credit is released."""
    router, room = router_of(1, 2, hard_bytes=1000), Room()
    router.drops = True
    first, second = tuples([1], b"x" * 300), tuples([1, 2], b"y")
    router.route(data_frame(first), room)
    router.route(data_frame(second, end_marker([1])), room)
    assert router.dropped_tuples == {1: 1}
    assert room.released == len(first) + len(second) + len(end_marker([1]))
    assert take_all(router, 1) == [first, end_marker([1])]
    assert take_all(router, 2) == [second]
    assert router.unroutable_segments == 0


@pytest.mark.parametrize("order", [*permutations((1, 2, 3))])
def test_credit_is_held_while_any_destination_is_full(order: tuple[int, ...]) -> None:
    """A frame for three full outlets waits for all of them, in any order."""
    router, room = router_of(1, 2, 3, 4), Room()
    frame = data_frame(*(tuples([task_id], b"x" * 300) for task_id in order), tuples([4]))
    router.route(frame, room)
    assert router.culprits() == {1, 2, 3}
    for task_id in sorted(order):
        assert room.released == 0
        take_all(router, task_id)
    assert room.released == len(frame) - FRAME_HEADER_BYTES
    router.release_held()
    assert room.released == len(frame) - FRAME_HEADER_BYTES


def test_credit_of_a_peer_is_held_per_task() -> None:
    """Credit per link would deadlock: a full outlet must not delay the data of another task."""
    router, peer = router_of(1, 2), Peer()
    full, free = tuples([1], b"x" * 300), tuples([1, 2])
    router.route_from_peer(data_frame(full, free), peer)
    assert peer.received == {1: len(full) + len(free), 2: len(free)}
    assert peer.rooms[1].released == 0
    assert peer.rooms[2].released == len(free)
    take_all(router, 1)
    assert peer.rooms[1].released == peer.received[1]


def test_a_segment_for_an_unknown_task_is_counted_and_its_credit_released() -> None:
    """Data for a task that is gone must be visible, and must not stop its sender."""
    router, room, peer = router_of(1), Room(), Peer()
    frame = data_frame(tuples([1, 99]), tuples([98]))
    router.route(frame, room)
    router.route_from_peer(frame, peer)
    assert router.unroutable_segments == 4
    assert room.released == len(frame) - FRAME_HEADER_BYTES
    assert peer.rooms[98].released == peer.received[98]


def test_the_culprits_after_a_round_are_those_of_all_outlets() -> None:
    """Looking only at changed outlets must not miss a culprit, nor keep one that drained or left the plan."""
    draw, router, room = random.Random(1), router_of(1, 2, 3, 4), Room()
    seen = 0
    for _ in range(300):
        for _ in range(draw.randrange(3)):
            task_id = draw.choice([1, 2, 3, 4])
            if draw.random() < 0.5:
                router.route(data_frame(tuples([task_id], b"x" * draw.choice([50, 150, 300]))), room)
            elif task_id in router.outlets:
                take_all(router, task_id)
                router.credit_arrived(task_id, sent_bytes(router, task_id))
        if draw.random() < 0.05:
            router.set_tasks(draw.sample([1, 2, 3, 4], 3))
        assert router.culprits_after(router.take_changed()) == router.culprits()
        seen += bool(router.culprits())
    assert 50 < seen < 300


def test_a_gone_producer_gets_no_credit() -> None:
    """Its successor has its own window."""
    router, room = router_of(1), Room()
    router.route(data_frame(tuples([1], b"x" * 300)), room)
    router.forget(room)
    take_all(router, 1)
    assert room.released == 0


def test_tasks_that_leave_the_plan_release_their_producers() -> None:
    """Their queued segments are counted, and no producer waits for the end of their congestion."""
    router, room = router_of(1, 2), Room()
    frame = data_frame(tuples([1], b"x" * 300), tuples([2], b"x" * 300))
    router.route(frame, room)
    (gone,) = router.set_tasks([2, 3])
    assert gone.task_id == 1
    assert router.unroutable_segments == 1
    assert room.released == 0
    take_all(router, 2)
    assert room.released == len(frame) - FRAME_HEADER_BYTES
    assert set(router.outlets) == {2, 3}


def test_a_new_plan_keeps_the_queued_segments_of_remaining_tasks() -> None:
    """A change of plan loses no data."""
    router, room = router_of(1), Room()
    router.route(data_frame(tuples([1])), room)
    assert router.set_tasks([1, 2]) == ()
    assert len(take_all(router, 1)) == 1


def test_markers_are_sent_again_behind_queued_segments() -> None:
    """A restarted task must receive the END markers again, but not before the data that still waits."""
    router, room = router_of(1, 2), Room()
    router.route(data_frame(tuples([1], b"a"), end_marker([1, 2], source_task=5)), room)
    router.route_from_peer(data_frame(end_marker([1], source_task=6), end_marker([1], source_task=6)), Peer())
    assert len(take_all(router, 1)) == 4
    waiting = tuples([1], b"b")
    router.route(data_frame(waiting), room)
    router.outlets[1].close()
    router.open_outlet(1, 1_000_000)
    again = take_all(router, 1)
    assert again[0] == waiting
    assert [parse_segment(each, 0).source_task for each in again[1:]] == [5, 6]


def test_credit_and_a_new_session_let_a_round_send_what_waits() -> None:
    """A round sends only the outlets that have changed; what waits in others would stay until their next segment."""
    router, room = router_of(1, 2), Room()
    router.route(data_frame(tuples([1])), room)
    router.take_changed()
    router.credit_arrived(1, 10)  # of a session that has ended
    router.credit_arrived(3, 10)  # of a task that has left
    assert router.take_changed() == set()
    router.open_outlet(1, 1_000_000)
    assert router.take_changed() == {1}
    take_all(router, 1)
    router.open_outlet(1, 1_000_000)
    assert router.take_changed() == set()
    router.credit_arrived(1, sent_bytes(router, 1))
    assert router.take_changed() == {1}


def test_markers_of_end_and_plan_are_kept_the_newest_of_each_source() -> None:
    """A restarted task needs both; other markers lose their meaning."""
    router = router_of(1, 5)

    def marker(kind: Marker, value: int) -> bytes:
        return marker_segment([1], kind, value, plan_version=1, source_task=5, incarnation=0)

    router.route(data_frame(marker(Marker.WATERMARK, 9), marker(Marker.PLAN, 3), marker(Marker.END, 0)), Room())
    router.route(data_frame(marker(Marker.PLAN, 4)), Room())
    assert router.markers.of(1) == (marker(Marker.PLAN, 4), marker(Marker.END, 0))
    router.set_tasks([1])
    assert router.markers.of(1) == ()


def test_only_tuples_for_a_task_that_left_the_plan_are_a_loss() -> None:
    """Markers for it mean nothing any more, and a loss would fail every root."""
    router = router_of(1, 2)
    router.route(data_frame(end_marker([2], source_task=1), tuples([2])), Room())
    router.set_tasks([1])
    assert router.unroutable_segments == 1


def test_a_garbled_frame_is_refused_after_its_valid_segments() -> None:
    """The session ends, but the segments before the garbage were routed."""
    router = router_of(1)
    with pytest.raises(RemoteProtocolError):
        router.route(data_frame(tuples([1]), b"garbage"), Room())
    assert len(take_all(router, 1)) == 1


def test_a_small_segment_does_not_keep_its_frame_alive() -> None:
    """Segments that wait for a slow task must not keep whole frames in memory."""
    router = router_of(1, 2)
    router.route(data_frame(tuples([1], b"small"), tuples([2], b"x" * 1000)), Room())
    assert isinstance(router.outlets[1].queue[0], bytes)
    assert isinstance(router.outlets[2].queue[0], memoryview)


def test_a_marker_for_a_task_that_has_left_is_no_loss() -> None:
    """A task repeats its markers in each new session, maybe before it receives the plan without the other task."""
    router, room = router_of(1), Room()
    frame = data_frame(
        end_marker([9]), marker_segment([9], Marker.PLAN, 3, plan_version=1, source_task=1, incarnation=0)
    )
    router.route(frame, room)
    assert router.unroutable_segments == 0
    assert room.released == len(frame) - FRAME_HEADER_BYTES
    router.route(data_frame(tuples([9])), room)
    assert router.unroutable_segments == 1


def test_a_traced_segment_is_stamped_and_the_others_are_not() -> None:
    """The frame says that one of its segments is traced; its bytes stay as they are but for the time."""
    router, room = router_of(1, 2), Room()
    options = trace_option([TraceEntry(7, 8, 0, 9, 5)])
    traced = traced_segment(tuple_segment([(b"a",)], [1], options=options))
    other = tuples([2], b"b")
    frame = frame_header(FrameKind.DATA, 1, 1, TRACED) + traced + other
    router.route(frame, room)
    (found,), (untouched,) = take_all(router, 1), take_all(router, 2)
    field = parse_trace(parse_segment(found, 0))
    assert field is not None
    assert [each.kind for each in field.stamps] == [StampKind.FLUSHED, StampKind.ROUTED]
    assert (len(found), untouched) == (len(traced), other)
    assert room.released == len(frame) - FRAME_HEADER_BYTES
    router.route_from_peer(frame, Peer())
    (found,) = take_all(router, 1)
    field = parse_trace(parse_segment(found, 0))
    assert field is not None
    assert [each.kind for each in field.stamps] == [StampKind.FLUSHED, StampKind.PEER_ROUTED]


@pytest.mark.parametrize(("kind", "named"), [(0, "kind 0"), (6, "kind 6"), (200, "kind 200")])
def test_a_segment_that_no_instance_sends_is_refused(kind: int, named: str) -> None:
    """It would be delivered to tasks, or taken for a fail of roots."""
    router = router_of(1)
    frame = bytearray(data_frame(tuples([1])))
    frame[FRAME_HEADER_BYTES + SEGMENT_KIND_AT] = kind
    with pytest.raises(RemoteProtocolError, match=named) as refused:
        router.route(bytes(frame), Room())
    assert refused.value.violation is Violation.KIND
    with pytest.raises(RemoteProtocolError, match=named):
        router.route_acks(bytes(frame))
    assert take_all(router, 1) == []


def test_a_peer_delivers_only_tuples_and_markers() -> None:
    """Acks of a peer come in ack frames; in a data frame they would reach a task as tuples."""
    router = router_of(1)
    frame = bytearray(data_frame(tuples([1])))
    frame[FRAME_HEADER_BYTES + SEGMENT_KIND_AT] = 4
    with pytest.raises(RemoteProtocolError, match="segment of kind 4 in a data frame of a peer"):
        router.route_from_peer(bytes(frame), Peer())
    assert take_all(router, 1) == []


@pytest.mark.parametrize("destinations", [[], [1, 2]])
def test_a_segment_about_roots_names_one_task(destinations: list[int]) -> None:
    """Without a task it ended the stream manager with an IndexError."""
    router = router_of(1)
    frame = bytearray(data_frame(tuples(destinations)))
    frame[FRAME_HEADER_BYTES + SEGMENT_KIND_AT] = 3
    with pytest.raises(RemoteProtocolError, match=f"kind 3 for {len(destinations)} tasks"):
        router.route(bytes(frame), Room())


def test_markers_of_invented_tasks_fill_no_memory() -> None:
    """A peer may send them for ever; the markers of the plan's tasks are kept."""
    router = router_of(1)
    for source_task in range(5000):
        router.route(data_frame(end_marker([1], source_task)), Room())
    assert len(router.markers.of(1)) == 2 * (1 + 1024)
