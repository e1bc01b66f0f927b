"""The executor as a process, with stand-ins for its children: start, restart, stop, cleanup."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from heron.driver_kit.loading import open_driver
from heron.driver_kit.parent_process import EXIT_TEMPORARY
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import executor_endpoint
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.keys import new_keys
from heron.ipc.socket import SocketContext
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import pack
from heron.kernel.role_spec import write_spec
from heron.planner.packing_plan import InstancePlan, PackingPlan
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import Hold, NodeKind, StateManager
from heron.spi.uploader import Uploader
from heron.state_nodes.plans import encode_plan, encode_tasks
from heron.state_nodes.tmanager_location import TManagerLocation, encode_tmanager_location
from heron.state_nodes.topology_keys import encode_keys
from heron_testing.waiting import Eventually

NAMES = ("stmgr", "word-1", "count-2", "metricsmgr")


LAUNCHER = """
import sys
from pathlib import Path
from heron.executor.container_run import SIGNALS, execute
from heron.kernel.role_process import run_role

from heron.kernel.role_spec import read_spec
from heron.spi.scheduler import ContainerSpec

def command(role, spec_file):
    return sys.executable, sys.argv[2], role, str(spec_file)

def main(signals):
    return execute(read_spec(Path(sys.argv[1]), ContainerSpec), signals, command)

run_role("executor", main, SIGNALS)
"""

TASK = """
import signal, sys
from heron.driver_kit.child_processes import spawn

spawn([sys.executable, *sys.argv[1:]], stdout=None, death_signal=signal.SIGTERM)
signal.pause()
"""

STAND_IN = """
import json, os, signal, sys
from pathlib import Path
from heron.driver_kit.parent_process import END_NOTE, bind_to_parent

bind_to_parent()
role, spec_file = sys.argv[1], Path(sys.argv[2])
name = spec_file.stem
folder = Path(__file__).parent
behaviour = folder / f"{name}.behaviour"
does = behaviour.read_text() if behaviour.exists() else ""
stop = []
signal.signal(signal.SIGTERM, (lambda *_: None) if does == "stubborn" else (lambda *_: stop.append(1)))
with (folder / "starts").open("a") as starts:
    starts.write(f"{name} {os.getpid()} {json.loads(spec_file.read_text())['incarnation']}\\n")
if does == "talk":
    print("x" * 5000, flush=True)
    print("next", flush=True)
if does == "no-init":
    print("ValueError: no such file", file=sys.stderr)
    spec_file.with_suffix(END_NOTE).touch()
    sys.exit(3)
if does == "die":
    sys.exit(7)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
while not stop:
    if does == "stubborn":
        signal.sigwait([signal.SIGUSR1])
    elif signal.sigwait([signal.SIGTERM]):
        break
with (folder / "stops").open("a") as stops:
    stops.write(f"{name}\\n")
