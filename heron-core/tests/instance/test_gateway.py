"""The gateway thread over real sockets; its stream manager is spoken by the test."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders import instance_spec, physical_plan, spout, topology
from heron.clock import monotonic_s
from heron.instance.data_queue import Command, PlanReceived, ReportSeen, SessionOpened
from heron.instance.flow_limits import OutputLimit
from heron.instance.gateway import Gateway
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import container_dir, metricsmgr_endpoint, registration_endpoint
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.frame import (
    FRAME_HEADER_BYTES,
    WIRE_VERSION,
    FrameKind,
    credit_body,
    frame_header,
    parse_credit,
    parse_frame_header,
)
from heron.ipc.socket import Channel, SocketContext
from heron.kernel.settings import EngineSettings
from heron.spi.metricsink import MetricsRecord, Source
from heron.state_nodes.plans import encode_plan
from heron_testing.fake_clock import FakeClock

pytestmark = pytest.mark.leaks_nothing

PLAN = physical_plan(topology(spout("spout")), {"spout": (7,)}, version=4)


class Site:
    """A container with a gateway; the hub is its stream manager's."""

    def __init__(self) -> None:
        self.run_dir = Path(tempfile.mkdtemp(prefix="hw"))
        container_dir(self.run_dir, 1).mkdir()
        spec = instance_spec("spout", 7, incarnation=2, run_dir=str(self.run_dir))
        self.gateway = Gateway(spec, EngineSettings(link_window_bytes=4096))
        self.sockets = SocketContext()
        self.hub = self.sockets.hub(registration_endpoint(self.run_dir, 1))
        self.hellos: list[pb.InstanceHello] = []
        self.client = b""
        self.gateway.start()

    def hello(self, after: str = "") -> pb.InstanceHello:
        """The next hello with another endpoint than `after`."""

        def look() -> bool:
            while (message := self.hub.receive()) is not None:
                self.client = message[0]
                self.hellos.append(parse_control(message[1]).instance_hello)
            return bool(self.hellos and self.hellos[-1].endpoint != after)

        until(look)
        return self.hellos[-1]

    def session(self, number: int, after: str = "", window_bytes: int = 4096, *, ended: bool = False) -> Channel:
        """Connects to the instance and welcomes it."""
        channel = self.sockets.channel_to(self.hello(after).endpoint)
        welcome = pb.InstanceWelcome(session=number, window_bytes=window_bytes, ended=ended)
        channel.send(control_frame(Envelope(instance_welcome=welcome), number))
        assert self.command() == SessionOpened(ended)
        return channel

    def command(self) -> Command:
        found: list[bytes | Command] = []

        def look() -> bool:
            item = self.gateway.data_in.get()
            found.extend([item] if item is not None else [])
            return bool(found)

        until(look)
        assert not isinstance(found[0], bytes)
        return found[0]

    def close(self) -> None:
        self.gateway.close(5)
        self.sockets.close()
        shutil.rmtree(self.run_dir)


def until(condition: Callable[[], object]) -> None:
    deadline_s, pause = monotonic_s() + 10, threading.Event()
    while not condition():
        assert monotonic_s() < deadline_s, "not in time"
        pause.wait(0.002)


def receive(channel: Channel) -> bytes:
    assert channel.wait(10), "nothing came"
    frame = channel.receive()
    assert frame is not None
    return frame


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def test_it_says_hello_until_it_is_welcome(site: Site) -> None:
    """The stream manager may not be there yet; the socket is ready when the hello leaves."""
    while len(site.hellos) < 2:
        site.hello()
    hello = site.hellos[-1]
    assert (hello.task_id, hello.incarnation, hello.wire_version) == (7, 2, WIRE_VERSION)
    assert Path(hello.endpoint.removeprefix("ipc://")).exists()
    site.session(1)
    while site.hub.receive() is not None:
        continue  # said before the welcome came
    assert not threading.Event().wait(0.25)
    assert site.hub.receive() is None


def test_commands_and_data_reach_the_task_thread_in_order(site: Site) -> None:
    """A plan stands before the data that was addressed under it."""
    channel = site.session(1)
    channel.send(control_frame(Envelope(plan=pb.Plan(version=4, document=encode_plan(PLAN))), 1))
    channel.send(frame_header(FrameKind.DATA, 1, 1) + b"x" * 50)
    channel.send(control_frame(Envelope(task_report_seen=pb.TaskReportSeen(task_id=7, phase=pb.TASK_PHASE_ENDED)), 1))
    assert site.command() == PlanReceived(PLAN)
    until(lambda: site.gateway.data_in.queued_bytes() == 50)
    frame = site.gateway.data_in.get()
    assert isinstance(frame, bytes)
    assert frame[FRAME_HEADER_BYTES:] == b"x" * 50
    assert site.command() == ReportSeen(pb.TASK_PHASE_ENDED)
    site.gateway.data_in.consume(50)
    assert parse_credit(receive(channel)) == (0, 50)


