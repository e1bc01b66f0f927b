"""What the servers share that are written from contracts: containers as processes, and faults by order of a test."""

from __future__ import annotations

import http.client
import json
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from heron_testing.waiting import Eventually
from heron_testing_servers.container_processes import (
    Container,
    ContainerEnd,
    ContainerProcesses,
    end_containers,
    shell,
)
from heron_testing_servers.contract_server import ContractServer
from heron_testing_servers.http_service import Fault

pytestmark = pytest.mark.leaks_nothing


class Running:
    """The containers of a server that is this process, with the ends that it has heard of."""

    def __init__(self, folder: Path) -> None:
        self.ends: queue.Queue[tuple[str, ContainerEnd]] = queue.Queue()
        self.containers = ContainerProcesses(folder, os.getpid(), self._ended)

    def run(self, name: str, command: str, **options: bool) -> Container:
        return self.containers.start(name, shell(command), {"GREETING": "hello"}, **options)

    def end(self) -> tuple[str, ContainerEnd]:
        return self.ends.get(timeout=60)

    def _ended(self, container: Container, end: ContainerEnd) -> None:
        self.ends.put((container.name, end))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Containers that end with the test."""
    yield Running(tmp_path / "containers")
    end_containers(tmp_path / "containers")


def is_running(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def test_a_container_has_its_environment_folder_output_and_exit_code(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster gives a task no variable of the cluster's own processes."""
    monkeypatch.setenv("OF_THE_SERVER", "secret")
    container = running.run("one", "echo $GREETING $OF_THE_SERVER; pwd; echo lost >&2; exit 3")
    name, end = running.end()
    assert (name, end.exit_code, end.signal, end.code) == ("one", 3, 0, 3)
    assert container.tail() == ["hello", str(container.sandbox)]
    assert container.tail("stderr") == ["lost"]
    assert container.tail(lines=1) == [str(container.sandbox)]
    assert container.end == end


def test_a_command_that_is_missing_ends_as_in_a_shell(running: Running) -> None:
    """The exit code is 127, and stderr has the reason."""
    container = running.containers.start("one", ["/no/such"], {})
    assert running.end()[1].exit_code == 127
    assert "cannot start /no/such" in container.tail("stderr")[0]