"""


@dataclass
class Container:
    """One container under test: its spec, its state manager, and the files that its stand-ins write."""

    folder: Path
    spec: ContainerSpec
    state: StateManager
    executor: subprocess.Popen[bytes] | None = field(default=None)

    def start(self, *above: str) -> subprocess.Popen[bytes]:
        """Starts the executor, or with `above` a program that starts it."""
        spec_file = self.folder / "container.json"
        write_spec(spec_file, self.spec)
        launcher = self.folder / "launcher.py"
        launcher.write_text(LAUNCHER)
        stand_in = self.folder / "stand_in.py"
        stand_in.write_text(STAND_IN)
        self.executor = subprocess.Popen([sys.executable, *above, str(launcher), str(spec_file), str(stand_in)])
        return self.executor

    def behave(self, name: str, how: str) -> None:
        """Sets what the process does from its next start: `stubborn`, `die`, `no-init`, `talk`, or "" for nothing."""
        (self.folder / f"{name}.behaviour").write_text(how)

    def starts(self, name: str) -> list[tuple[int, int]]:
        """``(pid, incarnation)`` of each start of this process so far."""
        lines = self._lines("starts")
        return [(int(pid), int(number)) for each, pid, number in map(str.split, lines) if each == name]

    def stops(self) -> list[str]:
        """The processes that stopped on request, in order."""
        return self._lines("stops")

    def _lines(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []


class FakeTopologyManager:
    """The other end of the executor's channel; remembers the messages that it receives."""

    def __init__(self, container: Container, epoch_offset: int = 0) -> None:
        self._sockets = SocketContext(max_frame_bytes=-1)
        endpoint = f"ipc://{container.folder}/t{epoch_offset}"
        self.hub = self._sockets.hub(endpoint)
        location = TManagerLocation(endpoint, container.spec.topology_id, os.getpid(), "here")
        self.hold: Hold = container.state.hold(NodeKind.TMANAGER_LOCATION, "wc", encode_tmanager_location(location))
        self.received: list[Envelope] = []
        self.executor = b""

    def read(self) -> list[Envelope]:
        """All messages so far."""
        while (message := self.hub.receive()) is not None:
            self.executor = message[0]
            self.received.append(parse_control(message[1]))
        return self.received

    def reports(self) -> list[tuple[str, int, str]]:
        """``(process, phase, reason)`` of each process report so far."""
        found = [each.process_report for each in self.read() if body_of(each) == "process_report"]
        return [(report.process, report.phase, report.reason) for report in found]

    def set_tasks(self, *tasks: InstancePlan) -> None:
        """Sends the tasks of the container."""
        message = Envelope(epoch=self.hold.epoch, container_tasks=pb.ContainerTasks(document=encode_tasks(tasks)))
        self.hub.send(self.executor, control_frame(message))

    def stop(self, epoch: int) -> None:
        """Orders the executor to stop."""
        self.hub.send(self.executor, control_frame(Envelope(epoch=epoch, stop=pb.Stop(reason="over"))))

    def close(self) -> None:
        """Releases the leadership."""
        self.hold.release()
        self._sockets.close()


@pytest.fixture
def container(tmp_path: Path, packing: PackingPlan) -> Iterator[Container]:
    """Container 1, not started yet."""
    statemgr = DriverRef(
        "statemgr",
        "localfs",
        "heron_statemgr_localfs.state_manager:LocalFsStateManager",
        {"root": str(tmp_path / "state")},
    )
    uploader = DriverRef(
        "uploader",
        "localfs",
        "heron_uploader_localfs.uploader:LocalfsUploader",
        {"root": str(tmp_path / "packages")},
    )
    state = open_driver(statemgr, StateManager)
    state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(packing))
    state.set(NodeKind.KEYS, "wc", encode_keys(new_keys()))
    source = tmp_path / "author"
    source.mkdir()
    (source / "wc.py").write_text("WORDS = 1\n")
    pack(source, ["wc.py"], PackageManifest("wc", "wc", {}), tmp_path / "package.tar.gz")
    uri = open_driver(uploader, Uploader).upload(tmp_path / "package.tar.gz", "wc")
    (tmp_path / "log").mkdir()
    (tmp_path / "run").mkdir(mode=0o700)
    spec = ContainerSpec(
        topology="wc",
        topology_id="wc-1",
        container_id=1,
        attempt=1,
        run_dir=str(tmp_path / "run"),
        log_dir=str(tmp_path / "log"),
        package_uri=uri,
        statemgr=statemgr,
        uploader=uploader,
        settings={"heron.executor.restart.backoff.s": 0.01},
    )
    found = Container(tmp_path, spec, state)
    yield found
    state.close()
    if found.executor is not None and found.executor.poll() is None:
        found.executor.kill()
        found.executor.wait()


@pytest.fixture
def stopping_container(container: Container) -> Container:
    """The same, in a topology that stops on failure."""
    container.spec = replace(container.spec, settings={**container.spec.settings, "topology.on.failure": "stop"})
    return container


