"""The Spark driver as a child of the supervisor: started, spoken to, and seen when it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from heron.kernel.job.process_identity import ProcessIdentity
from heron.kernel.spawn import spawn
from heron_scheduler_spark.message_stream import Message, MessageStream

__all__ = ["DriverProcess"]

# -P: a file of the user's folder must not stand in for a module of ours.
_COMMAND = (sys.executable, "-P", "-m", "heron_scheduler_spark.spark_driver")
_STOP_S = 5.0  # Spark takes about a second to stop
_TAIL_BYTES = 8192


class DriverProcess:
    """One life of a driver. Made in the main thread, to which its parent-death signal is tied."""

    def __init__(self, job_file: Path, log_dir: Path) -> None:
        """Starts it. Raises OSError when it cannot be."""
        self._log = log_dir / "spark-driver.err"
        ours, its = socket.socketpair()
        with its, self._log.open("ab") as log:
            self._log_from = log.tell()
            self._process: subprocess.Popen[bytes] = spawn(
                [*_COMMAND, str(job_file), str(its.fileno())],
                stdout=log,
                death_signal=signal.SIGTERM,
                pass_fds=(its.fileno(),),
            )
        self.stream = MessageStream(ours)
        self.identity = ProcessIdentity.of(self._process.pid)

    def send(self, message: Message) -> None:
        self.stream.send(message)

    def ended(self) -> str | None:
        """Why it ended; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        self._kill_group()
        how = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
        return f"{how}{self._last_words()}"

    def stop(self, *, serves: bool) -> None:
        """Has it stop Spark, and returns when it and its JVM are gone; one that does not serve yet cannot listen."""
        self.stream.close()
        try:
            self._process.wait(_STOP_S if serves else 0.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._kill_group()

    def _kill_group(self) -> None:
        """Spark's JVM is in the driver's process group; it ends by itself when the driver does, a little later."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

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
