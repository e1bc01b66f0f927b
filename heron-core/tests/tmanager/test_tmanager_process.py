"""The topology manager as a process: its socket, its state, its takeover, as stream managers and executors see them."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode
from heron.api.definition import TopologyDefinition
from heron.clock import monotonic_s
from heron.driver_kit.loading import open_driver
from heron.driver_kit.parent_process import EXIT_TEMPORARY
from heron.errors import AccessError, HeronError, RefusedError, UnreachableError, UsageError
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.status import decode_status
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.keys import ClientKeys, ClientKind, new_keys
from heron.ipc.query import TManagerClient
from heron.ipc.socket import Channel, SocketContext
from heron.kernel.role_spec import TManagerSpec, write_spec
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import HandledLosses, PhysicalPlan
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.spi.task_stacks import TaskStacks, encode_stacks
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import decode_physical_plan, encode_plan
from heron.state_nodes.tmanager_location import TManagerLocation, decode_tmanager_location
from heron_testing.waiting import Eventually


class Peer:
    """The connection of a stream manager or executor to the topology manager."""

    def __init__(self, sockets: SocketContext, location: TManagerLocation, keys: ClientKeys) -> None:
        self.channel: Channel = sockets.client_of(location.endpoint, keys=keys)

    def send(self, envelope: Envelope) -> None:
        """Sends a message."""
        self.channel.send(control_frame(envelope))

    def expect(self, body: str) -> Envelope:
        """The next message of this kind; earlier messages are skipped."""
        deadline_s = monotonic_s() + 10.0
        while self.channel.wait(max(0.0, deadline_s - monotonic_s())):
            envelope = parse_control(self.channel.receive() or b"")
            if body_of(envelope) == body:
                return envelope
        msg = f"no {body} within 10 s"
        raise AssertionError(msg)

    def register(self, container_id: int, *tasks: pb.TaskReport, losses: int = 0) -> None:
        """Sends the hello of the first incarnation of a stream manager."""
        hello = pb.StmgrHello(container_id=container_id, incarnation=1, host="here", tasks=tasks, losses=losses)
        hello.endpoint = f"tcp://10.0.0.{container_id}:1"
        self.send(Envelope(stmgr_hello=hello))

    def plan(self) -> PhysicalPlan:
        """The next plan."""
        return decode_physical_plan(self.expect("plan").plan.document, "test")


def end_of(task_id: int) -> pb.TaskReport:
    return pb.TaskReport(task_id=task_id, incarnation=1, phase=pb.TASK_PHASE_ENDED)


class Run:
    """A submitted topology, and the topology managers that a test starts for it."""

    def __init__(self, folder: Path) -> None:
        self.ref = DriverRef(
            "statemgr",
            "localfs",
            "heron_statemgr_localfs.state_manager:LocalFsStateManager",
            {"root": str(folder / "state")},
        )
        self.state = open_driver(self.ref, StateManager)
        self.sockets = SocketContext(max_frame_bytes=-1)
        self.folder = folder
        self.keys = new_keys()
        self.peers: list[Peer] = []
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, incarnation: int) -> subprocess.Popen[bytes]:
        """Starts a topology manager."""
        keys = self.keys.listening_to(*ClientKind)
        spec = TManagerSpec("wc", "wc-1", 0, incarnation, str(self.folder), str(self.folder), self.ref, keys)
        path = self.folder / f"tmanager-{incarnation}.json"
        write_spec(path, spec)
        self.processes.append(subprocess.Popen([sys.executable, "-m", "heron.tmanager.main", str(path)]))
        return self.processes[-1]

    def location(self) -> TManagerLocation | None:
        """The location of the leader."""
        node = self.state.get(NodeKind.TMANAGER_LOCATION, "wc")
        return decode_tmanager_location(node.value, "wc") if node else None

    def peer(self, location: TManagerLocation) -> Peer:
        """A new peer of this topology manager."""
        self.peers.append(Peer(self.sockets, location, self.keys.connecting_as(ClientKind.MEMBER)))
        return self.peers[-1]

    def client(self, location: TManagerLocation, kind: ClientKind = ClientKind.CONTROL) -> TManagerClient:
        """A client of this topology manager."""
        return TManagerClient(location.endpoint, self.keys.connecting_as(kind))

    def close(self) -> None:
        """Ends all processes and closes the sockets."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.sockets.close()
        self.state.close()


