"""Stream managers over real sockets; instances, executor and topology manager are spoken by the test."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.clock import monotonic_s
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import (
    container_dir,
    executor_endpoint,
    instance_endpoint,
    peer_endpoint,
    registration_endpoint,
    tmanager_endpoint,
)
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frame import (
    FRAME_HEADER_BYTES,
    WIRE_VERSION,
    Encoding,
    FrameKind,
    Marker,
    SegmentKind,
    credit_body,
    frame_header,
    marker_segment,
    parse_credit,
    parse_frame_header,
    parse_segment,
    segment,
    segment_routes,
)
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Channel, Hub, SocketContext
from heron.kernel.role_spec import StmgrSpec
from heron.kernel.settings import EngineSettings
from heron.planner.codec import encode
from heron.planner.physical_plan import PhysicalPlan, StreamManagerLocation, TaskPlan, TopologyState
from heron.stmgr.counters import Counters
from heron.stmgr.link_host import LinkHost
from heron.stmgr.router import Router
from heron.stmgr.stream_manager import StreamManager

WINDOW_BYTES = 10_000
HIGH_BYTES = 20_000
TASKS = {1: (1, 2), 2: (3, 4)}  # spout task 1 and bolt task 2 in container 1, bolt tasks 3 and 4 in container 2

pytestmark = pytest.mark.leaks_nothing


def plan_of(incarnations: dict[int, int], run_dir: Path, version: int = 1) -> Envelope:
    bolt_input = InputDefinition("spout", "default", GroupingDefinition(GroupingKind.ALL))
    topology = TopologyDefinition(
        "t",
        (
            ComponentDefinition("spout", ComponentKind.SPOUT, "m:S", 1, (StreamDefinition("default", ("v",)),)),
            ComponentDefinition("bolt", ComponentKind.BOLT, "m:B", 3, (), (bolt_input,)),
        ),
    )
    tasks = [TaskPlan(1, "spout", 0, 1), *(TaskPlan(each, "bolt", each - 2, 1 + (each > 2)) for each in (2, 3, 4))]
    stmgrs = [
        StreamManagerLocation(container, incarnation, peer_endpoint(run_dir, container, incarnation), "host", 1)
        for container, incarnation in incarnations.items()
    ]
    plan = PhysicalPlan(version, 1, "t-1", topology, TopologyState.RUNNING, tuple(tasks), tuple(stmgrs))
    return Envelope(epoch=1, plan=pb.Plan(version=version, document=encode(plan)))


def tuples(destinations: Sequence[int], payload: bytes = b"rows") -> bytes:
    return segment(
        destinations,
        payload,
        kind=SegmentKind.TUPLES,
        encoding=Encoding.NONE,
        stream=0,
        plan_version=1,
        source_task=1,
        incarnation=0,
        rows=1,
    )


def end_marker(destinations: Sequence[int]) -> bytes:
    return marker_segment(destinations, Marker.END, 0, plan_version=1, source_task=1, incarnation=0)


class Stmgr:
    """A stream manager on a thread, with its executor and its topology manager."""

    def __init__(self, run_dir: Path, container: int, incarnation: int, sockets: SocketContext) -> None:
        settings = EngineSettings(
            link_window_bytes=WINDOW_BYTES, high_watermark_bytes=HIGH_BYTES, low_watermark_bytes=5000, heartbeat_s=60.0
        )
        spec = StmgrSpec("t", "t-1", container, incarnation, str(run_dir), str(run_dir), TASKS[container])
        self.sockets = SocketContext(max_frame_bytes=settings.frame_max_bytes)
        router = Router(high_bytes=settings.high_watermark_bytes, low_bytes=settings.low_watermark_bytes)
        self.host = LinkHost(spec, settings, Reactor(), self.sockets, router, Counters())
        for socket in (executor_endpoint(run_dir, container), registration_endpoint(run_dir, container)):
            Path(socket.removeprefix("ipc://")).unlink(missing_ok=True)
        self.executor = sockets.hub(executor_endpoint(run_dir, container))
        self.tmanager = sockets.hub(tmanager_endpoint(run_dir, container, incarnation))  # one of its own, to keep apart
        self.tmanager_at = tmanager_endpoint(run_dir, container, incarnation)
        self.heard: list[Envelope] = []
        self._client = b""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        StreamManager(self.host)
        self.host.reactor.run()
        self.sockets.close()

    def close(self) -> None:
        self.host.reactor.stop()
        self._thread.join(10)
        self.executor.close()
        self.tmanager.close()

    def connect(self) -> None:
        """Tells it where the topology manager is, and waits for its hello."""
        client, _ = receive_from(self.executor)
        location = pb.TManagerLocation(endpoint=self.tmanager_at, epoch=1)
        self.executor.send(client, control_frame(Envelope(tmanager_location=location)))
        self.expect("stmgr_hello")

    def expect(self, body: str) -> Envelope:
        """The next message to the topology manager of that kind."""
        while True:
            self._client, frame = receive_from(self.tmanager)
            envelope = parse_control(frame)
            if body_of(envelope) == body:
                return envelope

    def tell(self, envelope: Envelope) -> None:
        """Says something as the topology manager."""
        assert self.tmanager.send(self._client, control_frame(envelope))


class Instance:
    """A session of an instance, spoken by the test."""

    def __init__(
        self, run_dir: Path, sockets: SocketContext, task: int, incarnation: int = 0, attempt: int = 1
    ) -> None:
        container = 1 if task < 3 else 2
        self.hello = pb.InstanceHello(
            task_id=task,
            incarnation=incarnation,
            endpoint=instance_endpoint(run_dir, container, task, incarnation, attempt),
            wire_version=WIRE_VERSION,
        )
        self.channel = sockets.channel_bound(self.hello.endpoint)
        self.registration = sockets.client_of(registration_endpoint(run_dir, container))
        self.session = 0
        self.sequence = 0
        self.got_bytes = 0

    def say_hello(self) -> None:
        self.registration.send(control_frame(Envelope(instance_hello=self.hello)))

    def register(self) -> pb.InstanceWelcome:
        self.say_hello()
        welcome = parse_control(receive(self.channel)).instance_welcome
        self.session = welcome.session
        return welcome

    def expect_plan(self) -> int:
        return parse_control(receive(self.channel)).plan.version

    def send(self, *segments: bytes, skip: int = 0) -> int:
        """Sends a data frame, whatever the credit; its size as credit counts it."""
        self.sequence += 1 + skip
        frame = b"".join((frame_header(FrameKind.DATA, self.session, self.sequence), *segments))
        self.channel.send(frame)
        return len(frame) - FRAME_HEADER_BYTES

    def report(self, phase: pb.TaskPhase) -> None:
        report = pb.TaskReport(task_id=self.hello.task_id, phase=phase)
        self.channel.send(control_frame(Envelope(task_report=report), self.session))

    def segments(self) -> list[bytes]:
        """The segments of the next data frame; anything else is an error."""
        frame = receive(self.channel)
        assert parse_frame_header(frame)[:2] == (FrameKind.DATA, self.session)
        self.got_bytes += len(frame) - FRAME_HEADER_BYTES
        return [frame[start:end] for start, end, _ in segment_routes(frame)]

    def payloads(self, count: int, *, credit: bool = True) -> list[bytes]:
        """The payloads of so many segments."""
        found: list[bytes] = []
        while len(found) < count:
            for data in self.segments():
                head = parse_segment(data, 0)
                found.append(data[head.payload_start : head.end])
            if credit:
                self.release()
        return found

    def release(self) -> None:
        """Releases all that came."""
        header = frame_header(FrameKind.CREDIT, self.session, 0)
        self.channel.send(header + credit_body(0, self.got_bytes))

    def released(self, size_bytes: int) -> None:
        """Waits until the stream manager has released so many bytes in all."""
        while True:
            frame = receive(self.channel)
            assert parse_frame_header(frame)[0] == FrameKind.CREDIT
            if parse_credit(frame)[1] >= size_bytes:
                assert parse_credit(frame)[1] == size_bytes
                return


def receive(channel: Channel) -> bytes:
    assert channel.wait(10), "nothing came"
    frame = channel.receive()
    assert frame is not None
    return frame


def silent(channel: Channel) -> bool:
    return not channel.wait(0.05)


def receive_from(hub: Hub) -> tuple[bytes, bytes]:
    found: list[tuple[bytes, bytes]] = []

    def look() -> bool:
        message = hub.receive()
        found.extend([message] if message else [])
        return bool(found)

    until(look)
    return found[0]


def until(condition: Callable[[], object]) -> None:
    deadline, pause = monotonic_s() + 10, threading.Event()
    while not condition():
        assert monotonic_s() < deadline, "not in time"
        pause.wait(0.002)


class Site:
    """A run directory with stream managers and instances."""

    def __init__(self) -> None:
        self.run_dir = Path(tempfile.mkdtemp(prefix="hw"))  # short: tmp_path is too long for a socket
        self.sockets = SocketContext()
        self.stmgrs: dict[int, Stmgr] = {}
        for container in (0, 1, 2):
            container_dir(self.run_dir, container).mkdir()

    def start(self, container: int, incarnation: int = 0) -> Stmgr:
        self.stmgrs[container] = Stmgr(self.run_dir, container, incarnation, self.sockets)
        self.stmgrs[container].connect()
        return self.stmgrs[container]

    def instance(self, task: int, incarnation: int = 0, attempt: int = 1) -> Instance:
        return Instance(self.run_dir, self.sockets, task, incarnation, attempt)

    def registered(self, task: int, incarnation: int = 0, attempt: int = 1) -> Instance:
        """An instance that is in session and has the plan."""
        made = self.instance(task, incarnation, attempt)
        made.register()
        made.expect_plan()
        return made

    def plan(self, version: int = 1) -> None:
        incarnations = {container: stmgr.host.spec.incarnation for container, stmgr in self.stmgrs.items()}
        for stmgr in self.stmgrs.values():
            stmgr.tell(plan_of(incarnations, self.run_dir, version))

    def close(self) -> None:
        for stmgr in self.stmgrs.values():
            stmgr.close()
        self.sockets.close()
        shutil.rmtree(self.run_dir)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture
def one(site: Site) -> Stmgr:
    """One stream manager with a plan."""
    stmgr = site.start(1)
    site.plan()
    return stmgr


def test_instances_may_register_before_and_after_the_plan(site: Site) -> None:
    """No order of start is guaranteed: an instance may even say hello before its stream manager lives."""
    early = site.instance(1)
    early.say_hello()
    site.start(1)
    assert parse_control(receive(early.channel)).instance_welcome.window_bytes == WINDOW_BYTES
    assert silent(early.channel)
    site.plan(version=3)
    assert early.expect_plan() == 3
    late = site.instance(2)
    late.register()
    assert late.expect_plan() == 3


def test_data_flows_and_its_credit_comes_back(site: Site, one: Stmgr) -> None:
    """What a bolt releases is not what the spout gets back: its room is free as soon as nothing is congested."""
    spout, bolt = site.registered(1), site.registered(2)
    size = spout.send(tuples([2], b"a"), tuples([2], b"b"))
    assert bolt.payloads(2) == [b"a", b"b"]
    spout.released(size)
    size += spout.send(tuples([2], b"c"))
    assert bolt.payloads(1) == [b"c"]
    spout.released(size)
    assert one.host.counters.frames_from_instances == 2


def test_a_hello_said_twice_opens_one_session(site: Site, one: Stmgr) -> None:
    """Instances repeat it until the welcome comes; under load that is several times."""
    bolt = site.instance(2)
    for _ in range(3):
        bolt.say_hello()
    bolt.session = parse_control(receive(bolt.channel)).instance_welcome.session
    assert bolt.expect_plan() == 1
    assert silent(bolt.channel)
    assert one.host.router.outlets[2].window is not None


def test_a_newer_incarnation_takes_over_and_an_older_one_is_refused(site: Site, one: Stmgr) -> None:
    """A process that was given up on must not take its successor's place."""
    spout, former = site.registered(1), site.registered(2, incarnation=1)
    present = site.registered(2, incarnation=2)
    assert present.session > former.session
    spout.send(tuples([2], b"new"))
    assert present.payloads(1) == [b"new"]
    stale = site.instance(2, incarnation=1, attempt=2)
    stale.say_hello()
    refusal = parse_control(receive(stale.registration))
    assert "incarnation 1 after 2" in refusal.refused.reason
    spout.send(tuples([2], b"still"))
    assert present.payloads(1) == [b"still"]
    assert silent(former.channel)
    assert one.host.counters.refused_frames == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"task_id": 9}, "task 9 is not one of container 1"), ({"wire_version": 2}, "wire version 2")],
)
def test_a_strange_hello_is_refused(site: Site, one: Stmgr, change: dict[str, int], reason: str) -> None:
    """The answer names the fault, and nothing is opened."""
    stranger = site.instance(2)
    stranger.hello.MergeFrom(pb.InstanceHello(**change))  # type: ignore[arg-type]  # field names by parameter
    stranger.say_hello()
    assert reason in parse_control(receive(stranger.registration)).refused.reason
    assert one.host.router.outlets[2].window is None


