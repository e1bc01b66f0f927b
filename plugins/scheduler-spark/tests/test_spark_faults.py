"""What hangs and what falls silent: of the driver, of its JVM, of a task. Without Spark, which has no part in it."""

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
from heron.driver_kit.links import SocketContext, Speaker, WatchedChannel, decode_keys, open_watched_channel
from heron.spi.scheduler import ContainerStatus
from heron_scheduler_spark.options import SparkOptions
from heron_scheduler_spark.order import Order
from heron_scheduler_spark.scheduler import SparkScheduler
from heron_scheduler_spark.task_words import Beat, Hello, Said, Word
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, runs
from heron_testing.fake_executor import Alive
from heron_testing.pytest_plugin import wait_until

_SILENCE_S, _GRACE_S = 5.5, 0.5
_BACK_S = 30.0
_LATE_S = 2.0  # on a busy machine


class WithoutSpark(SparkScheduler):
    """Asks nothing of Spark or Java before it starts."""

    supervisor: ClassVar[str] = "sparkless_supervisor"

    def refuse(self, job: object) -> None:
        pass


class World:
    """A job of one container, and the processes that it stands in."""

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
        """The child of the supervisor."""
        noted = json.loads((self.root / "t" / "processes.json").read_bytes())
        (driver,) = psutil.Process(int(noted["supervisor"]["pid"])).children()
        return driver

    def task(self) -> psutil.Process:
        """What would be a Python worker."""
        (task,) = self.driver().children()
        return task

    def order(self) -> Order:
        """That of the task that runs."""
        return msgspec.json.decode(self.task().cmdline()[-1], type=Order)

    def back(self, attempt: int = 2) -> Alive:
        """The executor of the next attempt, when the status has it."""
        found = self.bench.wait("t", 0, attempt)
        wait_until(lambda: self.status().running, _BACK_S, "the container is up again")
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("sparkless")))
    monkeypatch.setenv("HERON_TEST_FOLDER", str(tmp_path))
    with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
        made = World(tmp_path, Path(run_root))
        yield made
        made.scheduler.kill("t")


def test_a_driver_that_hangs_is_killed_and_its_containers_come_back(world: World) -> None:
    """It is stopped: the task ends its container before the supervisor gives the driver up, and the status says so."""
    driver = world.driver()
    stopped_s = monotonic_s()
    driver.suspend()
    wait_until(lambda: not runs(world.executor.pid), _SILENCE_S + _LATE_S, "the container has ended")
    options = SparkOptions(silence_s=_SILENCE_S, stop_grace_s=_GRACE_S)
    assert monotonic_s() - stopped_s >= options.task_silence_s - 1.0  # the last beat was up to a second before
    assert driver.is_running(), "the task was quicker than the supervisor"
    status = world.status()
    assert not status.running
    assert "the Spark driver has said nothing for" in status.last_error
    driver.wait(_SILENCE_S)
    world.back()
    assert world.driver() != driver


def test_a_jvm_that_pauses_ends_no_container(world: World) -> None:
    """Beats go on while it does not answer; a collection of garbage may take as long."""
    hangs = world.folder / "jvm-hangs"
    hangs.touch()
    paused_s = monotonic_s()
    # Longer than a task waits for a word, and less than a JVM may take.
    wait_until(lambda: monotonic_s() - paused_s > 1.3 * _SILENCE_S, 2 * _SILENCE_S, "the pause is over")
    hangs.unlink()
    assert runs(world.executor.pid)
    status = world.status()
    assert (status.running, status.attempts) == (True, 1)


def test_a_jvm_that_hangs_is_killed_with_its_driver(world: World) -> None:
    """Nothing can be started or ended any more; until then what runs is shown as running."""
    driver = world.driver()
    hangs = world.folder / "jvm-hangs"
    hangs.touch()
    driver.wait(2 * _SILENCE_S + _LATE_S)
    hangs.unlink()
    wait_until(lambda: "its JVM has not answered for 11 s" in world.status().last_error, _BACK_S, "why")
    world.back()
    assert not runs(world.executor.pid)


def test_a_task_that_is_silent_is_over_before_its_container_starts_again(world: World) -> None:
    """It is stopped, and would go on some time: what Spark cannot end is ended by the supervisor."""
    task = world.task()
    task.suspend()
    wait_until(lambda: world.status().attempts == 2, _SILENCE_S + _BACK_S, "the next attempt")
    assert not runs(world.executor.pid)
    assert "was not heard of for 5.5 s" in world.status().last_error
    world.back()


def test_a_task_that_was_killed_has_taken_its_container_along_before_the_next(world: World) -> None:
    """Spark reports the end of the task, while the executor has its seconds to leave."""
    world.task().kill()
    wait_until(lambda: world.status().attempts == 2, _BACK_S, "the next attempt")
    assert not runs(world.executor.pid)
    world.back()


