"""The sessions of a stream manager with its instances, over real sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.frames.frame import (
    FrameKind,
    Marker,
    SegmentKind,
    credit_body,
    frame_header,
    parse_segment,
)
from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from conftest import Site, Stmgr

pytestmark = pytest.mark.leaks_nothing

WINDOW_BYTES = 10_000  # as in conftest
LOW_BYTES = 5_000


def test_instances_may_register_before_and_after_the_plan(site: Site) -> None:
    """No order of start is guaranteed: an instance may send its hello before its stream manager runs."""
    early = site.instance(1)
    early.send_hello()
    site.start(1)
    assert parse_control(site.receive(early.channel)).instance_welcome.window_bytes == WINDOW_BYTES
    assert site.silent(early.channel)
    site.plan(version=3)
    assert early.expect_plan() == 3
    late = site.instance(2)
    late.register()
    assert late.expect_plan() == 3


def test_data_flows_and_its_credit_is_released(site: Site, one: Stmgr) -> None:
    """The credit of the spout does not depend on the bolt: it is released unless an outlet is congested."""
    spout, bolt = site.registered(1), site.registered(2)
    size = spout.send(site.tuples([2], b"a"), site.tuples([2], b"b"))
    assert bolt.payloads(2) == [b"a", b"b"]
    spout.released(size)
    size += spout.send(site.tuples([2], b"c"))
    assert bolt.payloads(1) == [b"c"]
    spout.released(size)
    assert one.context.counters.frames_from_instances == 2


def test_a_repeated_hello_opens_one_session(site: Site, one: Stmgr) -> None:
    """Instances repeat it until the welcome arrives; under load that happens several times."""
    bolt = site.instance(2)
    for _ in range(3):
        bolt.send_hello()
    bolt.session = parse_control(site.receive(bolt.channel)).instance_welcome.session
    assert bolt.expect_plan() == 1
    assert site.silent(bolt.channel)
    assert one.context.router.outlets[2].window is not None


def test_a_newer_incarnation_replaces_an_older_one_which_is_refused(site: Site, one: Stmgr) -> None:
    """A process that was replaced must not take the place of its successor."""
    spout, former = site.registered(1), site.registered(2, incarnation=1)
    present = site.registered(2, incarnation=2)
    assert present.session > former.session
    spout.send(site.tuples([2], b"new"))
    assert present.payloads(1) == [b"new"]
    stale = site.instance(2, incarnation=1, attempt=2)
    stale.send_hello()
    refusal = parse_control(site.receive(stale.registration))
    assert "incarnation 1 after 2" in refusal.refused.reason
    spout.send(site.tuples([2], b"still"))
    assert present.payloads(1) == [b"still"]
    assert site.silent(former.channel)
    assert one.context.counters.refused_frames == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"task_id": 9}, "task 9 is not in container 1"), ({"wire_version": 2}, "wire version 2")],
)
def test_an_invalid_hello_is_refused(site: Site, one: Stmgr, change: dict[str, int], reason: str) -> None:
    """The answer names the cause, and no session is opened."""
    site.registered(1)  # so that the plan has arrived
    stranger = site.instance(2)
    stranger.hello.MergeFrom(pb.InstanceHello(**change))  # type: ignore[arg-type]  # field names by parameter
    stranger.send_hello()
    assert reason in parse_control(site.receive(stranger.registration)).refused.reason
    assert one.context.router.outlets[2].window is None


def bad_frames(session: int, segment: bytes) -> dict[str, bytes]:
    data = frame_header(FrameKind.DATA, session, 1)
    return {
        "version": b"\x07" + data[1:] + segment,
        "session": frame_header(FrameKind.DATA, session + 1, 1) + segment,
        "short": b"\x01",
        "garbage": data + b"garbage",
        "kind": frame_header(77, session, 1) + segment,
        "credit": frame_header(FrameKind.CREDIT, session, 0) + credit_body(0, 10**9),
        "control": frame_header(FrameKind.CONTROL, session, 0) + b"\xff\xff",
        "hello": control_frame(Envelope(instance_hello=pb.InstanceHello(task_id=1)), session),
    }


@pytest.mark.parametrize("name", list(bad_frames(1, b"")))
def test_a_frame_that_breaks_the_protocol_ends_only_its_session(site: Site, one: Stmgr, name: str) -> None:
    """Other sessions continue, and the same task may open a new one."""
    spout, bolt = site.registered(1), site.registered(2)
    spout.channel.send(bad_frames(spout.session, site.tuples([2]))[name])
    wait_until(lambda: one.context.counters.refused_frames == 1)
    spout.send(site.tuples([2], b"dropped"))
    again = site.registered(1, attempt=2)
    again.send(site.tuples([2], b"fine"))
    assert bolt.payloads(1) == [b"fine"]
    assert one.context.counters.refused_frames == 1


def test_a_gap_in_the_sequence_is_counted(site: Site, one: Stmgr) -> None:
    """A loss must be visible."""
    spout, bolt = site.registered(1), site.registered(2)
    spout.send(site.tuples([2], b"a"))
    spout.send(site.tuples([2], b"b"), skip=3)
    assert bolt.payloads(2) == [b"a", b"b"]
    assert one.context.counters.lost_frames == 3


def test_a_spout_is_throttled_from_the_high_watermark_to_the_low_one(site: Site, one: Stmgr) -> None:
    """Nothing is dropped. The spout gets no credit and the name of the culprit, and so does the topology manager."""
    spout, bolt = site.registered(1), site.registered(2)
    sizes = [spout.send(site.tuples([2], bytes([number]) * 3000)) for number in range(16)]
    wait_until(lambda: one.context.counters.frames_from_instances == 16)
    pressure = one.expect("pressure").pressure
    assert (pressure.task_id, pressure.container_id, pressure.on) == (2, 1, True)
    assert pressure.buffered_bytes > LOW_BYTES  # reported at the end of a round, when a part may have been sent
    got = bolt.payloads(3, credit=False)
    assert len(got) == 3  # one window: no more is sent without credit
    assert site.silent(bolt.channel)
    spout.wait_until_throttled_by(2)
    spout.handle_all()
    assert spout.throttled_by == {2}
    assert spout.credit_bytes < sum(sizes)
    bolt.release()
    got += bolt.payloads(13)
    assert got == [bytes([number]) * 3000 for number in range(16)]
    spout.released(sum(sizes))
    spout.wait_until_throttled_by()
    assert not one.expect("pressure").pressure.on


def test_a_spout_that_registers_during_back_pressure_receives_the_culprits(site: Site, one: Stmgr) -> None:
    """They are in the welcome. Otherwise a restarted spout would fill the outlet further."""
    spout, bolt = site.registered(1), site.registered(2)
    for _ in range(12):
        spout.send(site.tuples([2], b"x" * 3000))
    spout.wait_until_throttled_by(2)
    wait_until(lambda: one.context.counters.frames_from_instances == 12)  # frames after the end of its session are lost
    again = site.instance(1, incarnation=1)
    assert list(again.register().culprits) == [2]
    again.expect_plan()
    size = again.send(site.tuples([2], b"y"))
    again.handle_all()
    assert (again.throttled_by, again.credit_bytes) == ({2}, 0)
    assert len(bolt.payloads(13)) == 13
    again.wait_until_throttled_by()
    again.released(size)


def test_a_culprit_that_dies_throttles_its_spout_until_its_successor_has_caught_up(site: Site, one: Stmgr) -> None:
    """The queued segments stay for the next incarnation, and back pressure ends when it has taken them."""
    spout, bolt = site.registered(1), site.registered(2)
    for _ in range(12):
        spout.send(site.tuples([2], b"x" * 3000))
    spout.wait_until_throttled_by(2)
    bolt.channel.close()
    wait_until(lambda: one.context.router.outlets[2].window is None)
    assert spout.throttled_by == {2}
    again = site.registered(2, incarnation=1)
    assert len(again.payloads(9)) == 9  # three were under way to the dead incarnation
    spout.wait_until_throttled_by()


def test_end_markers_are_repeated_in_a_new_session_behind_queued_segments(site: Site, one: Stmgr) -> None:
    """A bolt that restarts after its upstream tasks ended must still receive their END markers."""
    spout, bolt = site.registered(1), site.registered(2)
    spout.send(site.tuples([2], b"a"), site.end_marker([2]))
    assert len(bolt.payloads(2)) == 2
    bolt.channel.close()
    wait_until(lambda: one.context.router.outlets[2].window is None)
    spout.send(site.tuples([2], b"b"))
    wait_until(lambda: one.context.router.outlets[2].queued_bytes)
    again = site.registered(2, incarnation=1)
    first, second = (parse_segment(data, 0) for data in again.segments())
    assert (first.kind, second.kind, second.stream) == (SegmentKind.TUPLES, SegmentKind.MARKER, Marker.END)


def test_task_reports_and_their_confirmations_are_forwarded(site: Site, one: Stmgr) -> None:
    """A task waits for the confirmation of its end. A task that restarts after its end receives it in the welcome."""
    spout = site.registered(1)
    spout.report(pb.TASK_PHASE_ENDED)
    assert one.expect("task_report").task_report.phase == pb.TASK_PHASE_ENDED
    one.send_as_tmanager(Envelope(epoch=1, task_report_seen=pb.TaskReportSeen(task_id=1, phase=pb.TASK_PHASE_ENDED)))
    assert parse_control(site.receive(spout.channel)).task_report_seen.phase == pb.TASK_PHASE_ENDED
    assert site.instance(1, incarnation=1).register().ended


def test_an_older_plan_has_no_effect(site: Site, one: Stmgr) -> None:
    """Plans may arrive twice or late when the leader changes."""
    bolt = site.registered(2)
    site.plan(version=5)
    assert bolt.expect_plan() == 5
    site.plan(version=4)
    assert site.silent(bolt.channel)
