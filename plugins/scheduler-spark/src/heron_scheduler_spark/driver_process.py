"""The Spark driver as a child of the supervisor: its start, its messages, its end, and whether it hangs."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.child_processes import kill_group, spawn, wait_unreaped
from heron.driver_kit.log import MAX_BYTES, truncate_when_full
from heron_scheduler_kit.control import Message
from heron_scheduler_kit.executor_process import signal_name
from heron_scheduler_spark.messages.message_stream import MessageStream

__all__ = ["DRIVER", "FIRST_START", "LATER_START", "DriverLiveness", "DriverProcess"]

# -P: a file in the user's folder must not replace a module of Heron.
DRIVER = (sys.executable, "-P", "-m", "heron_scheduler_spark.spark_driver")
FIRST_START, LATER_START = "first", "later"

_STOP_S = 5.0  # Spark takes about a second to stop
_TAIL_BYTES = 8192
_START_FACTOR = 4.0  # of the time for a start: a JVM that starts while others die is slow
_JVM_FACTOR = 2.0  # of the silence: containers go on while a JVM pauses, so there is no hurry


class DriverProcess:
    """One driver process. Made in the main thread, because the parent-death signal depends on that thread."""

    def __init__(
        self,
        command: Sequence[str],
        log_dir: Path,
        liveness: DriverLiveness,
        selector: selectors.BaseSelector,
    ) -> None:
        """Start it. `selector` becomes ready when `receive` has messages. Raises OSError.

        `command` gets one more argument, the descriptor of its connection to this process.
        """
        self._log = log_dir / "spark-driver.err"
        self._liveness = liveness
        ours, its = socket.socketpair()
        with its, self._log.open("ab") as log:
            self._log_from = log.tell()
            self._process: subprocess.Popen[bytes] = spawn(
                [*command, str(its.fileno())],
                stdout=log,
                death_signal=signal.SIGTERM,
                pass_fds=(its.fileno(),),
            )
        self._stream = MessageStream(ours)
        self._selector: selectors.BaseSelector | None = selector
        selector.register(self._stream, selectors.EVENT_READ, lambda: None)

    def send(self, message: Message) -> None:
        self._stream.send(message)

    def receive(self) -> list[Message]:
        """Return the messages since the last call."""
        messages = self._stream.receive()
        if messages:
            self._liveness.received(monotonic_s())
        if self._stream.closed:
            self._unregister()  # the closed stream would stay readable
        for message in messages:
            match message:
                case {"is": "ready"}:
                    self._liveness.ready()
                case {"is": "alive", "jvm_silent_s": float(jvm_silent_s)}:
                    self._liveness.alive(jvm_silent_s)
        return messages

    def truncate_log(self) -> None:
        """Limit its output, and that of its JVM, to the size of a log: an error may repeat for days."""
        with suppress(OSError):  # without room for a copy it is emptied all the same
            if not truncate_when_full(self._log, MAX_BYTES):
                return
        self._log_from = 0

    def ended(self) -> str | None:
        """Return why it ended; None while it runs."""
        # The group is killed before its leader is reaped, as for any executor.
        if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        kill_group(self._process.pid)
        code = self._process.wait()
        how = f"exit code {code}" if code >= 0 else f"killed by {signal_name(-code)}"
        return f"{how}{self._last_message()}"

    def hangs(self) -> str:
        """Return why it must be killed; "" while it works."""
        return self._liveness.hangs(monotonic_s())

    @property
    def silent_s(self) -> float:
        """For how long a driver that serves has sent nothing, in seconds."""
        return self._liveness.silent_s(monotonic_s())

    def stop(self, *, wait: bool) -> None:
        """End the driver and its JVM; with `wait`, give it up to 5 s to stop Spark before it is killed."""
        self._unregister()
        self._stream.close()
        if self._process.returncode is not None:
            return
        if wait:
            wait_unreaped(self._process.pid, _STOP_S)
        kill_group(self._process.pid)  # with Spark's JVM, which would end by itself a little later
        self._process.wait()

    def _unregister(self) -> None:
        if self._selector is not None:
            self._selector.unregister(self._stream)
            self._selector = None

    def _last_message(self) -> str:
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_from, size - _TAIL_BYTES))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return ""
        messages = [line.strip() for line in lines if line.startswith("heron ")]
        return f": {messages[-1]}" if messages else f"; see {self._log}"


class DriverLiveness:
    """Decides whether a driver still works, from its messages. Pure; times are monotonic seconds.

    A driver reports each second for how long Spark's JVM has not answered it. After `silence_s` without a message its
    tasks have given it up and ended. A JVM that pauses only delays starts, so it has twice as long. A driver that is
    not `ready` yet sends nothing, and has four times `start_s`.
    """

    def __init__(self, silence_s: float, start_s: float, now_s: float) -> None:
        self._silence_s = silence_s
        self._start_s = start_s
        self._received_s = now_s
        self._jvm_silent_s = 0.0
        self._ready = False

    def received(self, now_s: float) -> None:
        """A message came."""
        self._received_s = now_s

    def alive(self, jvm_silent_s: float) -> None:
        """The driver reported for how long its JVM has not answered."""
        self._jvm_silent_s = jvm_silent_s

    def ready(self) -> None:
        """The driver serves, and sends a message each second from now on."""
        self._ready = True

    def silent_s(self, now_s: float) -> float:
        """Return for how long a driver that serves has sent nothing."""
        return now_s - self._received_s if self._ready else 0.0

    def hangs(self, now_s: float) -> str:
        """Return why the driver must be given up; "" while it works."""
        if not self._ready:
            limit_s = _START_FACTOR * self._start_s
            return f"it did not serve within {limit_s:g} s" if now_s - self._received_s > limit_s else ""
        if self.silent_s(now_s) > self._silence_s:
            return f"it has sent nothing for {self._silence_s:g} s"
        limit_s = _JVM_FACTOR * self._silence_s
        return f"its JVM has not answered for {limit_s:g} s" if self._jvm_silent_s > limit_s else ""