def test_output_leaves_under_credit_and_waits_for_a_session(site: Site) -> None:
    """Emits before the welcome are kept; beyond the window they wait for credit."""
    out = site.gateway.data_out
    for _ in range(2):
        out.put([b"a" * 3000])
    out.put_control(Envelope(task_report=pb.TaskReport(task_id=7)))
    channel = site.session(1)
    assert parse_frame_header(receive(channel)) == (FrameKind.DATA, 1, 1)
    assert not channel.wait(0.05)
    channel.send(frame_header(FrameKind.CREDIT, 1, 0) + credit_body(0, 3000))
    assert parse_frame_header(receive(channel)) == (FrameKind.DATA, 1, 2)
    assert parse_control(receive(channel)).task_report.task_id == 7
    assert out.queued_bytes == 0


def bad_frames() -> dict[str, bytes]:
    return {
        "garbage": b"garbage",
        "session": frame_header(FrameKind.DATA, 9, 1),
        "kind": frame_header(99, 1, 1),
        "hello": control_frame(Envelope(instance_hello=pb.InstanceHello()), 1),
        "plan": control_frame(Envelope(plan=pb.Plan(version=1, document=b"{}")), 1),
        "credit": frame_header(FrameKind.CREDIT, 1, 0) + credit_body(0, 10**6),
    }


@pytest.mark.parametrize("name", list(bad_frames()))
def test_a_bad_frame_ends_the_session_and_another_begins(site: Site, name: str) -> None:
    """At a new place, so that nothing of the old one can arrive there; the task thread never notices."""
    channel = site.session(1)
    former = site.hellos[-1].endpoint
    channel.send(bad_frames()[name])
    again = site.session(2, after=former)
    site.gateway.data_out.put([b"data"])
    assert parse_frame_header(receive(again)) == (FrameKind.DATA, 2, 1)


def test_a_stream_manager_that_goes_is_followed_by_the_next(site: Site) -> None:
    """A killed one leaves no message, only a disconnection."""
    channel = site.session(1)
    former = site.hellos[-1].endpoint
    channel.close()
    again = site.session(1, after=former, ended=True)
    site.gateway.data_out.put([b"data"])
    assert parse_frame_header(receive(again)) == (FrameKind.DATA, 1, 1)


def test_anything_but_a_welcome_first_is_refused(site: Site) -> None:
    """A stranger on the session's socket gets nothing."""
    first = site.hello().endpoint
    stranger = site.sockets.channel_to(first)
    stranger.send(frame_header(FrameKind.DATA, 1, 1) + b"data")
    site.session(3, after=first)


def test_garbage_on_the_registration_socket_is_survived(site: Site) -> None:
    """A refusal is logged; what is none, too."""
    site.hello()
    site.hub.send(site.client, b"garbage")
    site.hub.send(site.client, control_frame(Envelope(refused=pb.Refused(reason="no"))))
    site.session(1)


def test_metrics_leave_without_a_session(site: Site) -> None:
    """What a task counts must not depend on its stream manager; the last record leaves at the close too."""
    inbox = site.sockets.inbox(metricsmgr_endpoint(site.run_dir, 1))
    site.gateway.publish(MetricsRecord(Source("t", 1, "spout-7", 2, "spout", 7), 1.0))
    frames: list[bytes] = []

    def look() -> bool:
        frame = inbox.receive()
        frames.extend([frame] if frame else [])
        return bool(frames)

    until(look)
    assert parse_control(frames[0]).metrics_publish.task_id == 7


def test_the_limit_of_the_output_holds_data_and_nothing_else(site: Site) -> None:
    """Acks, credit and whatever comes in pass meanwhile; the data follows when the time has come, by itself."""
    data_in, data_out = site.gateway.data_in, site.gateway.data_out
    channel = site.session(1)
    clock = FakeClock()  # stands until the rest has come
    data_out.limit_output(limit := OutputLimit(1000.0, clock.monotonic_s))  # empty at first: the first frame is owed
    for letter in (b"a", b"b"):
        data_out.put([letter * 500])
    data_out.put_acks([b"acks"])
    channel.send(frame_header(FrameKind.DATA, 1, 1) + b"x" * 50)
    until(lambda: data_in.queued_bytes() == 50)
    assert isinstance(data_in.get(), bytes)
    data_in.consume(50)
    kinds = [parse_frame_header(receive(channel))[0] for _ in range(3)]
    assert sorted(kinds) == [FrameKind.DATA, FrameKind.CREDIT, FrameKind.ACK]
    until(lambda: limit.wait_s() is not None)  # the second is held
    clock.advance(0.49)
    for _ in range(2):  # with the second one the round of the first, which looks after data too, is over
        data_out.put_acks([b"more"])
        assert parse_frame_header(receive(channel))[0] == FrameKind.ACK, "the time has not come"
    clock.advance(0.02)
    frame = receive(channel)
    assert parse_frame_header(frame)[0] == FrameKind.DATA
    assert frame[FRAME_HEADER_BYTES:] == b"b" * 500
    assert limit.delayed_s() > 0.2
