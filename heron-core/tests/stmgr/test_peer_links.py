"""The links between stream managers, over real sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron.clock import monotonic_s
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.frames.frame import (
    WIRE_VERSION,
    FrameKind,
    SegmentKind,
    frame_header,
    parse_segment,
)
from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from conftest import Site, Stmgr

pytestmark = pytest.mark.leaks_nothing

WINDOW_BYTES = 10_000  # as in conftest


def test_two_stream_managers_exchange_segments(site: Site) -> None:
    """A segment for both containers arrives in both; a segment for two tasks of a peer crosses the link once."""
    here, there = site.start(1), site.start(2)
    site.plan()
    spout, local, third, fourth = (site.registered(task) for task in (1, 2, 3, 4))
    size = spout.send(site.tuples([2, 3, 4], b"all"), site.tuples([4], b"four"))
    assert local.payloads(1) == [b"all"]
    assert third.payloads(1) == [b"all"]
    assert fourth.payloads(2) == [b"all", b"four"]
    spout.released(size)
    crossed = len(site.tuples([3, 4], b"all")) + len(site.tuples([4], b"four"))
    assert there.context.counters.bytes_from_peers == crossed
    assert here.context.counters.lost_frames == there.context.counters.lost_frames == 0


def test_no_peer_credit_is_lost_with_several_destinations(site: Site) -> None:
    """Data of many windows crosses the link, with one slow destination and many retargeted segments."""
    here, _ = site.start(1), site.start(2)
    site.plan()
    spout, local, third, fourth = (site.registered(task) for task in (1, 2, 3, 4))
    for number in range(300):
        spout.send(site.tuples([2, 3, 4], bytes([number % 256]) * 400))
    for instance in (local, fourth, third):
        assert len(instance.payloads(300)) == 300
    wait_until(lambda: all(_settled(here, task) for task in (3, 4)))


def _settled(stmgr: Stmgr, task: int) -> bool:
    window = stmgr.context.router.outlets[task].window
    return window is not None and window.sent_bytes == window.released_bytes


def test_a_full_outlet_of_a_peer_does_not_delay_another_task(site: Site) -> None:
    """Credit between stream managers is per task, and the link is always read."""
    site.start(1)
    site.start(2)
    site.plan()
    spout, slow, quick = (site.registered(task) for task in (1, 3, 4))
    for _ in range(30):
        spout.send(site.tuples([3], b"x" * 3000))
    spout.send(site.tuples([4], b"through"))
    assert quick.payloads(1) == [b"through"]
    assert len(slow.payloads(30)) == 30


def test_a_restarted_peer_receives_the_end_markers_again(site: Site) -> None:
    """Tuples under way may be lost with a stream manager, but not the END markers."""
    site.start(1)
    first = site.start(2)
    site.plan()
    spout, bolt = site.registered(1), site.registered(3)
    site.linked(1, 3, 4)
    spout.send(site.tuples([3], b"a"), site.end_marker([3, 4]))
    assert len(bolt.payloads(2)) == 2
    first.close()
    site.start(2, incarnation=1)
    spout.send(site.tuples([3], b"b"))
    site.plan(version=2)
    again = site.registered(3, attempt=2)
    kinds = [parse_segment(data, 0).kind for data in again.segments()]
    while SegmentKind.MARKER not in kinds:
        kinds += [parse_segment(data, 0).kind for data in again.segments()]
    assert kinds[-1] == SegmentKind.MARKER


def test_a_peer_that_breaks_the_protocol_loses_only_its_session(site: Site) -> None:
    """The peer receives a refusal. Its further frames are dropped and counted; other peers continue."""
    site.start(1)
    there = site.start(2)
    site.plan()
    spout, bolt = site.registered(1), site.registered(3)
    rogue = site.peer(2, b"rogue")
    hello = pb.PeerHello(container_id=9, incarnation=0, session=5, wire_version=WIRE_VERSION)
    rogue.send(control_frame(Envelope(peer_hello=hello)))
    assert parse_control(site.receive(rogue)).peer_welcome.window_bytes == WINDOW_BYTES
    rogue.send(frame_header(FrameKind.DATA, 6, 1) + site.tuples([3], b"wrong session"))
    assert "session 6" in parse_control(site.receive(rogue)).refused.reason
    rogue.send(frame_header(FrameKind.DATA, 5, 1) + site.tuples([3], b"too late"))
    wait_until(lambda: there.context.counters.refused_frames == 2)
    spout.send(site.tuples([3], b"fine"))
    assert bolt.payloads(1) == [b"fine"]


def test_a_refused_peer_retries_after_a_pause(site: Site) -> None:
    """Two stream managers that disagree must not use up the processor."""
    here, there = site.start(1), site.start(2)
    successor = site.peer(2, b"successor")
    hello = pb.PeerHello(container_id=1, incarnation=9, session=1, wire_version=WIRE_VERSION)
    successor.send(control_frame(Envelope(peer_hello=hello)))
    assert parse_control(site.receive(successor)).peer_welcome.session == 1
    started_s = monotonic_s()
    site.plan()
    wait_until(lambda: here.context.counters.refused_frames >= 3)
    assert monotonic_s() - started_s > 0.15
    refusals = there.context.counters.refused_frames
    assert (refusals - 1) * 0.1 <= monotonic_s() - started_s  # refusals continue meanwhile
    assert here.context.router.outlets[3].window is None


def test_a_peer_that_left_the_plan_is_forgotten(site: Site) -> None:
    """Containers come and go during the life of a stream manager, and their state would add up."""
    here, there = site.start(1), site.start(2)
    site.plan()
    spout = site.registered(1)
    site.linked(1, 3, 4)
    there.close()
    del site.stmgrs[2]
    peer = site.peer(1, b"c2-1-9")
    hello = pb.PeerHello(container_id=2, incarnation=1, session=9, wire_version=WIRE_VERSION)
    peer.send(control_frame(Envelope(peer_hello=hello)))
    assert parse_control(site.receive(peer)).WhichOneof("body") == "peer_welcome"
    site.plan(version=2)
    assert spout.expect_plan() == 2
    peer.send(control_frame(Envelope(pressure=pb.Pressure(task_id=3, container_id=2, on=True))))
    wait_until(lambda: here.context.counters.refused_frames == 1, what="a frame of an ended session")


def test_the_plan_of_a_new_leader_counts_with_a_lower_version(site: Site) -> None:
    """The new leader could not read the former plan. A late plan of the former leader is refused."""
    site.start(1)
    site.plan(version=7)
    spout = site.registered(1)
    site.plan(version=1, epoch=2)
    assert spout.expect_plan() == 1
    site.plan(version=8, epoch=1)
    site.plan(version=2, epoch=2)
    assert spout.expect_plan() == 2