def bad_frames(session: int) -> dict[str, bytes]:
    data = frame_header(FrameKind.DATA, session, 1)
    return {
        "version": b"\x07" + data[1:] + tuples([2]),
        "session": frame_header(FrameKind.DATA, session + 1, 1) + tuples([2]),
        "short": b"\x01",
        "garbage": data + b"garbage",
        "kind": frame_header(77, session, 1) + tuples([2]),
        "credit": frame_header(FrameKind.CREDIT, session, 0) + credit_body(0, 10**9),
        "control": frame_header(FrameKind.CONTROL, session, 0) + b"\xff\xff",
        "hello": control_frame(Envelope(instance_hello=pb.InstanceHello(task_id=1)), session),
    }


@pytest.mark.parametrize("name", list(bad_frames(1)))
def test_a_frame_that_breaks_the_rules_ends_its_session_only(site: Site, one: Stmgr, name: str) -> None:
    """Others go on, and the same task may begin a new session."""
    spout, bolt = site.registered(1), site.registered(2)
    spout.channel.send(bad_frames(spout.session)[name])
    until(lambda: one.host.counters.refused_frames == 1)
    spout.send(tuples([2], b"dropped"))
    again = site.registered(1, attempt=2)
    again.send(tuples([2], b"fine"))
    assert bolt.payloads(1) == [b"fine"]
    assert one.host.counters.refused_frames == 1


