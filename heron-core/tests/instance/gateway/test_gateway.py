"""The gateway thread over real sockets; the test plays its stream manager."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.driver_kit.signals import Signals
from heron.instance.queues.data_queue import FramesRefused, PlanReceived, ReportSeen
from heron.instance.queues.flow_limits import OutputLimit
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import metricsmgr_endpoint
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    WIRE_VERSION,
    FrameKind,
    credit_body,
    frame_header,
    parse_credit,
    parse_frame_header,
)
from heron.ipc.socket import Channel
from heron.spi.metricsink import MetricsRecord, Source
from heron.spi.task_memory import decode_memory
from heron.spi.task_profile import decode_profile
from heron.spi.task_stacks import decode_stacks
from heron.spi.task_tuples import decode_tuples
from heron.state_nodes.plans import encode_plan
from heron_testing.fake_clock import FakeClock
from parts import data_frame, tuple_segment
from parts.gateway_site import PLAN, Site, receive, until

pytestmark = pytest.mark.leaks_nothing


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def test_it_sends_hellos_until_it_is_welcomed(site: Site) -> None:
    """The stream manager may not have started yet. The instance's socket is bound before the hello leaves."""
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
    """A plan comes before the data that was addressed under it."""
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


class PipeSignals(Signals):
    """Signals that the test sends."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()


def test_each_signal_ends_the_sleep_of_the_task() -> None:
    """An idle task sleeps for long, and a stop must not wait for it, also after a signal that the author handles."""
    signals = PipeSignals()
    site = Site(signals=signals)
    for number in (signal.SIGUSR1, signal.SIGTERM):
        os.write(signals.writer, bytes([number]))
        assert site.gateway.data_in.wait(60.0) < 30.0
    site.close()
    os.close(signals.writer)
    os.close(signals.fileno())


def test_an_idle_task_sleeps(site: Site) -> None:
    """Until data arrives; then each tenth of a second is looked at, for the capacity of its queues."""
    channel, waits_ms = site.session(1), site.machine.waits_ms
    until(lambda: (waits_ms[-1] or 0) > 10_000)
    before = len(waits_ms)
    channel.send(frame_header(FrameKind.DATA, 1, 1) + b"x" * 50)
    until(lambda: len(waits_ms) > before + 1 and (waits_ms[-1] or 0) > 10_000)
    assert any(0 < (each or 0) <= 100 for each in waits_ms[before:])


def test_output_leaves_under_credit_and_waits_for_a_session(site: Site) -> None:
    """Emits before the welcome are kept. Data beyond the window waits for credit."""
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


def test_it_answers_for_the_task_while_output_waits_for_credit(site: Site) -> None:
    """A task that is held back is the one that people want to look at."""
    channel = site.session(1, window_bytes=4096)
    for _ in range(2):
        site.gateway.data_out.put([b"a" * 3000])
    assert parse_frame_header(receive(channel)) == (FrameKind.DATA, 1, 1)
    assert site.inspectors == []
    ask(channel, Envelope(stack_request=pb.StackRequest(request_id=5, task_id=7, wait_s=5)))
    answer = parse_control(receive(channel)).task_answer
    assert answer.request_id == 5
    stacks = decode_stacks(answer.document)
    assert (stacks.component, stacks.task_id, stacks.incarnation, stacks.pid) == ("spout", 7, 2, os.getpid())
    assert site.inspectors[0].task.gateway_thread in {each.ident for each in threading.enumerate()}


def ask(channel: Channel, question: Envelope) -> None:
    channel.send(control_frame(question, 1))


def ask_for_profile(channel: Channel, number: int, seconds: float = 0.3) -> None:
    ask(channel, Envelope(profile_request=pb.ProfileRequest(request_id=number, task_id=7, wait_s=5, seconds=seconds)))


def test_it_takes_one_profile_at_a_time(site: Site) -> None:
    """A second one is declined at once, and the first one is not disturbed. One inspector answers all questions."""
    channel = site.session(1)
    ask_for_profile(channel, 5)
    ask_for_profile(channel, 6)
    declined = parse_control(receive(channel)).task_answer
    assert declined.request_id == 6
    assert declined.refusal.startswith("task 7 is being profiled already, for another 0.")
    answer = parse_control(receive(channel)).task_answer
    assert answer.request_id == 5
    assert decode_profile(answer.document).lasted_s == 0.3
    ask_for_profile(channel, 7)
    assert parse_control(receive(channel)).task_answer.document
    assert len(site.inspectors) == 1


def test_one_observation_declines_every_other_kind(site: Site) -> None:
    """They would disturb each other: a tracer of allocations would be most of a profile. Stacks disturb nothing."""
    channel = site.session(1)
    ask_for_profile(channel, 5, 1.0)
    ask(channel, Envelope(memory_request=pb.MemoryRequest(request_id=6, task_id=7, wait_s=5, seconds=1)))
    assert parse_control(receive(channel)).task_answer.refusal.startswith("task 7 is being profiled already")
    ask(channel, Envelope(tuples_request=pb.TuplesRequest(request_id=7, task_id=7, wait_s=5, seconds=1, tuples=1)))
    assert parse_control(receive(channel)).task_answer.refusal.startswith("task 7 is being profiled already")
    ask(channel, Envelope(stack_request=pb.StackRequest(request_id=8, task_id=7, wait_s=5)))
    assert [parse_control(receive(channel)).task_answer.request_id for _ in range(2)] == [8, 5]


def test_it_asks_for_memory_tuples_and_captures(site: Site) -> None:
    """What the question says is what the inspector is asked. One of before captures declines them."""
    channel = site.session(1)
    ask(channel, Envelope(memory_request=pb.MemoryRequest(request_id=6, task_id=7, wait_s=5, seconds=0.25)))
    assert decode_memory(parse_control(receive(channel)).task_answer.document).traced_s == 0.25
    ask(channel, Envelope(tuples_request=pb.TuplesRequest(request_id=7, task_id=7, wait_s=5, seconds=0.05, tuples=3)))
    tuples = decode_tuples(parse_control(receive(channel)).task_answer.document)
    assert (tuples.wanted, tuples.lasted_s) == (3, 0.05)
    ask(channel, Envelope(capture_request=pb.CaptureRequest(request_id=8, task_id=7, wait_s=5, seconds=1)))
    declined = parse_control(receive(channel)).task_answer.refusal
    assert declined == "the task inspector PatientInspector takes no captures; install a newer one"


def test_without_an_inspector_a_question_is_refused(site: Site) -> None:
    """The command gets the text. A question after the installation is answered, without a restart."""
    channel = site.session(1)
    site.refusal = "no task inspector is installed; `pip install heron-task-inspector`"
    ask_for_profile(channel, 5)
    refused = parse_control(receive(channel)).task_answer
    assert (refused.request_id, refused.refusal, refused.failure) == (5, site.refusal, "")
    site.refusal = ""
    ask_for_profile(channel, 6)
    assert parse_control(receive(channel)).task_answer.document


def test_an_inspector_that_raises_is_a_failure_of_the_question(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The session of the task goes on."""
    channel = site.session(1)
    ask(channel, Envelope(memory_request=pb.MemoryRequest(request_id=6, task_id=7, wait_s=5, seconds=-1)))
    failure = parse_control(receive(channel)).task_answer.failure
    assert failure == "looking into the task raised ValueError: seconds: -1.0; see its log"
    assert "a question about this task cannot be answered" in caplog.text
    ask_for_profile(channel, 7)
    assert parse_control(receive(channel)).task_answer.document