def test_stop_sends_sigterm_and_then_sigkill(running: Running, eventually: Eventually) -> None:
    """A command that ends by itself has its own code; one that refuses is killed after the grace time."""
    polite = running.run("polite", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done")
    rude = running.run("rude", "trap '' TERM; echo ready; while :; do sleep 60; done")
    for each in (polite, rude):
        eventually(each.tail, what="the trap is set")
    polite.stop(60.0)
    assert running.end() == ("polite", polite.end)
    assert polite.end is not None
    assert polite.end.code == 7
    rude.stop(60.0)
    rude.stop(0.01)
    assert running.end()[1].code == 137


def test_sigterm_goes_to_the_command_or_to_its_group(running: Running, eventually: Eventually) -> None:
    """Docker signals the first process only; Mesos signals all."""
    loop = "(trap 'echo child' TERM; echo ready; while :; do sleep 0.02; done) & trap 'sleep 0.3; exit' TERM; wait"
    for name, group in (("docker", False), ("mesos", True)):
        container = running.run(name, loop, stop_group=group)
        eventually(container.tail, what="the trap is set")
        container.stop(60.0)
        running.end()
        assert ("child" in container.tail()) == group


def test_the_end_is_that_of_all_processes(running: Running, eventually: Eventually) -> None:
    """A process in a session of its own ends with its container, as in a cgroup."""
    container = running.run("one", "setsid sh -c 'echo $$; exec sleep 600' & sleep 600")
    eventually(container.tail, what="the other session has begun")
    other = int(container.tail()[0])
    container.kill()
    assert running.end()[1] == container.end
    assert container.end is not None
    assert container.end.signal == signal.SIGKILL
    assert not is_running(other)


def test_a_restarted_server_finds_its_containers(running: Running, tmp_path: Path, eventually: Eventually) -> None:
    """The new server hears of the end, also of a container that ended while no server ran."""
    ended = running.run("ended", "exit 5")
    running.end()
    going = running.run("going", "sleep 600")
    eventually(lambda: going.pid, what="the command has started")
    other = Running(tmp_path / "containers")
    assert [each.name for each in other.containers.restore()] == ["ended", "going"]
    assert other.end() == ("ended", ended.end)
    assert other.containers.running() == {"going": going.pid}
    found = other.containers.get("going")
    assert found is not None
    found.stop(0.0)
    assert other.end()[0] == "going"


def test_containers_end_with_their_owner(tmp_path: Path, eventually: Eventually) -> None:
    """A killed run of tests leaves no process."""
    script = (
        "import os, pathlib, signal, sys\n"
        "from heron_testing.waiting import wait_until\n"
        "from heron_testing_servers.container_processes import ContainerProcesses, shell\n"
        "containers = ContainerProcesses(pathlib.Path(sys.argv[1]), os.getpid(), print)\n"
        "container = containers.start('one', shell(\"trap '' TERM; sleep 600\"), {})\n"
        "wait_until(lambda: container.pid)\n"
        "print(container.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    pid = int(ran.stdout)
    eventually(lambda: not is_running(pid), what="the container is gone")


class Counting(ContractServer):
    """A server that counts its PUTs."""

    def __init__(self, folder: Path) -> None:
        super().__init__("package.counting", folder)


SERVER = """
import sys
from pathlib import Path
from heron_testing_servers.http_service import Answer, HttpService, RequestFaults
folder = Path(sys.argv[1])

def respond(request):
    if request.path == "/stream":
        return Answer(body=iter([b"one", b"two"]))
    with (folder / "puts").open("a") as file:
        file.write(request.path)
    return Answer.json({"path": request.path, "query": request.query}, 201)

controls = {"containers": lambda _: {"one": 1}}
HttpService(int(sys.argv[2]), respond, RequestFaults(folder / "faults.json"), controls).run()
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ContractServer]:
    """A small server, in a package of its own."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "counting.py").write_text(SERVER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Counting(tmp_path)
    made.start()
    yield made
    made.kill()


def test_faults_refuse_delay_and_drop_what_a_test_names(server: ContractServer, tmp_path: Path) -> None:
    """A dropped answer is one whose work was done; a refused request has no effect."""
    for fault in (
        Fault("PUT /a", "refuse", status=429, body='{"message": "later"}'),
        Fault("PUT /a", "drop", count=2),
        Fault("PUT /.*", "delay", delay_s=0.2),
    ):
        server.fault(fault)
    refused = httpx.put(f"{server.url}/a")
    assert (refused.status_code, refused.json()) == (429, {"message": "later"})
    assert not (tmp_path / "puts").exists()
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.put(f"{server.url}/a")
    server.process.kill()
    server.start()
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.put(f"{server.url}/a")
    slow = httpx.put(f"{server.url}/b?c=d")
    assert slow.elapsed.total_seconds() >= 0.2
    assert slow.json() == {"path": "/b", "query": {"c": "d"}}
    assert (tmp_path / "puts").read_text() == "/a/a/b"
    assert server.faults() == []
    server.fault(Fault("GET /", "drop"))
    server.clear_faults()
    assert server.faults() == []
    with pytest.raises(OSError, match="400"):
        server.control("POST", "faults", {"operation": "GET /", "action": "explode"})


def test_answers_are_streams_and_controls(server: ContractServer) -> None:
    """A stream sends each part at once; a connection serves several requests."""
    connection = http.client.HTTPConnection(*server.address)
    for _ in range(2):
        connection.request("GET", "/stream")
        assert connection.getresponse().read() == b"onetwo"
    connection.request("GET", "/heron-testing/containers")
    assert json.load(connection.getresponse()) == {"one": 1}
    connection.close()
    assert server.containers() == {"one": 1}
