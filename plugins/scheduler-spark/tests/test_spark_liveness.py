"""The limits of silence: of the driver, its JVM and tasks; and messages that are not understood."""

from __future__ import annotations

import json
import queue
import selectors
import socket
import sys
import threading
from pathlib import Path

import pytest

from heron.clock import monotonic_s
from heron.errors import ConfigError
from heron.spi.options import decode_options
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_spark import driver_process
from heron_scheduler_spark.application.spark_jobs import JvmThread
from heron_scheduler_spark.driver_process import DriverLiveness, DriverProcess
from heron_scheduler_spark.messages.message_stream import MessageStream
from heron_scheduler_spark.messages.task_messages import TaskHeartbeat, TaskHello, decode_task_message
from heron_scheduler_spark.settings.options import SparkOptions
from heron_scheduler_spark.spark_executors import SparkExecutors
from heron_testing.waiting import wait_until

_SOON_S = 20.0


def test_a_driver_hangs_when_it_or_its_jvm_is_silent_for_too_long() -> None:
    """The limits: 15 s of silence, 30 s of its JVM; before it serves, four times its time to start."""
    liveness = DriverLiveness(15.0, 25.0, 100.0)
    assert liveness.hangs(200.0) == ""
    assert liveness.hangs(200.1) == "it did not serve within 100 s"
    liveness.ready()
    liveness.received(200.0)
    assert (liveness.hangs(215.0), liveness.silent_s(215.0)) == ("", 15.0)
    assert liveness.hangs(215.1) == "it has sent nothing for 15 s"
    liveness.received(230.0)
    liveness.alive(30.0)
    assert liveness.hangs(230.0) == ""
    liveness.alive(30.1)
    assert liveness.hangs(230.0) == "its JVM has not answered for 30 s"
    liveness.alive(0.0)
    assert liveness.hangs(230.0) == ""


def test_a_task_gives_up_before_it_is_given_up() -> None:
    """The container has then ended, grace time included, when the next one may start."""
    assert SparkOptions().task_silence_s == 8.0
    assert SparkOptions(silence_s=60.0, stop_grace_s=20.0).task_silence_s == 37.0


@pytest.mark.parametrize("silence_s", [8.9, 1.0])
def test_a_silence_that_is_too_short_for_the_grace_time_is_refused(silence_s: float) -> None:
    """Two copies of a container would run for some seconds; the message has the minimum."""
    with pytest.raises(ConfigError, match=r"stop_grace_s is 4 s: .*; set it to 9 s or more"):
        decode_options({"silence_s": silence_s}, SparkOptions, "scheduler")
    decode_options({"silence_s": 9.0}, SparkOptions, "scheduler")


def test_calls_into_the_jvm_do_not_block_the_caller() -> None:
    """The caller goes on, sees how long there was no result, and gets the results in order."""
    woken: queue.SimpleQueue[None] = queue.SimpleQueue()
    answers: list[int] = []
    goes_on = threading.Event()
    jvm = JvmThread(lambda: woken.put(None))
    assert jvm.silent_s == 0.0

    def pauses() -> int:
        assert goes_on.wait(_SOON_S)
        return 1

    jvm.ask(pauses, answers.append)
    jvm.ask(lambda: 2, answers.append)
    wait_until(lambda: jvm.silent_s > 0.1, _SOON_S, "silence")
    jvm.deliver()
    assert not answers
    goes_on.set()
    for _ in range(2):
        woken.get(timeout=_SOON_S)
    jvm.deliver()
    assert (answers, jvm.silent_s) == ([1, 2], 0.0)