@pytest.fixture
def tmanager(container: Container) -> Iterator[FakeTopologyManager]:
    """The leading topology manager."""
    found = FakeTopologyManager(container)
    yield found
    found.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pids(container: Container) -> list[int]:
    return [container.starts(name)[-1][0] for name in NAMES]


def _is_kill(report: tuple[str, int, str]) -> bool:
    """Whether it reports the death of a task, and that the executor did not kill it."""
    process, phase, reason = report
    return (process, phase) == ("word-1", pb.PROCESS_PHASE_DIED) and reason.startswith(
        "killed by SIGKILL (not by its executor"
    )


def all_started(container: Container) -> bool:
    return all(container.starts(name) for name in NAMES)


def test_sigterm_stops_the_children_in_order_and_removes_the_run_directory(
    container: Container, eventually: Eventually
) -> None:
    """Every end of `heron run` leads to it."""
    executor = container.start()
    eventually(lambda: all_started(container))
    assert (Path(container.spec.run_dir) / "c1" / "pkg" / "wc.py").is_file()
    executor.send_signal(signal.SIGTERM)
    assert executor.wait(5.0) == 143
    stops = container.stops()
    assert set(stops[:2]) == {"word-1", "count-2"}
    assert stops[2:] == ["stmgr", "metricsmgr"]
    assert not Path(container.spec.run_dir).exists()
    assert not any(map(alive, pids(container)))


def test_sigterm_ends_an_executor_that_waits_for_its_package(container: Container, eventually: Eventually) -> None:
    """A store may answer late, and the container may have been started elsewhere meanwhile."""
    (package,) = (container.folder / "packages").iterdir()
    package.unlink()
    os.mkfifo(package, 0o600)
    executor = container.start()
    writer = eventually(lambda: opened_to_write(package))
    executor.send_signal(signal.SIGTERM)
    assert executor.wait(5.0) == 143
    os.close(writer)
    assert not container.starts("stmgr")
    assert not Path(container.spec.run_dir).exists()


