"""Hangs and silence of the driver, of its JVM and of a task. These tests need no Spark."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import msgspec
import psutil
import pytest

from heron.clock import monotonic_s
from heron.driver_kit.links import ClientKind, SocketContext, WatchedChannel, decode_keys, open_watched_channel
from heron.spi.scheduler import ContainerStatus
from heron_scheduler_spark.messages.task_messages import DriverCommand, Order, TaskHeartbeat, TaskHello, TaskMessage
from heron_scheduler_spark.scheduler import SparkScheduler
from heron_scheduler_spark.settings.options import SparkOptions
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, runs
from heron_testing.fake_executor import Alive
from heron_testing.waiting import wait_until

_SILENCE_S, _GRACE_S = 5.5, 0.5
_BACK_S = 30.0
_LATE_S = 2.0  # on a busy machine

pytestmark = pytest.mark.matrix  # each test starts a driver


class WithoutSpark(SparkScheduler):
    """Does not check Spark or Java before it starts."""

    supervisor: ClassVar[str] = "sparkless_supervisor"

    def refuse(self, job: object) -> None:
        pass


class SparklessJob:
    """A job of one container, and its processes."""

    def __init__(self, folder: Path, run_root: Path, task: str = "serve") -> None:
        self.folder = folder
        self.root = folder / "jobs"
        self.bench = Bench(folder, run_root)
        options = {"root": str(self.root), "executor": [*FAKE_EXECUTOR]}
        self.scheduler = WithoutSpark.open({**options, "stop_grace_s": _GRACE_S, "silence_s": _SILENCE_S})
        self.scheduler.schedule(self.bench.job("t", task))
        self.executor = self.bench.wait("t", 0)
        wait_until(lambda: self.status().running, _BACK_S, "the container is up")

    def status(self) -> ContainerStatus:
        (found,) = self.scheduler.status("t").containers
        return found

    def driver(self) -> psutil.Process:
        """Return the child of the supervisor."""
        written = json.loads((self.root / "t" / "processes.json").read_bytes())
        (driver,) = psutil.Process(int(written["supervisor"]["pid"])).children()
        return driver

    def task(self) -> psutil.Process:
        """Return the process that stands in for a Python worker."""
        (task,) = self.driver().children()
        return task

    def order(self) -> Order:
        """Return the order of the running task."""
        return msgspec.json.decode(self.task().cmdline()[-1], type=Order)

    def back(self, attempt: int = 2) -> Alive:
        """Wait for the executor of the next attempt and return it."""
        found = self.bench.wait("t", 0, attempt)
        wait_until(lambda: self.status().running, _BACK_S, "the container is up again")
        return found


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparklessJob]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("sparkless")))
    monkeypatch.setenv("HERON_TEST_FOLDER", str(tmp_path))
    with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
        made = SparklessJob(tmp_path, Path(run_root))
        yield made
        made.scheduler.kill("t")


def test_a_driver_that_hangs_is_killed_and_its_containers_come_back(job: SparklessJob) -> None:
    """The driver is stopped. The task ends its container before the supervisor gives the driver up."""
    driver = job.driver()
    stopped_s = monotonic_s()
    driver.suspend()
    wait_until(lambda: not runs(job.executor.pid), _SILENCE_S + _LATE_S, "the container has ended")
    options = SparkOptions(silence_s=_SILENCE_S, stop_grace_s=_GRACE_S)
    assert monotonic_s() - stopped_s >= options.task_silence_s - 1.0  # the last heartbeat was up to a second before
    assert driver.is_running(), "the task was quicker than the supervisor"
    status = job.status()
    assert not status.running
    assert "the Spark driver has sent nothing for" in status.last_error
    driver.wait(_SILENCE_S)
    job.back()
    assert job.driver() != driver


def test_a_jvm_that_pauses_ends_no_container(job: SparklessJob) -> None:
    """Heartbeats go on while it does not answer; a garbage collection may take as long."""
    hangs = job.folder / "jvm-hangs"
    hangs.touch()
    paused_s = monotonic_s()
    # Longer than a task waits for a message, and shorter than the limit of a JVM.
    wait_until(lambda: monotonic_s() - paused_s > 1.3 * _SILENCE_S, 2 * _SILENCE_S, "the pause is over")
    hangs.unlink()
    assert runs(job.executor.pid)
    status = job.status()
    assert (status.running, status.attempts) == (True, 1)


def test_a_jvm_that_hangs_is_killed_with_its_driver(job: SparklessJob) -> None:
    """It can start and end nothing. Until it is killed, running containers are shown as running."""
    driver = job.driver()
    hangs = job.folder / "jvm-hangs"
    hangs.touch()
    driver.wait(2 * _SILENCE_S + _LATE_S)
    hangs.unlink()
    wait_until(lambda: "its JVM has not answered for 11 s" in job.status().last_error, _BACK_S, "why")
    job.back()
    assert not runs(job.executor.pid)


def test_a_task_that_is_silent_is_over_before_its_container_starts_again(job: SparklessJob) -> None:
    """The task is stopped, and Spark cannot end it: the supervisor ends it."""
    task = job.task()
    task.suspend()
    wait_until(lambda: job.status().attempts == 2, _SILENCE_S + _BACK_S, "the next attempt")
    assert not runs(job.executor.pid)
    assert "sent nothing for 5.5 s" in job.status().last_error
    job.back()


def test_the_container_of_a_killed_task_ends_before_the_next_attempt(job: SparklessJob) -> None:
    """Spark reports the end of the task while the executor may still be ending."""
    job.task().kill()
    wait_until(lambda: job.status().attempts == 2, _BACK_S, "the next attempt")
    assert not runs(job.executor.pid)
    job.back()


def test_an_executor_that_spark_forgot_is_requested_again(job: SparklessJob) -> None:
    """Spark forgets a request that comes while it takes another executor away."""
    forgets = job.folder / "forgets"
    forgets.touch()
    job.task().kill()
    wait_until((job.folder / "forgotten").exists, _BACK_S, "it is forgotten")
    wait_until((job.folder / "asked").exists, _BACK_S, "it is requested once")
    assert not job.status().running
    forgets.unlink()
    job.back()


def test_the_containers_of_a_killed_driver_end_and_come_back(job: SparklessJob) -> None:
    """The status has the reason."""
    os.kill(job.driver().pid, signal.SIGKILL)
    job.back()
    assert "the Spark driver ended: killed by SIGKILL" in job.status().last_error
    assert not runs(job.executor.pid)


def test_the_executor_is_in_the_process_list(job: SparklessJob) -> None:
    """The driver reports its pid some time after the start; `heron kill` waits for its end."""

    def listed() -> int:
        (entry,) = json.loads((job.root / "t" / "processes.json").read_bytes())["containers"]
        return int(entry["pid"])

    wait_until(lambda: listed() == job.executor.pid, _BACK_S, "it is listed")


def test_a_process_list_that_could_not_be_written_is_written_later(job: SparklessJob) -> None:
    """A disk that was full for a while must not leave the wrong executor in the list."""
    listed, kept = job.root / "t" / "processes.json", job.folder / "kept"
    task = job.task()
    listed.rename(kept)
    (listed / "in the way").mkdir(parents=True)
    task.kill()
    again = job.back()
    (listed / "in the way").rmdir()
    listed.rmdir()
    wait_until(listed.exists, _BACK_S, "it is written")
    (entry,) = json.loads(listed.read_bytes())["containers"]
    assert entry["pid"] == again.pid
    log = (job.bench.log_dir("t") / "supervisor.log").read_text()
    assert log.count("processes.json is not up to date") == 1


def test_a_container_whose_executor_cannot_be_recorded_is_not_started(job: SparklessJob) -> None:
    """The next attempt could not find and end that executor; the reason names the folder."""
    run_dir = job.bench.run_dir("t")
    task = job.task()
    (run_dir / "c0.executor").unlink()
    (run_dir / "c0.executor").mkdir()
    task.kill()
    wait_until(lambda: "cannot be started" in job.status().last_error, _BACK_S, "the reason")
    assert f"run.run_dir, {run_dir.parent}, needs room there" in job.status().last_error
    (run_dir / "c0.executor").rmdir()
    wait_until(lambda: job.status().running, _BACK_S, "the container is up again")


@pytest.fixture
def channel(job: SparklessJob) -> Iterator[WatchedChannel]:
    """A connection to the driver, with the keys that tasks have."""
    order = job.order()
    keys = decode_keys(Path(order.key_file).read_bytes(), "the test").connecting_as(ClientKind.MEMBER)
    sockets = SocketContext(max_frame_bytes=-1)
    opened = open_watched_channel(sockets, order.endpoint, keys)
    yield opened
    opened.close()
    sockets.close()


def _answer(channel: WatchedChannel, message: TaskMessage) -> DriverCommand:
    channel.send(msgspec.json.encode(message))
    assert channel.wait(_BACK_S)
    return msgspec.json.decode(channel.receive() or b"", type=DriverCommand)


def test_unknown_messages_do_no_harm(job: SparklessJob, channel: WatchedChannel) -> None:
    """They may come from a peer with a key and another version. The driver logs this once and goes on."""
    for frame in (
        b"",
        b"\xff\xfe",
        b"[1",
        b"null",
        b'{"say":"hello"}',
        b'{"say":"up","pid":"1","begun":2}',
        b"[" * 99_999,
    ):
        channel.send(frame)
    channel.send(b'{"say":"beat","more":' + b"[" * 99_999)
    assert _answer(channel, TaskHello("no ticket", "nowhere")) is DriverCommand.LEAVE
    log = (job.bench.log_dir("t") / "spark-driver.log").read_text()
    assert log.count("sends unknown messages") == 1
    assert runs(job.executor.pid)
    assert job.status().attempts == 1


def test_a_task_that_was_given_up_gets_a_kill_command(channel: WatchedChannel) -> None:
    """Its heartbeats arrive again after another task has its place."""
    assert _answer(channel, TaskHeartbeat()) is DriverCommand.KILL


def test_a_stranger_cannot_fill_the_drivers_memory(job: SparklessJob) -> None:
    """A peer without a key can announce a frame of any size; a frame that no task sends ends the connection."""
    host, _, port = job.order().endpoint.removeprefix("tcp://").rpartition(":")
    greeting = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)
    with socket.create_connection((host, int(port)), _BACK_S) as stranger:
        stranger.settimeout(_LATE_S)  # an unfinished handshake may take longer
        stranger.sendall(greeting)
        stranger.recv(64, socket.MSG_WAITALL)
        stranger.sendall(b"\x06" + (2 << 20).to_bytes(8, "big") + bytes(1 << 16))
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    assert runs(job.executor.pid)