@pytest.fixture
def run(tmp_path: Path, definition: TopologyDefinition, packing: PackingPlan) -> Iterator[Run]:
    """A word count, submitted."""
    (tmp_path / "c0").mkdir()
    found = Run(tmp_path)
    found.state.set(NodeKind.TOPOLOGY, "wc", encode_plan(definition))
    found.state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(packing))
    yield found
    found.close()


@pytest.fixture
def leader_of(run: Run, eventually: Eventually) -> Callable[[int], TManagerLocation]:
    """Starts a topology manager of that incarnation and waits until it leads."""

    def start(incarnation: int) -> TManagerLocation:
        process = run.start(incarnation)

        def leads() -> TManagerLocation | None:
            found = run.location()
            return found if found and found.pid == process.pid else None

        location = eventually(leads, what="a leader")
        assert location is not None
        return location

    return start


def test_a_topology_from_registration_to_report(run: Run, leader_of: Callable[[int], TManagerLocation]) -> None:
    """Plans reach state and stream managers, ends are confirmed, the report is written, and the stop is in order."""
    location = leader_of(1)
    first, second, own, other = (run.peer(location) for _ in range(4))
    first.register(1)
    second.register(2)
    plan = first.plan()
    assert second.plan() == plan
    node = run.state.get(NodeKind.PHYSICAL_PLAN, "wc")
    assert node is not None
    assert decode_physical_plan(node.value, "state") == plan
    own.send(Envelope(executor_hello=pb.ExecutorHello(container_id=0)))
    for container_id in (1, 2):
        other.send(Envelope(executor_hello=pb.ExecutorHello(container_id=container_id)))
    for task_id, peer in ((1, first), (2, first), (3, second)):
        peer.send(Envelope(task_report=end_of(task_id)))
        seen = peer.expect("task_report_seen")
        assert (seen.task_report_seen.task_id, seen.epoch) == (task_id, plan.epoch)
    assert other.expect("stop").stop.reason == "the topology is finished"
    assert own.expect("stop").epoch == plan.epoch
    report = run.state.get(NodeKind.REPORT, "wc")
    assert report is not None
    assert decode_status(report.value).state == "finished"
    run.processes[0].send_signal(signal.SIGTERM)
    assert run.processes[0].wait(5.0) == 0
    assert run.location() is None


def test_a_killed_leader_is_followed_by_its_standby_with_a_greater_epoch(
    run: Run, leader_of: Callable[[int], TManagerLocation], eventually: Eventually
) -> None:
    """There is one leader. The plan keeps its version, and stream managers report ended tasks again."""
    location = leader_of(1)
    first, second = run.peer(location), run.peer(location)
    first.register(1)
    second.register(2)
    before = first.plan()
    standby = run.start(2)
    run.processes[0].kill()
    eventually(lambda: (found := run.location()) is not None and found.pid == standby.pid)
    successor = run.location()
    assert successor is not None
    first, second = run.peer(successor), run.peer(successor)
    first.register(1, end_of(1), end_of(2))
    after = first.plan()
    assert after.version == before.version
    assert after.epoch > before.epoch
    second.register(2, end_of(3))
    with run.client(successor) as client:
        eventually(lambda: client.status(5.0).state == "finished")


def test_a_deposed_leader_that_wakes_up_changes_nothing(
    run: Run, leader_of: Callable[[int], TManagerLocation], eventually: Eventually
) -> None:
    """A leader is stopped for longer than its lease, with commands and reports in its queue, and continues then.

    In between, its standby has paused the topology. The deposed leader confirms no command, sends no plan and no stop,
    writes neither plan nor report, and ends.
    """
    location = leader_of(1)
    first, second, executor = (run.peer(location) for _ in range(3))
    first.register(1)
    second.register(2)
    first.plan()
    second.plan()
    executor.send(Envelope(executor_hello=pb.ExecutorHello(container_id=1, attempt=1)))
    executor.send(Envelope(status_request=pb.StatusRequest(request_id=1)))
    executor.expect("status_reply")
    with run.client(location) as client:
        client.change_state("running", 5.0)  # no change, but the plan is written and sent again
        first.plan()
        second.plan()
        os.kill(location.pid, signal.SIGSTOP)
        for state in ("killed", "running"):
            with pytest.raises(UnreachableError):
                client.change_state(state, 0.2)
        for task_id in (1, 2, 3):
            first.send(Envelope(task_report=end_of(task_id)))
        run.state.delete(NodeKind.TMANAGER_LOCATION, "wc")  # as a store does at the end of a lease
        successor = leader_of(2)
        with run.client(successor) as other:
            other.change_state("paused", 5.0)
            before = run.state.get(NodeKind.PHYSICAL_PLAN, "wc")
            os.kill(location.pid, signal.SIGCONT)
            assert run.processes[0].wait(10.0) == EXIT_TEMPORARY
            assert run.state.get(NodeKind.PHYSICAL_PLAN, "wc") == before
            assert run.state.get(NodeKind.REPORT, "wc") is None
            status = other.status(5.0)
            assert (status.state, status.leader and status.leader.pid) == ("paused", successor.pid)
    for peer in (first, second, executor):
        sent = [parse_control(frame) for frame in iter(peer.channel.receive, None)]
        assert {body_of(each) for each in sent} <= {"task_report_seen"}
        assert {each.epoch for each in sent} <= {1}, "receivers refuse messages of a former epoch"