def test_a_gap_in_the_sequence_is_counted(site: Site, one: Stmgr) -> None:
    """A loss is an event that is known, not a riddle."""
    spout, bolt = site.registered(1), site.registered(2)
    spout.send(tuples([2], b"a"))
    spout.send(tuples([2], b"b"), skip=3)
    assert bolt.payloads(2) == [b"a", b"b"]
    assert one.host.counters.lost_frames == 3


def test_credit_is_kept_back_above_the_watermark_and_comes_back_below(site: Site, one: Stmgr) -> None:
    """Back pressure: nothing is dropped, the sender's window simply does not open, and people hear who it is."""
    spout, bolt = site.registered(1), site.registered(2)
    sizes = [spout.send(tuples([2], bytes([number]) * 3000)) for number in range(16)]
    until(lambda: one.host.counters.frames_from_instances == 16)
    pressure = one.expect("pressure").pressure
    assert (pressure.task_id, pressure.container_id, pressure.on) == (2, 1, True)
    assert pressure.buffered_bytes > HIGH_BYTES
    got = bolt.payloads(3, credit=False)
    assert len(got) == 3  # a window's worth: no more comes without credit
    assert silent(bolt.channel)
    released = 0
    while spout.channel.wait(0.05):
        released = parse_credit(receive(spout.channel))[1]
    assert released < sum(sizes) - HIGH_BYTES + 2 * max(sizes)
    bolt.release()
    got += bolt.payloads(13)
    assert got == [bytes([number]) * 3000 for number in range(16)]
    spout.released(sum(sizes))
    assert not one.expect("pressure").pressure.on