def opened_to_write(fifo: Path) -> int:
    """The writing end of the FIFO if a reader has opened it, and 0 otherwise; the reader waits while it is open."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return 0


@pytest.mark.matrix
def test_an_executor_whose_parent_was_killed_removes_the_files_of_the_parent(
    container: Container, eventually: Eventually
) -> None:
    """On a worker of Spark these are logs and the record of the running container."""
    run_dir = Path(container.spec.run_dir)
    task = container.start("-c", TASK)
    eventually(lambda: all_started(container))
    (run_dir / "c1.logs").mkdir()
    for name in ("c1.logs/executor-1.log", "c1.executor", "c1.json"):
        (run_dir / name).touch()
    task.kill()
    task.wait()
    eventually(lambda: not run_dir.exists(), 8.0, "the run directory is gone")
    assert not any(map(alive, pids(container)))


@pytest.mark.matrix
@pytest.mark.parametrize(("folder", "stays"), [("run", False), ("job", True)])
def test_a_spec_file_in_the_run_directory_is_removed_when_read(container: Container, folder: str, stays: bool) -> None:
    """It was written for one start and contains secrets. A spec file in a job folder stays for the next start."""
    spec_file = container.folder / folder / "c1.json"
    spec_file.parent.mkdir(exist_ok=True)
    write_spec(spec_file, container.spec)
    container.state.delete(NodeKind.PACKING_PLAN, "wc")
    subprocess.run([sys.executable, "-m", "heron.executor.main", str(spec_file)], check=False, capture_output=True)
    assert "has no packing plan" in (container.folder / "run" / "c1.error").read_text()
    assert spec_file.exists() == stays


def test_no_child_outlives_a_killed_executor(container: Container, eventually: Eventually) -> None:
    """No code of the executor runs after kill -9; the parent-death signal of the kernel must end the children."""
    executor = container.start()
    eventually(lambda: all_started(container))
    executor.kill()
    executor.wait()
    eventually(lambda: not any(map(alive, pids(container))), 5.0, "children left")


def test_only_a_killed_child_restarts_with_a_greater_incarnation(
    container: Container, tmanager: FakeTopologyManager, eventually: Eventually
) -> None:
    """Processes restart independently, and the topology manager receives the reason."""
    container.start()
    eventually(lambda: all_started(container))
    pid, first = container.starts("word-1")[0]
    eventually(lambda: ("word-1", pb.PROCESS_PHASE_STARTED, "") in tmanager.reports())
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(container.starts("word-1")) == 2)
    assert container.starts("word-1")[1][1] > first
    assert len(container.starts("stmgr")) == 1
    eventually(lambda: any(_is_kill(each) for each in tmanager.reports()))


def test_stop_ends_the_container_for_good_and_is_confirmed(
    container: Container, tmanager: FakeTopologyManager, eventually: Eventually
) -> None:
    """Exit code 0 means that the scheduler must not start the container again."""
    executor = container.start()
    eventually(lambda: all_started(container))
    eventually(tmanager.read)
    tmanager.stop(tmanager.hold.epoch)
    assert executor.wait(5.0) == 0
    assert any(body_of(each) == "done" for each in tmanager.read())
    assert sorted(container.stops()) == sorted(NAMES)


@pytest.mark.matrix
def test_a_stop_order_of_a_deposed_leader_is_refused(
    container: Container, packing: PackingPlan, tmanager: FakeTopologyManager, eventually: Eventually
) -> None:
    """An order with an older epoch has no effect: the executor carries out the next one."""
    container.start()
    eventually(lambda: all_started(container) and any(body_of(each) == "executor_hello" for each in tmanager.read()))
    tmanager.stop(tmanager.hold.epoch - 1)
    tmanager.set_tasks(packing.containers[0].instances[0])
    eventually(lambda: not alive(container.starts("count-2")[0][0]))
    assert list(container.stops()) == ["count-2"]


@pytest.mark.matrix
def test_a_new_leader_receives_all_reports_again(
    container: Container, tmanager: FakeTopologyManager, eventually: Eventually
) -> None:
    """It has no memory of its predecessor."""
    container.start()
    eventually(lambda: len(tmanager.reports()) >= len(NAMES))
    tmanager.close()
    successor = FakeTopologyManager(container, 1)
    try:
        eventually(lambda: {process for process, _, _ in successor.reports()} == set(NAMES))
        assert body_of(successor.received[0]) == "executor_hello"
    finally:
        successor.close()


@pytest.mark.matrix
def test_children_receive_the_location_of_the_topology_manager(
    container: Container, tmanager: FakeTopologyManager, eventually: Eventually
) -> None:
    """Only the executor watches the state manager; its children ask it."""
    container.start()
    eventually(tmanager.read)
    sockets = SocketContext(max_frame_bytes=-1)
    child = sockets.client_of(executor_endpoint(Path(container.spec.run_dir), 1))
    child.send(control_frame(Envelope(location_request=pb.LocationRequest(process="stmgr"))))
    assert child.wait(5.0)
    location = parse_control(child.receive() or b"").tmanager_location
    assert location.epoch == tmanager.hold.epoch
    tmanager.close()
    assert child.wait(5.0)
    assert not parse_control(child.receive() or b"").tmanager_location.endpoint
    sockets.close()


def test_user_code_that_cannot_start_is_given_up_with_its_last_line(
    stopping_container: Container, tmanager: FakeTopologyManager, eventually: Eventually
) -> None:
    """`heron run` shows this line; a restart would only delay it."""
    stopping_container.behave("count-2", "no-init")
    stopping_container.start()
    wanted = ("count-2", pb.PROCESS_PHASE_GIVEN_UP, "exit code 3: ValueError: no such file")
    eventually(lambda: wanted in tmanager.reports())
    assert len(stopping_container.starts("count-2")) == 1


@pytest.mark.matrix
def test_the_output_of_a_child_is_limited(container: Container, eventually: Eventually) -> None:
    """A task that prints a line for each tuple must not fill the disk."""
    settings = {**container.spec.settings, "heron.executor.output.max.bytes": 4096}
    container.spec = replace(container.spec, settings=settings)
    container.behave("word-1", "talk")
    container.start()
    log = Path(container.spec.log_dir)
    eventually(lambda: (log / "word-1.out.1").exists() and (log / "word-1.out").read_text() == "next\n")
    assert (log / "word-1.out.1").read_text() == "x" * 5000 + "\n"


def test_a_child_that_ignores_sigterm_is_killed(container: Container, eventually: Eventually) -> None:
    """An executor must end within 5 s after SIGTERM, whatever user code does."""
    container.spec = replace(container.spec, settings={**container.spec.settings, "heron.executor.stop.grace.s": 1.0})
    container.behave("word-1", "stubborn")
    executor = container.start()
    eventually(lambda: all_started(container))
    executor.send_signal(signal.SIGTERM)
    assert executor.wait(5.0) == 143
    assert "word-1" not in container.stops()
    assert not any(map(alive, pids(container)))


def test_a_package_that_was_changed_is_refused_with_a_reason_for_the_scheduler(container: Container) -> None:
    """No file of it may run. The status of the scheduler shows the reason."""
    stored = next(Path(container.folder / "packages").rglob("*.gz"))
    stored.write_bytes(stored.read_bytes() + b"x")
    assert container.start().wait(10.0) == 1
    assert "SHA-256" in (Path(container.spec.run_dir) / "c1.error").read_text()
    assert not container.starts("stmgr")


@pytest.mark.matrix
@pytest.mark.parametrize(("kind", "lacks"), [(NodeKind.PACKING_PLAN, "no packing plan"), (NodeKind.KEYS, "no keys")])
def test_a_topology_without_a_packing_plan_or_keys_fails_with_a_reason(
    container: Container, kind: NodeKind, lacks: str
) -> None:
    """It was killed while the container restarted, for example."""
    container.state.delete(kind, "wc")
    assert container.start().wait(10.0) == EXIT_TEMPORARY
    assert lacks in (Path(container.spec.run_dir) / "c1.error").read_text()


def test_specs_of_children_stay_in_the_private_directory(container: Container, eventually: Eventually) -> None:
    """The directory has mode 0700 and each file 0600; the command line contains only the path."""
    container.spec = replace(container.spec, container_id=1, attempt=4)
    container.start()
    eventually(lambda: all_started(container))
    folder = Path(container.spec.run_dir) / "c1"
    assert folder.stat().st_mode & 0o777 == 0o700
    spec = json.loads((folder / "word-1.json").read_text())
    assert spec["incarnation"] == 4 * 65536
    assert (folder / "word-1.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("behaviour", [pytest.param("", marks=pytest.mark.matrix), "stubborn"])
def test_an_update_starts_added_tasks_and_stops_removed_ones(
    container: Container, tmanager: FakeTopologyManager, packing: PackingPlan, eventually: Eventually, behaviour: str
) -> None:
    """A removed task is not restarted, and is killed after the grace period; the other processes run on."""
    container.spec = replace(container.spec, settings={**container.spec.settings, "heron.executor.stop.grace.s": 0.5})
    container.behave("count-2", behaviour)
    executor = container.start()
    eventually(lambda: all_started(container) and len(tmanager.reports()) >= len(NAMES))
    word, count = packing.containers[0].instances
    for _ in range(2):
        tmanager.set_tasks(word, replace(count, task_id=4, component_index=2))
    eventually(lambda: ("count-4", pb.PROCESS_PHASE_STARTED, "") in tmanager.reports())
    eventually(lambda: not alive(container.starts("count-2")[0][0]))
    eventually(lambda: len(container.starts("count-4")) == 1)
    tmanager.stop(tmanager.hold.epoch)
    assert executor.wait(5.0) == 0
    assert ("count-2" in container.stops()) == (not behaviour)
    assert {name: len(container.starts(name)) for name in (*NAMES, "count-4")} == dict.fromkeys((*NAMES, "count-4"), 1)
    assert not [each for each in tmanager.reports() if each[1] == pb.PROCESS_PHASE_DIED]