def test_a_hello_reports_the_losses_of_a_stream_manager(
    run: Run, leader_of: Callable[[int], TManagerLocation], definition: TopologyDefinition
) -> None:
    """The former leader may have been the only one that knew of a loss. A handled loss needs no other restore."""
    config = {**definition.config, TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE}
    run.state.set(NodeKind.TOPOLOGY, "wc", encode_plan(replace(definition, config=config)))
    peer = run.peer(leader_of(1))
    peer.register(1, losses=2)
    peer.register(2)
    plan = peer.plan()
    while plan.checkpoints is None or plan.checkpoints.restores == 0:
        plan = peer.plan()
    assert plan.checkpoints.losses == (HandledLosses(1, 1, 2), HandledLosses(2, 1, 0))


def test_commands_are_answered(run: Run, leader_of: Callable[[int], TManagerLocation]) -> None:
    """The commands are status, pause (first refused, with the reason) and kill."""
    location = leader_of(1)
    with run.client(location) as client:
        status = client.status(5.0)
        assert (status.topology_id, status.plan_version, len(status.tasks)) == ("wc-1", 0, 3)
        with pytest.raises(HeronError, match="is starting, it cannot become paused"):
            client.change_state("paused", 5.0)
        peer, second = run.peer(location), run.peer(location)
        peer.register(1)
        second.register(2)
        peer.plan()
        client.change_state("paused", 5.0)
        assert peer.plan().state.value == "paused"
        client.change_state("killed", 5.0)
        assert client.status(5.0).state == "killed"


def test_each_key_allows_only_its_own_requests(run: Run, leader_of: Callable[[int], TManagerLocation]) -> None:
    """A read-only key cannot change the state, and a command cannot act as a process of the topology."""
    location = leader_of(1)
    with run.client(location, ClientKind.READER) as reader:
        assert reader.status(5.0).topology_id == "wc-1"
        with pytest.raises(HeronError, match="not for the topology's read-only key; use its control key"):
            reader.change_state("killed", 5.0)
        assert reader.status(5.0).state == "running"
    for kind in (ClientKind.READER, ClientKind.CONTROL):
        intruder = Peer(run.sockets, location, run.keys.connecting_as(kind))
        intruder.register(1)
        refusal = intruder.expect("refused").refused.reason
        assert refusal == f"stmgr_hello is only for the topology's own processes, not for its {kind.value} key"
    strange = new_keys()
    for keys, why in (
        (strange.connecting_as(ClientKind.CONTROL), "the process that listens there has other keys"),
        (replace(run.keys, control=strange.control).connecting_as(ClientKind.CONTROL), "it does not know this key"),
    ):
        with TManagerClient(location.endpoint, keys) as stranger, pytest.raises(AccessError, match=why):
            stranger.change_state("killed", 5.0)
    with run.client(location) as control:
        control.change_state("killed", 5.0)


def test_invalid_frames_are_refused(run: Run, leader_of: Callable[[int], TManagerLocation]) -> None:
    """A garbled frame is refused with a reason, and the next valid frame is answered."""
    location = leader_of(1)
    channel = run.peer(location).channel
    for frame in (b"", b"x", b"\x00" * 64, control_frame(Envelope(plan=pb.Plan(version=1)))):
        channel.send(frame)
        assert channel.wait(5.0)
        assert body_of(parse_control(channel.receive() or b"")) == "refused"
    peer = run.peer(location)
    peer.register(9)
    assert "container 9 is not in packing plan" in peer.expect("refused").refused.reason
    with run.client(location) as client:
        assert client.status(5.0).state == "running"