def test_end_markers_come_again_in_a_new_session_behind_what_waits(site: Site, one: Stmgr) -> None:
    """A bolt that restarts after its upstream ended must still learn that it did."""
    spout, bolt = site.registered(1), site.registered(2)
    spout.send(tuples([2], b"a"), end_marker([2]))
    assert len(bolt.payloads(2)) == 2
    bolt.channel.close()
    until(lambda: one.host.router.outlets[2].window is None)
    spout.send(tuples([2], b"b"))
    again = site.registered(2, incarnation=1)
    first, second = (parse_segment(data, 0) for data in again.segments())
    assert (first.kind, second.kind, second.stream) == (SegmentKind.TUPLES, SegmentKind.MARKER, Marker.END)


def test_reports_reach_the_topology_manager_and_its_answer_the_instance(site: Site, one: Stmgr) -> None:
    """An end is confirmed before a process leaves; a task that ended is told so when it comes back."""
    spout = site.registered(1)
    spout.report(pb.TASK_PHASE_ENDED)
    assert one.expect("task_report").task_report.phase == pb.TASK_PHASE_ENDED
    one.tell(Envelope(epoch=1, task_report_seen=pb.TaskReportSeen(task_id=1, phase=pb.TASK_PHASE_ENDED)))
    assert parse_control(receive(spout.channel)).task_report_seen.phase == pb.TASK_PHASE_ENDED
    assert site.instance(1, incarnation=1).register().ended


def test_an_older_plan_changes_nothing(site: Site, one: Stmgr) -> None:
    """Plans may arrive twice or late when topology managers change."""
    bolt = site.registered(2)
    site.plan(version=5)
    assert bolt.expect_plan() == 5
    site.plan(version=4)
    assert silent(bolt.channel)