def test_the_end_of_the_process_ends_a_profile(site: Site) -> None:
    """The gateway thread ends in time; the mark of this file looks for threads that stay."""
    channel = site.session(1)
    ask_for_profile(channel, 5, 300.0)
    until(lambda: any(each.name == "inspection-profile" for each in threading.enumerate()))


def test_it_reports_a_long_call_of_user_code_and_its_end() -> None:
    """This test is the user code: the main thread is in it while its rounds stand still."""
    site = Site(long_call_s=0.1)
    try:
        channel = site.session(1)
        begun = parse_control(receive(channel)).long_call
        assert (begun.task_id, begun.incarnation, begun.on) == (7, 2, True)
        assert begun.function == test_it_reports_a_long_call_of_user_code_and_its_end.__name__
        assert begun.place.startswith(f"{receive.__code__.co_filename}, line ")  # which it waits in
        assert begun.lasts_s >= 0.1
        site.gateway.rounds += 1
        ended = parse_control(receive(channel)).long_call
        assert (ended.on, ended.function) == (False, begun.function)
    finally:
        site.close()


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
def test_a_bad_frame_ends_the_session_and_starts_another(site: Site, name: str) -> None:
    """The new session has a new endpoint, so that no old frame can arrive there. The task thread continues."""
    channel = site.session(1)
    former = site.hellos[-1].endpoint
    channel.send(bad_frames()[name])
    again = site.session(2, after=former)
    site.gateway.data_out.put([b"data"])
    assert parse_frame_header(receive(again)) == (FrameKind.DATA, 2, 1)


def test_a_bad_frame_is_refused_with_the_number_of_frames_before_it(site: Site) -> None:
    """The stream manager knows what it sent as the next frame, and can say so."""
    channel = site.session(1)
    former = site.hellos[-1].endpoint
    channel.send(data_frame(tuple_segment([("row",)], (7,)), session=1, sequence=1))
    channel.send(frame_header(FrameKind.ACK, 1, 2) + b"garbage")
    site.hello(after=former)
    (refused,) = site.refusals
    assert "ends within a segment's header" in refused.reason
    assert (refused.frames.session, refused.frames.taken) == (1, 1)


