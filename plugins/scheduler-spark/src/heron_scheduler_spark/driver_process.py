"""The Spark driver as a child of the supervisor: started, spoken to, and seen when it ends or hangs."""

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
from heron_scheduler_spark.driver_pulse import DriverPulse
from heron_scheduler_spark.message_stream import MessageStream

__all__ = ["DRIVER", "FIRST_LIFE", "LATER_LIFE", "DriverProcess"]

# -P: a file of the user's folder must not stand in for a module of ours.
DRIVER = (sys.executable, "-P", "-m", "heron_scheduler_spark.spark_driver")
FIRST_LIFE, LATER_LIFE = "first", "later"

_STOP_S = 5.0  # Spark takes about a second to stop
_TAIL_BYTES = 8192


class DriverProcess:
    """One life of a driver. Made in the main thread, to which its parent-death signal is tied."""

    def __init__(
        self,
        command: Sequence[str],
        log_dir: Path,
        pulse: DriverPulse,
        selector: selectors.BaseSelector,
    ) -> None:
        """Starts it; `selector` wakes whoever waits on it when there is something to `hear`. Raises OSError.

        `command` is given one more argument, the descriptor by which it speaks to this process.
        """
        self._log = log_dir / "spark-driver.err"
        self._pulse = pulse
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

    def hear(self) -> list[Message]:
        """What it has said since the last call."""
        messages = self._stream.receive()
        if messages:
            self._pulse.heard(monotonic_s())
        if self._stream.closed:
            self._forget()  # it is readable for ever
        for message in messages:
            match message:
                case {"is": "ready"}:
                    self._pulse.ready()
                case {"is": "alive", "jvm_silent_s": float(jvm_silent_s)}:
                    self._pulse.alive(jvm_silent_s)
        return messages

    def tidy(self) -> None:
        """Keeps what it prints, and its JVM, to the size of a log: they may meet the same error for days."""
        with suppress(OSError):  # no room for a copy: then it is emptied all the same
            if not truncate_when_full(self._log, MAX_BYTES):
                return
        self._log_from = 0

    def ended(self) -> str | None:
        """Why it ended; None while it runs."""
        # As for any executor: the group is cleared before its leader is reaped.
        if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        kill_group(self._process.pid)
        code = self._process.wait()
        how = f"exit code {code}" if code >= 0 else f"killed by {signal_name(-code)}"
        return f"{how}{self._last_words()}"

    def hangs(self) -> str:
        """Why it is to be killed; "" while it works."""
        return self._pulse.hangs(monotonic_s())

    @property
    def silent_s(self) -> float:
        """For how long it has said nothing, though it serves."""
        return self._pulse.silent_s(monotonic_s())

    def stop(self, *, listens: bool) -> None:
        """Has it stop Spark, and returns when it and its JVM are gone; one that does not listen is killed at once."""
        self._forget()
        self._stream.close()
        if self._process.returncode is not None:
            return
        if listens:
            wait_unreaped(self._process.pid, _STOP_S)
        kill_group(self._process.pid)  # Spark's JVM is in it, and would end by itself a little later
        self._process.wait()

    def _forget(self) -> None:
        if self._selector is not None:
            self._selector.unregister(self._stream)
            self._selector = None

    def _last_words(self) -> str:
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_from, size - _TAIL_BYTES))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return ""
        spoken = [line.strip() for line in lines if line.startswith("heron ")]
        return f": {spoken[-1]}" if spoken else f"; see {self._log}"
