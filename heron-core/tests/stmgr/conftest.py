"""Stream managers over real sockets. The tests play their instances, executors and topology manager."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heron.api.definition import GroupingKind
from heron.clock import monotonic_s
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import (
    container_dir,
    executor_endpoint,
    instance_endpoint,
    registration_endpoint,
)
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    SEGMENT_KIND_AT,
    WIRE_VERSION,
    FrameKind,
    SegmentKind,
    credit_body,
    frame_header,
    parse_credit,
    parse_frame_header,
    segment_routes,
)
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.keys import ClientKind, TopologyKeys, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Channel, Hub, SocketContext
from heron.kernel.role_spec import StmgrSpec
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import StreamManagerLocation
from heron.state_nodes.plans import decode_physical_plan, encode_plan
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.back_pressure import BackPressure, Reporter
from heron.stmgr.counters import TrafficCounters
from heron.stmgr.link_context import LinkContext
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.outlet import Watermarks
from heron.stmgr.outlet_paces import OutletPaces
from heron.stmgr.router import Router
from heron.stmgr.stream_manager import StreamManager
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription
from heron_testing.builders import topology as topology_of
from heron_testing.waiting import wait_until
from parts import data_frame, decoded_rows, end_marker, tuple_segment

TUPLE_MAX_BYTES = 16 * 1024 * 1024
WINDOW_BYTES = 10_000
HIGH_BYTES = 20_000
HARD_BYTES = 40_000
TASKS = {1: (1, 2), 2: (3, 4)}  # spout task 1 and bolt task 2 in container 1, bolt tasks 3 and 4 in container 2


def plan_of(stmgrs: Sequence[StreamManagerLocation], version: int = 1, epoch: int = 1) -> Envelope:
    topology = topology_of(
        spout("spout", stream("v")), bolt("bolt", subscription("spout", GroupingKind.ALL), parallelism=3)
    )
    containers = {task: container for container, tasks in TASKS.items() for task in tasks}
    plan = physical_plan(topology, containers=containers, stmgrs=stmgrs, version=version, epoch=epoch)
    return Envelope(epoch=epoch, plan=pb.Plan(version=version, document=encode_plan(plan)))


def tuples(destinations: Sequence[int], payload: bytes = b"rows") -> bytes:
    """A segment of one tuple, whose only value is `payload`."""
    return tuple_segment([(payload,)], destinations)


class Stmgr:
    """A stream manager on a thread, with its executor and its topology manager."""

    def __init__(
        self,
        run_dir: Path,
        container: int,
        incarnation: int,
        sockets: SocketContext,
        keys: TopologyKeys,
        *,
        tuple_max_bytes: int,
    ) -> None:
        settings = EngineSettings(
            tuple_max_bytes=tuple_max_bytes,
            link_window_bytes=WINDOW_BYTES,
            high_watermark_bytes=HIGH_BYTES,
            low_watermark_bytes=5000,
            hard_limit_bytes=HARD_BYTES,
            heartbeat_s=60.0,
            metrics_export_s=0.05,
        )
        spec = StmgrSpec(
            "t",
            "t-1",
            container,
            incarnation,
            str(run_dir),
            str(run_dir),
            TASKS[container],
            (keys.connecting_as(ClientKind.MEMBER),),
            (keys.listening_to(ClientKind.MEMBER),),
        )
        self.spec = spec
        self.sockets = SocketContext(max_frame_bytes=FrameLimits(settings.frame_max_bytes).socket_bytes)
        local = LocalTasks(container, spec.task_ids)
        acks = AckRouting(local, monotonic_s)
        marks = Watermarks(settings.low_watermark_bytes, HIGH_BYTES, HARD_BYTES)
        router, paces = Router(acks, marks), OutletPaces(marks, settings.queue_least_bytes, settings.outlet_target_s)
        pressure = BackPressure(Reporter(container, incarnation))
        self.context = LinkContext(
            spec,
            settings,
            Reactor(),
            self.sockets,
            router,
            TrafficCounters(),
            acks,
            pressure,
            local,
            paces,
            lambda: self.spec,
        )
        for socket in (executor_endpoint(run_dir, container), registration_endpoint(run_dir, container)):
            Path(socket.removeprefix("ipc://")).unlink(missing_ok=True)
        self.executor = sockets.hub(executor_endpoint(run_dir, container))
        self.tmanager_at = f"ipc://{container_dir(run_dir, container)}/t{incarnation}"  # one for each incarnation
        self.tmanager = sockets.hub(self.tmanager_at)
        self.endpoint = ""
        self.heard: list[Envelope] = []
        self._client = b""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self._running = StreamManager(self.context)
        self.context.reactor.run()
        self.sockets.close()

    def peers_have_moved(self) -> bool:
        """Whether all sessions use the newest keys."""
        return self._running._peers.moves.are_over()

    def close(self) -> None:
        self.context.reactor.stop()
        self._thread.join(10)
        self.executor.close()
        self.tmanager.close()

    def connect(self) -> None:
        """Sends the location of the topology manager, and waits for the hello."""
        self._executor_client, _ = receive_from(self.executor)
        self.take_keys(0)

    def take_keys(self, version: int, *sets: TopologyKeys) -> None:
        """As if the executor had these sets of keys now; waits for the hello."""
        if sets:
            own = tuple(each.connecting_as(ClientKind.MEMBER) for each in sets)
            self.spec = replace(
                self.spec, keys=own, peer_keys=tuple(each.listening_to(ClientKind.MEMBER) for each in sets)
            )
        location = pb.TManagerLocation(endpoint=self.tmanager_at, epoch=1, keys=version)
        self.executor.send(self._executor_client, control_frame(Envelope(tmanager_location=location)))
        self.hello = self.expect("stmgr_hello").stmgr_hello
        self.endpoint = self.hello.endpoint

    def expect(self, body: str) -> Envelope:
        """The next message of that kind to the topology manager."""
        while True:
            self._client, frame = receive_from(self.tmanager)
            envelope = parse_control(frame)
            if body_of(envelope) == body:
                return envelope

    def send_as_tmanager(self, envelope: Envelope) -> None:
        """Sends a message as the topology manager."""
        assert self.tmanager.send(self._client, control_frame(envelope))


class Instance:
    """A session of an instance that the test plays."""

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
        self.credit_bytes = 0
        self.throttled_by: set[int] = set()

    def send_hello(self) -> None:
        self.registration.send(control_frame(Envelope(instance_hello=self.hello)))

    def register(self) -> pb.InstanceWelcome:
        self.send_hello()
        welcome = parse_control(receive(self.channel)).instance_welcome
        self.session = welcome.session
        self.throttled_by = set(welcome.culprits)
        return welcome

    def expect_plan(self) -> int:
        return parse_control(receive(self.channel)).plan.version

    def send(self, *segments: bytes, skip: int = 0) -> int:
        """Sends a data frame without regard to credit; returns its size as credit counts it."""
        self.sequence += 1 + skip
        frame = data_frame(*segments, session=self.session, sequence=self.sequence)
        self.channel.send(frame)
        return len(frame) - FRAME_HEADER_BYTES

    def report(self, phase: pb.TaskPhase) -> None:
        report = pb.TaskReport(task_id=self.hello.task_id, phase=phase)
        self.channel.send(control_frame(Envelope(task_report=report), self.session))

    def segments(self, *, skip_plans: bool = False) -> list[bytes]:
        """The segments of the next frame, which must be a data frame."""
        frame = receive(self.channel)
        while skip_plans and parse_frame_header(frame)[0] == FrameKind.CONTROL:
            frame = receive(self.channel)
        assert parse_frame_header(frame)[:2] == (FrameKind.DATA, self.session)
        self.got_bytes += len(frame) - FRAME_HEADER_BYTES
        return [frame[start:end] for start, end, _ in segment_routes(frame)]

    def payloads(self, count: int, *, credit: bool = True, skip_plans: bool = False) -> list[object]:
        """The values of the next `count` tuples; None for a marker."""
        found: list[object] = []
        while len(found) < count:
            for data in self.segments(skip_plans=skip_plans):
                found += [row[0] for row in decoded_rows(data)] if is_tuples(data) else [None]
            if credit:
                self.release()
        return found

    def release(self) -> None:
        """Releases all bytes that have arrived."""
        header = frame_header(FrameKind.CREDIT, self.session, 0)
        self.channel.send(header + credit_body(0, self.got_bytes))

    def released(self, size_bytes: int) -> None:
        """Waits until the stream manager has released `size_bytes` in total."""
        while self.credit_bytes < size_bytes:
            self.handle_next()
        assert self.credit_bytes == size_bytes

    def handle_next(self) -> None:
        """Handles the next frame: credit, a plan, or a change of back pressure."""
        frame = receive(self.channel)
        if parse_frame_header(frame)[0] == FrameKind.CREDIT:
            self.credit_bytes = parse_credit(frame)[1]
        elif body_of(envelope := parse_control(frame)) == "pressure":
            change = self.throttled_by.add if envelope.pressure.on else self.throttled_by.remove
            change(envelope.pressure.task_id)

    def handle_all(self) -> None:
        """Handles frames until no more arrive."""
        while self.channel.wait(0.05):
            self.handle_next()

    def drain(self, count: int) -> None:
        """Takes `count` segments and releases them; skips plans."""
        while count > 0:
            frame = receive(self.channel)
            if parse_frame_header(frame)[0] == FrameKind.DATA:
                self.got_bytes += len(frame) - FRAME_HEADER_BYTES
                count -= len(list(segment_routes(frame)))
                self.release()

    def wait_until_throttled_by(self, *culprits: int) -> None:
        """Waits until exactly these tasks throttle the spout."""
        while self.throttled_by != set(culprits):
            self.handle_next()


def is_tuples(data: bytes) -> bool:
    return data[SEGMENT_KIND_AT] == SegmentKind.TUPLES


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

    wait_until(look)
    return found[0]


class Site:
    """A run directory with stream managers and instances."""

    tuples = staticmethod(tuples)
    end_marker = staticmethod(end_marker)
    receive = staticmethod(receive)
    silent = staticmethod(silent)

    def __init__(self) -> None:
        self.run_dir = Path(tempfile.mkdtemp(prefix="hw"))  # tmp_path is too long for a socket
        self.sockets = SocketContext(max_frame_bytes=-1)
        self.keys = new_keys()
        self.address_of_peer: dict[int, str] = {}
        self.stmgrs: dict[int, Stmgr] = {}
        for container in (0, 1, 2):
            container_dir(self.run_dir, container).mkdir()

    def start(self, container: int, incarnation: int = 0, *, tuple_max_bytes: int = TUPLE_MAX_BYTES) -> Stmgr:
        self.stmgrs[container] = Stmgr(
            self.run_dir, container, incarnation, self.sockets, self.keys, tuple_max_bytes=tuple_max_bytes
        )
        self.stmgrs[container].connect()
        return self.stmgrs[container]

    def instance(self, task: int, incarnation: int = 0, attempt: int = 1) -> Instance:
        return Instance(self.run_dir, self.sockets, task, incarnation, attempt)

    def registered(self, task: int, incarnation: int = 0, attempt: int = 1) -> Instance:
        """An instance with a session and the plan."""
        made = self.instance(task, incarnation, attempt)
        made.register()
        made.expect_plan()
        return made

    def plan(self, version: int = 1, epoch: int = 1, *, receivers: Collection[int] = tuple(TASKS)) -> None:
        """Sends a plan with all stream managers to those of these containers."""
        locations = [
            StreamManagerLocation(
                container,
                each.context.spec.incarnation,
                self.address_of_peer.get(container, each.endpoint),
                "h",
                1,
                each.hello.server_key,
                each.hello.next_endpoint,
                each.hello.next_server_key,
            )
            for container, each in self.stmgrs.items()
        ]
        plan = plan_of(locations, version, epoch)
        decode_physical_plan(plan.plan.document, "test")  # msgspec must not inspect a type in several threads at once
        for container in self.stmgrs.keys() & receivers:
            self.stmgrs[container].send_as_tmanager(plan)

    def linked(self, container: int, *tasks: int) -> None:
        """Waits until a stream manager may send to these tasks of its peer; END markers sent before are repeated."""
        outlets = self.stmgrs[container].context.router.outlets
        wait_until(lambda: all(task in outlets and outlets[task].window is not None for task in tasks))

    def peer(self, container: int, identity: bytes) -> Channel:
        """A channel to the socket for peers of a stream manager, with a member's keys."""
        endpoint, keys = self.stmgrs[container].endpoint, self.keys.connecting_as(ClientKind.MEMBER)
        return self.sockets.client_of(endpoint, identity, keys=keys)

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