def test_a_failed_call_raises_in_the_caller() -> None:
    """Otherwise the caller would wait for ever; the thread goes on."""
    woken: queue.SimpleQueue[None] = queue.SimpleQueue()
    answers: list[int] = []
    jvm = JvmThread(lambda: woken.put(None))
    jvm.ask(lambda: 1 // 0, answers.append)
    jvm.ask(lambda: 2, answers.append)
    for _ in range(2):
        woken.get(timeout=_SOON_S)
    with pytest.raises(ZeroDivisionError):
        jvm.deliver()
    jvm.deliver()
    assert answers == [2]


@pytest.mark.parametrize(
    "frame", [b"", b"\xff", b"null", b"[]", b"{}", b'{"say":"go"}', b'{"say":"log","file":"x"}', b"[" * 100_000]
)
def test_an_unknown_frame_is_no_message(frame: bytes) -> None:
    """A peer with a key may send any bytes; they must not end the driver."""
    assert decode_task_message(frame) is None


def test_messages_of_tasks_are_decoded() -> None:
    """Keys of a later version are ignored."""
    assert decode_task_message(b'{"say":"hello","ticket":"t","host":"h","pid":7}') == TaskHello("t", "h")
    assert decode_task_message(b'{"say":"beat"}') == TaskHeartbeat()


def test_a_stream_that_ends_in_the_middle_of_a_message_gives_the_whole_ones() -> None:
    """The peer was killed while it wrote."""
    ours, its = socket.socketpair()
    stream = MessageStream(ours)
    its.sendall(b'{"a": 1}\n{"b": ')
    its.close()
    assert (stream.receive(), stream.closed) == ([{"a": 1}], True)
    stream.close()


_HANGS_UP = "import os, signal, sys; os.close(int(sys.argv[-1])); signal.pause()"


def test_a_driver_that_hangs_up_and_stays_is_given_up(tmp_path: Path) -> None:
    """The closed stream stays readable, which must not keep the supervisor busy."""
    with selectors.DefaultSelector() as selector:
        liveness = DriverLiveness(1.0, 0.1, monotonic_s())
        driver = DriverProcess((sys.executable, "-c", _HANGS_UP), tmp_path, liveness, selector)
        try:
            assert selector.select(_SOON_S)
            assert driver.receive() == []
            assert not selector.get_map()
            assert driver.ended() is None
            wait_until(driver.hangs, _SOON_S, "it is given up")
        finally:
            driver.stop(wait=False)


_PRINTS_MUCH = "import signal, sys; print('x' * 2000, flush=True); signal.pause()"


def test_the_output_of_a_driver_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its JVM may repeat an error for days."""
    monkeypatch.setattr(driver_process, "MAX_BYTES", 1000)
    log = tmp_path / "spark-driver.err"
    with selectors.DefaultSelector() as selector:
        liveness = DriverLiveness(1.0, 0.1, monotonic_s())
        driver = DriverProcess((sys.executable, "-c", _PRINTS_MUCH), tmp_path, liveness, selector)
        try:
            wait_until(lambda: log.stat().st_size > 1000, _SOON_S, "it has printed")
            driver.truncate_log()
            assert log.stat().st_size == 0
            assert log.with_name("spark-driver.err.1").stat().st_size > 1000
        finally:
            driver.stop(wait=False)


@pytest.mark.matrix
def test_the_back_off_grows_while_drivers_get_no_application(tmp_path: Path) -> None:
    """The time that each of them tries does not count as a run: only a driver that served resets the back-off."""
    run = _ScriptedRun(tmp_path, "failing_driver.py", str(tmp_path / "starts"), stable_s=0.1)
    try:
        wait_until(run.is_ready, _SOON_S, "the driver serves")
        run.executors.start(0, 1)
        wait_until(run.is_up, _SOON_S, "the first container is up")
        (tmp_path / "starts").touch()

        def starts() -> list[float]:
            run.executors.reap()
            return [float(line) for line in (tmp_path / "starts").read_text().splitlines(keepends=True) if "\n" in line]

        wait_until(lambda: len(starts()) > 4, _SOON_S, "five drivers have failed")
        assert starts()[4] - starts()[3] > 0.8
    finally:
        run.close()


@pytest.mark.matrix
@pytest.mark.parametrize(("end", "least_s", "most_s"), [("seen", 0.0, 4.0), ("unseen", 4.4, _SOON_S)])
def test_an_unseen_end_on_another_machine_is_reported_after_the_time_to_leave(
    tmp_path: Path, end: str, least_s: float, most_s: float
) -> None:
    """Its process cannot be checked from here, and a new executor would run the same tasks beside it."""
    run = _ScriptedRun(tmp_path, "scripted_driver.py", end)
    try:
        wait_until(run.is_ready, _SOON_S, "the driver serves")
        began_s = monotonic_s()
        run.executors.start(0, 1)
        exits = wait_until(run.executors.reap, _SOON_S, "the container has ended")
        (over,) = exits
        assert (over.container_id, over.error, over.own) == (0, "lost", False)
        assert (over.ran_s or 0.0) < most_s
        assert least_s < monotonic_s() - began_s < most_s
    finally:
        run.close()


class _ScriptedRun:
    """The executors of a job whose driver is a script."""

    def __init__(self, folder: Path, name: str, argument: str, stable_s: float = 30.0) -> None:
        (folder / "c0.json").write_text(json.dumps({"container_id": 0}))
        record = JobRecord("t", "t-1", False, (), str(folder), (), 0.1, 1.0, stable_s, 4.0, options={"start_s": 20.0})
        self._selector = selectors.DefaultSelector()
        script = str(Path(__file__).parent / "sparkless" / name)
        driver = (sys.executable, "-P", script, argument)
        self.executors = SparkExecutors(JobFolder(folder), record, self._selector, driver)
        self.executors.begin()

    def is_ready(self) -> bool:
        self.executors.reap()
        return self.executors.facts().handle == "scripted"

    def is_up(self) -> bool:
        self.executors.reap()
        return self.executors.taken_over()

    def close(self) -> None:
        self.executors.close()
        self._selector.close()