def test_a_refused_session_is_reported_with_the_tuples_that_are_lost(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """The report has both views: the reason of the stream manager, and what the instance sent."""
    channel = site.session(1)
    segments = [tuple_segment([("row",)] * count, (8,)) for count in (2, 3, 4)]
    sizes = [FRAME_HEADER_BYTES + len(each) for each in segments]
    for each in segments:
        site.gateway.data_out.put([each])
        receive(channel)
    refused = pb.Refused(reason="too large", frames=pb.RefusedFrames(session=1, taken=1))
    site.hub.send(site.client, control_frame(Envelope(refused=refused)))
    command = site.command()
    assert isinstance(command, FramesRefused)
    assert command.rows == 7
    assert f"session 1: too large; frame 2 was sent as a data frame of {sizes[1]} bytes with 3 tuples" in command.reason
    assert command.reason.endswith("7 tuples in 2 data frames are lost")
    assert command.reason in caplog.text


def test_a_lost_stream_manager_is_followed_by_the_next(site: Site) -> None:
    """A killed stream manager sends no message; the socket only disconnects."""
    channel = site.session(1)
    former = site.hellos[-1].endpoint
    channel.close()
    again = site.session(1, after=former, ended=True)
    site.gateway.data_out.put([b"data"])
    assert parse_frame_header(receive(again)) == (FrameKind.DATA, 1, 1)


def test_a_session_begins_with_the_culprits_in_its_welcome(site: Site) -> None:
    """The instance missed their beginnings, and receives only changes from now on."""
    channel = site.session(1, culprits=(3, 5))
    throttle = site.gateway.throttle
    assert throttle.culprits == {3, 5}
    channel.send(control_frame(Envelope(pressure=pb.Pressure(task_id=3, container_id=1, on=False)), 1))
    until(lambda: throttle.culprits == {5})
    channel.close()
    until(lambda: not throttle.culprits)


def test_a_session_must_begin_with_a_welcome(site: Site) -> None:
    """A peer that does not follow the protocol gets no data."""
    first = site.hello().endpoint
    stranger = site.sockets.channel_to(first)
    stranger.send(frame_header(FrameKind.DATA, 1, 1) + b"data")
    site.session(3, after=first)


def test_garbage_on_the_registration_socket_is_ignored(site: Site) -> None:
    """A refusal is logged, and so is garbage."""
    site.hello()
    site.hub.send(site.client, b"garbage")
    site.hub.send(site.client, control_frame(Envelope(refused=pb.Refused(reason="no"))))
    site.session(1)


def test_metrics_leave_without_a_session(site: Site) -> None:
    """Metrics do not depend on the stream manager. The last record leaves at the close."""
    inbox = site.sockets.inbox(metricsmgr_endpoint(site.run_dir, 1))
    site.gateway.publish(MetricsRecord(Source("t", 1, "spout-7", 2, "spout", 7), 1.0))
    frames: list[bytes] = []

    def look() -> bool:
        frame = inbox.receive()
        frames.extend([frame] if frame else [])
        return bool(frames)

    until(look)
    assert parse_control(frames[0]).metrics_publish.task_id == 7


def test_the_output_limit_delays_only_data(site: Site) -> None:
    """Acks, credit and input pass meanwhile. The delayed data leaves by itself when its time has come."""
    data_in, data_out = site.gateway.data_in, site.gateway.data_out
    channel = site.session(1)
    clock = FakeClock()  # advanced only after the other frames have arrived
    data_out.limit_output(
        limit := OutputLimit(1000.0, clock.monotonic_s)
    )  # the bucket is empty: the first frame overdraws it
    for letter in (b"a", b"b"):
        data_out.put([letter * 500])
    data_out.put_acks([b"acks"])
    channel.send(frame_header(FrameKind.DATA, 1, 1) + b"x" * 50)
    until(lambda: data_in.queued_bytes() == 50)
    assert isinstance(data_in.get(), bytes)
    data_in.consume(50)
    kinds = [parse_frame_header(receive(channel))[0] for _ in range(3)]
    assert sorted(kinds) == [FrameKind.DATA, FrameKind.CREDIT, FrameKind.ACK]
    until(lambda: limit.wait_s() is not None)  # the second frame is delayed
    clock.advance(0.49)
    for _ in range(2):  # with the second one the round of the first, which looks after data too, is over
        data_out.put_acks([b"more"])
        assert parse_frame_header(receive(channel))[0] == FrameKind.ACK, "the time has not come"
    clock.advance(0.02)
    frame = receive(channel)
    assert parse_frame_header(frame)[0] == FrameKind.DATA
    assert frame[FRAME_HEADER_BYTES:] == b"b" * 500
    assert limit.delayed_s() > 0.2