@pytest.mark.matrix
def test_a_topology_that_was_submitted_deactivated_starts_paused(
    run: Run, leader_of: Callable[[int], TManagerLocation]
) -> None:
    """Its first plan is paused. A later change of state survives the topology manager."""
    state = ExecutionState("wc", "wc-1", 1.5, "me", "here", "local", "", "/", "/", attached=False, deactivated=True)
    run.state.set(NodeKind.EXECUTION_STATE, "wc", encode_execution_state(state))
    location = leader_of(1)
    first, second = run.peer(location), run.peer(location)
    with run.client(location) as client:
        assert (client.status(5.0).state, client.status(5.0).started_at_s) == ("paused", 1.5)
        first.register(1)
        second.register(2)
        assert first.plan().state.value == "paused"
        client.change_state("running", 5.0)
        assert first.plan().state.value == "running"
    os.kill(location.pid, signal.SIGKILL)
    with run.client(leader_of(2)) as client:
        assert client.status(5.0).state == "running"


@pytest.mark.matrix
def test_processes_and_metrics_are_reported(run: Run, leader_of: Callable[[int], TManagerLocation]) -> None:
    """A client with the read-only key gets the reports of executors and metrics managers."""
    location = leader_of(1)
    executor = run.peer(location)
    executor.send(Envelope(executor_hello=pb.ExecutorHello(container_id=2, attempt=2, pid=7, host="here")))
    started = pb.ProcessReport(
        container_id=2, process="count-3", task_id=3, incarnation=2 << 16, phase=pb.PROCESS_PHASE_STARTED, pid=8
    )
    executor.send(Envelope(process_report=started))
    for at_s, count in ((100.0, 10.0), (102.0, 30.0)):
        metric = pb.Metric(name="execute-count", kind="counter", unit="tuples", value=count)
        record = pb.MetricsPublish(
            container_id=2,
            process="count-3",
            incarnation=2 << 16,
            component="count",
            task_id=3,
            at_s=at_s,
            metrics=[metric],
        )
        executor.send(Envelope(metrics_publish=record))
    executor.send(Envelope(status_request=pb.StatusRequest(request_id=1)))
    executor.expect("status_reply")  # all messages have arrived
    with run.client(location, ClientKind.READER) as client:
        processes = client.status(5.0).processes
        assert [(each.process, each.state, each.pid, each.host) for each in processes] == [
            ("executor", "running", 7, "here"),
            ("count-3", "running", 8, "here"),
        ]
        (row,) = client.metrics("count", 0, by_task=True, timeout_s=5.0)
        assert (row.task_id, row.name, row.value, row.rate_per_s) == (3, "execute-count", 30.0, 10.0)
        with pytest.raises(RefusedError, match=r"component 'cuont' is unknown \(nearest: 'count'\)"):
            client.metrics("cuont", 0, by_task=True, timeout_s=5.0)
        with pytest.raises(RefusedError, match="task 1 is not of component 'count'; its tasks: 2, 3"):
            client.metrics("count", 1, by_task=True, timeout_s=5.0)


def test_a_change_is_confirmed_after_it_is_written(run: Run, leader_of: Callable[[int], TManagerLocation]) -> None:
    """A pause that is only in memory would be lost with the topology manager."""
    location = leader_of(1)
    first, second = run.peer(location), run.peer(location)
    first.register(1)
    second.register(2)
    first.plan()
    plans = run.folder / "state" / NodeKind.PHYSICAL_PLAN.value
    plans.rename(away := run.folder / "away")
    plans.write_bytes(b"")  # no folder can be made there
    with run.client(location) as client:
        with pytest.raises(UnreachableError, match=r"nothing came within 0\.5 s"):
            client.change_state("paused", 0.5)
        (error,) = client.status(5.0).errors
        assert error.startswith("physical plan 2 cannot be written, next attempt in 0.5 s: ")
        (back := run.folder / "back").symlink_to(away)
        back.rename(plans)  # atomically, because the topology manager would create a missing folder
        assert first.plan().state.value == "paused"
        client.change_state("paused", 5.0)
        assert client.status(5.0).errors == (), "the error is gone after the write"
    node = run.state.get(NodeKind.PHYSICAL_PLAN, "wc")
    assert node is not None
    assert decode_physical_plan(node.value, "state").state.value == "paused"


@pytest.mark.matrix
def test_an_executor_that_registers_after_the_end_is_stopped(
    run: Run, leader_of: Callable[[int], TManagerLocation]
) -> None:
    """Its container restarted while the topology ended. A new leader stops it too."""
    location = leader_of(1)
    with run.client(location) as client:
        client.change_state("killed", 5.0)
    os.kill(location.pid, signal.SIGKILL)
    successor = leader_of(2)
    late = run.peer(successor)
    late.send(Envelope(executor_hello=pb.ExecutorHello(container_id=2, attempt=2)))
    assert late.expect("stop").stop.reason == "the topology is killed"


