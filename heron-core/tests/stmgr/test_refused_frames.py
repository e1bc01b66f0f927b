"""A frame that is refused ends its session with the views of both sides, and what is lost is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, WIRE_VERSION, FrameKind, frame_header
from heron.kernel.settings import EngineSettings
from heron_testing.waiting import wait_until
from parts import tuple_segment

if TYPE_CHECKING:
    from conftest import Site, Stmgr

pytestmark = pytest.mark.leaks_nothing

LIMIT = EngineSettings().frame_max_bytes


def large_frame(session: int, sequence: int) -> bytes:
    """A data frame of one segment, one byte above the limit."""
    head = len(tuple_segment([(bytes(LIMIT),)], [2])) - LIMIT
    made = tuple_segment([(bytes(LIMIT + 1 - FRAME_HEADER_BYTES - head),)], [2])
    return frame_header(FrameKind.DATA, session, sequence) + made


def test_a_frame_above_the_limit_is_refused_by_name(site: Site, one: Stmgr, caplog: pytest.LogCaptureFixture) -> None:
    """The socket would close without a word. The instance learns which frame, so it can report what it sent."""
    spout, bolt = site.registered(1), site.registered(2)
    spout.send(site.tuples([2], b"fine"))
    assert bolt.payloads(1) == [b"fine"]
    frame = large_frame(spout.session, 2)
    assert len(frame) == LIMIT + 1
    spout.channel.send(frame)
    refused = parse_control(site.receive(spout.registration)).refused
    assert refused.reason == f"frame of kind 1 has {LIMIT + 1} bytes, more than the limit of {LIMIT} bytes"
    assert (refused.frames.session, refused.frames.taken) == (spout.session, 1)
    assert f"session of task 1 ended, the task broke the protocol in frame 2: {refused.reason}" in caplog.text
    assert one.context.counters.refused_frames == 1


def test_a_refusal_of_an_instance_is_logged_with_what_was_sent(
    site: Site, one: Stmgr, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the reason of the instance, and the frame as the stream manager knows it."""
    spout, bolt = site.registered(1), site.registered(2)
    for payload in (b"a", b"b", b"c"):
        spout.send(site.tuples([2], payload))
        assert bolt.payloads(1, credit=False) == [payload]
    frames = pb.RefusedFrames(session=bolt.session, taken=1)
    bolt.registration.send(control_frame(Envelope(refused=pb.Refused(reason="it is odd", frames=frames))))
    wait_until(lambda: one.context.counters.lost_tuples == 2)
    size = FRAME_HEADER_BYTES + len(site.tuples([2], b"b"))
    told = (
        f"task 2 ended its session: it is odd; frame 2 was sent as a data frame of {size} bytes with 1 tuples, "
        f"within the limit of {LIMIT} bytes; 2 tuples in 2 data frames are lost"
    )
    wait_until(lambda: told in caplog.text)


def test_credit_confirms_the_frames_that_were_taken(site: Site, one: Stmgr) -> None:
    """Only frames behind them are lost with a session."""
    spout, bolt = site.registered(1), site.registered(2)
    spout.send(site.tuples([2], b"a"))
    assert bolt.payloads(1, credit=False) == [b"a"]
    frames = pb.RefusedFrames(session=bolt.session, taken=1)
    bolt.registration.send(control_frame(Envelope(refused=pb.Refused(reason="later", frames=frames))))
    wait_until(lambda: one.context.counters.refused_frames == 1)
    assert one.context.counters.lost_tuples == 0


def test_the_log_of_a_refused_peer_has_both_views(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The peer has another limit. It says why and after how many frames; the sender says what it had sent."""
    here, there = site.start(1), site.start(2, tuple_max_bytes=1024)
    site.plan()
    spout, bolt = site.registered(1), site.registered(3)
    site.linked(1, 3)
    spout.send(site.tuples([3], b"a"))
    assert bolt.payloads(1) == [b"a"]
    large = site.tuples([3], bytes(2_000_000))
    spout.send(large)
    wait_until(lambda: here.context.counters.lost_tuples == 1)
    size, limit = FRAME_HEADER_BYTES + len(large), there.context.settings.frame_max_bytes
    reason = f"frame of kind 1 has {size} bytes, more than the limit of {limit} bytes"
    view = (
        f"frame 2 was sent as a data frame of {size} bytes with 1 tuples, within the limit of {LIMIT} bytes; "
        "1 tuples in 1 data frames are lost"
    )
    messages = [record.getMessage() for record in caplog.records]
    assert f"session of container 1 ended in frame 2: {reason}" in messages
    assert f"session with container 2 ended: container 2 refuses the session: {reason}; {view}" in messages
    wait_until(lambda: there.context.counters.lost_frames == 1)
    spout.send(site.tuples([3], b"b"))
    assert bolt.payloads(1) == [b"b"]


def test_a_peer_is_told_how_many_frames_were_taken(site: Site) -> None:
    """Also a frame that is garbled behind its header does not count as taken."""
    site.start(1)
    site.start(2)
    site.plan()
    bolt = site.registered(3)
    rogue = site.peer(2, b"rogue")
    hello = pb.PeerHello(container_id=9, incarnation=0, session=5, wire_version=WIRE_VERSION)
    rogue.send(control_frame(Envelope(peer_hello=hello)))
    assert parse_control(site.receive(rogue)).peer_welcome.session == 5
    rogue.send(frame_header(FrameKind.DATA, 5, 1) + site.tuples([3], b"fine"))
    assert bolt.payloads(1) == [b"fine"]
    assert site.receive(rogue)[:2] == frame_header(FrameKind.CREDIT, 5, 1)[:2]
    rogue.send(frame_header(FrameKind.DATA, 5, 2) + b"garbage")
    refused = parse_control(site.receive(rogue)).refused
    assert (refused.frames.session, refused.frames.taken) == (5, 1)