def test_two_stream_managers_exchange_segments(site: Site) -> None:
    """A segment for both containers arrives in both; one for two tasks of a peer crosses once."""
    here, there = site.start(1), site.start(2)
    site.plan()
    spout, local, third, fourth = (site.registered(task) for task in (1, 2, 3, 4))
    size = spout.send(tuples([2, 3, 4], b"all"), tuples([4], b"four"))
    assert local.payloads(1) == [b"all"]
    assert third.payloads(1) == [b"all"]
    assert fourth.payloads(2) == [b"all", b"four"]
    spout.released(size)
    crossed = len(tuples([3, 4], b"all")) + len(tuples([4], b"four"))
    assert there.host.counters.bytes_from_peers == crossed
    assert here.host.counters.lost_frames == there.host.counters.lost_frames == 0


def test_peer_credit_does_not_leak_with_several_destinations(site: Site) -> None:
    """More data than many windows crosses, with one destination left behind and many segments retargeted."""
    here, _ = site.start(1), site.start(2)
    site.plan()
    spout, local, third, fourth = (site.registered(task) for task in (1, 2, 3, 4))
    for number in range(300):
        spout.send(tuples([2, 3, 4], bytes([number % 256]) * 400))
    for instance in (local, fourth, third):
        assert len(instance.payloads(300)) == 300
    until(lambda: all(_settled(here, task) for task in (3, 4)))


def _settled(stmgr: Stmgr, task: int) -> bool:
    window = stmgr.host.router.outlets[task].window
    return window is not None and window.sent_bytes == window.released_bytes


def test_a_full_task_of_a_peer_does_not_hold_up_its_neighbour(site: Site) -> None:
    """Credit between stream managers is per task; the link itself is always read."""
    site.start(1)
    site.start(2)
    site.plan()
    spout, slow, quick = (site.registered(task) for task in (1, 3, 4))
    for _ in range(30):
        spout.send(tuples([3], b"x" * 3000))
    spout.send(tuples([4], b"through"))
    assert quick.payloads(1) == [b"through"]
    assert len(slow.payloads(30)) == 30


def test_a_restarted_peer_gets_what_waited_and_the_end_markers(site: Site) -> None:
    """A stream manager that dies loses its own memory; what waits at others goes to its successor."""
    site.start(1)
    first = site.start(2)
    site.plan()
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(tuples([3], b"a"), end_marker([3, 4]))
    assert len(bolt.payloads(2)) == 2
    first.close()
    site.start(2, incarnation=1)
    spout.send(tuples([3], b"b"))
    site.plan(version=2)
    again = site.registered(3, attempt=2)
    kinds = [parse_segment(data, 0).kind for data in again.segments()]
    while SegmentKind.MARKER not in kinds:
        kinds += [parse_segment(data, 0).kind for data in again.segments()]
    assert kinds[-1] == SegmentKind.MARKER


def test_a_peer_that_breaks_the_rules_loses_its_session_only(site: Site) -> None:
    """The refusal is answered, further frames of that identity are dropped and counted, others go on."""
    site.start(1)
    there = site.start(2)
    site.plan()
    spout, bolt = site.registered(1), site.registered(3)
    rogue = site.sockets.client_of(peer_endpoint(site.run_dir, 2, 0), b"rogue")
    hello = pb.PeerHello(container_id=9, incarnation=0, session=5, wire_version=WIRE_VERSION)
    rogue.send(control_frame(Envelope(peer_hello=hello)))
    assert parse_control(receive(rogue)).peer_welcome.window_bytes == WINDOW_BYTES
    rogue.send(frame_header(FrameKind.DATA, 6, 1) + tuples([3], b"wrong session"))
    assert "session 6" in parse_control(receive(rogue)).refused.reason
    rogue.send(frame_header(FrameKind.DATA, 5, 1) + tuples([3], b"too late"))
    until(lambda: there.host.counters.refused_frames == 2)
    spout.send(tuples([3], b"fine"))
    assert bolt.payloads(1) == [b"fine"]


def test_a_refused_peer_asks_again_with_a_pause(site: Site) -> None:
    """Two stream managers that disagree must not spend the machine on telling each other so."""
    here, there = site.start(1), site.start(2)
    successor = site.sockets.client_of(peer_endpoint(site.run_dir, 2, 0), b"successor")
    hello = pb.PeerHello(container_id=1, incarnation=9, session=1, wire_version=WIRE_VERSION)
    successor.send(control_frame(Envelope(peer_hello=hello)))
    assert parse_control(receive(successor)).peer_welcome.session == 1
    started_s = monotonic_s()
    site.plan()
    until(lambda: here.host.counters.refused_frames >= 3)
    assert monotonic_s() - started_s > 0.15
    assert there.host.counters.refused_frames <= 4
    assert here.host.router.outlets[3].window is None