def test_an_executor_that_spark_forgot_is_asked_for_again(world: World) -> None:
    """As when it takes one away in the moment that another is asked for: nobody else would ever ask."""
    forgets = world.folder / "forgets"
    forgets.touch()
    world.task().kill()
    wait_until((world.folder / "forgotten").exists, _BACK_S, "it is forgotten")
    wait_until((world.folder / "asked").exists, _BACK_S, "it is asked for once")
    assert not world.status().running
    forgets.unlink()
    world.back()


def test_a_driver_that_was_killed_takes_all_along(world: World) -> None:
    """As before; with the reason."""
    os.kill(world.driver().pid, signal.SIGKILL)
    world.back()
    assert "the Spark driver ended: killed by SIGKILL" in world.status().last_error
    assert not runs(world.executor.pid)


def test_who_comes_after_the_supervisor_finds_the_executor(world: World) -> None:
    """Who it is is known some time after the start, by the driver's word; `heron kill` waits for its end."""

    def noted() -> int:
        (entry,) = json.loads((world.root / "t" / "processes.json").read_bytes())["containers"]
        return int(entry["pid"])

    wait_until(lambda: noted() == world.executor.pid, _BACK_S, "it is noted")


def test_what_could_not_be_noted_is_noted_when_it_can_be(world: World) -> None:
    """A disk that was full for a while must not leave the wrong executor in the list."""
    noted, kept = world.root / "t" / "processes.json", world.folder / "kept"
    task = world.task()
    noted.rename(kept)
    (noted / "in the way").mkdir(parents=True)
    task.kill()
    again = world.back()
    (noted / "in the way").rmdir()
    noted.rmdir()
    wait_until(noted.exists, _BACK_S, "it is written")
    (entry,) = json.loads(noted.read_bytes())["containers"]
    assert entry["pid"] == again.pid
    log = (world.bench.log_dir("t") / "supervisor.log").read_text()
    assert log.count("processes.json is not up to date") == 1


def test_a_container_that_cannot_be_noted_is_not_started(world: World) -> None:
    """The next attempt would not find it to end it; the reason names the folder, and nothing of it is left."""
    run_dir = world.bench.run_dir("t")
    task = world.task()
    (run_dir / "c0.executor").unlink()
    (run_dir / "c0.executor").mkdir()
    task.kill()
    wait_until(lambda: "cannot be started" in world.status().last_error, _BACK_S, "the reason")
    assert f"run.run_dir, {run_dir.parent}, needs room there" in world.status().last_error
    (run_dir / "c0.executor").rmdir()
    wait_until(lambda: world.status().running, _BACK_S, "the container is up again")


@pytest.fixture
def channel(world: World) -> Iterator[WatchedChannel]:
    """A connection to the driver, with the keys that tasks have."""
    order = world.order()
    keys = decode_keys(Path(order.key_file).read_bytes(), "the test").connecting_as(Speaker.MEMBER)
    sockets = SocketContext()
    opened = open_watched_channel(sockets, order.endpoint, keys)
    yield opened
    opened.close()
    sockets.close()


def _answer(channel: WatchedChannel, said: Said) -> Word:
    channel.send(msgspec.json.encode(said))
    assert channel.wait(_BACK_S)
    return msgspec.json.decode(channel.receive() or b"", type=Word)


def test_what_no_task_says_harms_nothing(world: World, channel: WatchedChannel) -> None:
    """From one who has a key, of another version or with bad intent; it is said once, and the driver goes on."""
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
    assert _answer(channel, Hello("no ticket", "nowhere")) is Word.LEAVE
    log = (world.bench.log_dir("t") / "spark-driver.log").read_text()
    assert log.count("says what is not understood") == 1
    assert runs(world.executor.pid)
    assert world.status().attempts == 1


def test_a_task_that_was_given_up_is_told_to_end(channel: WatchedChannel) -> None:
    """Its beats come through again, when another has its place already."""
    assert _answer(channel, Beat()) is Word.KILL


def test_a_stranger_cannot_fill_the_drivers_memory(world: World) -> None:
    """Who has no key yet can announce a frame of any size; one that no task sends ends the connection."""
    host, _, port = world.order().endpoint.removeprefix("tcp://").rpartition(":")
    greeting = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)
    with socket.create_connection((host, int(port)), _BACK_S) as stranger:
        stranger.settimeout(_LATE_S)  # an unfinished handshake may take longer
        stranger.sendall(greeting)
        stranger.recv(64, socket.MSG_WAITALL)
        stranger.sendall(b"\x06" + (2 << 20).to_bytes(8, "big") + bytes(1 << 16))
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    assert runs(world.executor.pid)