@pytest.mark.parametrize(
    "damage", [b"{", *(pytest.param(each, marks=pytest.mark.matrix) for each in (b"", b"by hand"))]
)
def test_unreadable_nodes_are_reported_and_replaced(
    run: Run, leader_of: Callable[[int], TManagerLocation], damage: bytes
) -> None:
    """A damaged plan, report or execution state must not prevent a takeover."""
    state = run.folder / "state"
    for kind in ("pplans", "reports", "executionstate"):
        (state / kind).mkdir(exist_ok=True)
        (state / kind / "wc").write_bytes(damage)
    location = leader_of(1)
    peers = [run.peer(location) for _ in (1, 2)]
    for number, peer in enumerate(peers, 1):
        peer.register(number)
    assert peers[0].plan().version == 1
    with run.client(location) as client:
        errors = client.status(10.0).errors
    for kind in ("pplans", "reports", "executionstate"):
        assert any(f"a state node is not used: {state}/{kind}/wc: " in error for error in errors), errors
    assert run.state.get(NodeKind.PHYSICAL_PLAN, "wc"), "the plan is written again"


def test_a_question_about_a_task_goes_to_its_stream_manager(
    run: Run, leader_of: Callable[[int], TManagerLocation]
) -> None:
    """The read-only key may ask. A silent task is explained with its process, an unknown one is refused."""
    location = leader_of(1)
    first, second, executor = run.peer(location), run.peer(location), run.peer(location)
    first.register(1)
    second.register(2)
    executor.send(Envelope(executor_hello=pb.ExecutorHello(container_id=2, host="there")))
    started = pb.ProcessReport(container_id=2, process="count-3", task_id=3, phase=pb.PROCESS_PHASE_STARTED, pid=77)
    executor.send(Envelope(process_report=started))
    executor.expect("container_tasks")
    with run.client(location, ClientKind.READER) as client, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.stacks, "count", 3, 5.0)
        question = second.expect("stack_request").stack_request
        stacks = TaskStacks("wc", "count", 3, 2, 1, 77, "there", 0.0, ())
        second.send(Envelope(task_answer=pb.TaskAnswer(request_id=question.request_id, document=encode_stacks(stacks))))
        assert asked.result() == stacks

        asked = pool.submit(client.stacks, "", 3, 5.0)
        question = second.expect("stack_request").stack_request
        second.send(Envelope(task_answer=pb.TaskAnswer(request_id=question.request_id, refusal="it is busy")))
        with pytest.raises(RefusedError, match="it is busy"):
            asked.result()

        assert client.stacks("count", 3, 0.5) == (
            "task count/3 has not answered within 0.4 s: its process (pid 77 on there) is stopped, gets no "
            "processor, or native code holds the interpreter lock"
        )
        second.expect("stack_request")  # of the question that was given up
        with pytest.raises(RefusedError, match="task 9 is unknown; known: 1, 2, 3"):
            client.stacks("", 9, 1.0)
        for seconds in (0.0, -1.0, 301.0):
            with pytest.raises(RefusedError, match=f"a profile of {seconds:g} s is not above 0 and at most 300 s"):
                client.profile("", 3, seconds, 1.0)
            with pytest.raises(RefusedError, match=f"a sample of {seconds:g} s is not above 0 and at most 300 s"):
                client.tuples("", 3, 10, seconds, 1.0)
        for seconds in (-1.0, 301.0):
            with pytest.raises(RefusedError, match=f"an observation of memory of {seconds:g} s is not above 0"):
                client.memory("", 3, seconds, 1.0)
        for number in (0, 101):
            with pytest.raises(RefusedError, match=f"a sample of {number} tuples is not of 1 to 100"):
                client.tuples("", 3, number, 1.0, 1.0)
        with pytest.raises(RefusedError, match=r"update wc --runtime-config topology.inspect.tuples=true` allows it"):
            client.tuples("", 3, 10, 1.0, 1.0)
        with pytest.raises(UsageError, match="a profile of nan s has no end"):
            client.profile("", 3, math.nan, 1.0)
        with pytest.raises(UsageError, match="an observation of memory of inf s has no end"):
            client.memory("", 3, math.inf, 1.0)
        with pytest.raises(RefusedError, match="a wait of 61 s is not above 0 and at most 60 s"):
            client.stacks("", 3, 63.0)

        asked = pool.submit(client.stacks, "", 3, 5.0)
        second.expect("stack_request")
        second.register(2)
        assert asked.result() == "the stream manager of container 2 was connected again meanwhile"
