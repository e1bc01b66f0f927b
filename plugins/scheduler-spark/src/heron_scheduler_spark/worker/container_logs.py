"""The logs of a container on a worker: kept in a separate folder, sent to the driver, and shown on Spark's pages.

The JVM of the Spark executor reads the pipe that feeds its pages. The pipe may be full while the JVM pauses or the disk
of the worker is full. The task must go on meanwhile: only it receives the driver's commands and watches the container.
So `LogEcho` writes to the pipe in a separate thread.
"""

from __future__ import annotations

import os
import queue
import shutil
import threading
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.private_files import make_private_dir
from heron_scheduler_spark.messages.log_transfer import LogShipper
from heron_scheduler_spark.messages.task_messages import LogText
from heron_scheduler_spark.worker.task_link import TaskLink

__all__ = ["ContainerLogs", "LogEcho"]

_SHIP_S = 0.5
_STDERR = 2
_WAITING = 32  # texts
_LAST_S = 1.0


class ContainerLogs:
    """Used from the thread of the link, which it never blocks."""

    def __init__(self, folder: Path, title: str, link: TaskLink) -> None:
        """Make an empty folder; Spark's pages show `title` before each line. Raises OSError or HeronError."""
        shutil.rmtree(folder, ignore_errors=True)
        make_private_dir(folder)
        self._folder = folder
        self._link = link
        self._echo = LogEcho(_STDERR, title)
        self._shipper = LogShipper(folder, self._send)
        self._ship_at_s = 0.0

    def ship(self) -> None:
        """Send new text, at most twice a second."""
        if monotonic_s() >= self._ship_at_s:
            self._ship_at_s = monotonic_s() + _SHIP_S
            self._shipper.ship()

    def close(self) -> None:
        """Send the rest, and remove the folder."""
        self._shipper.ship(final=True)
        self._shipper.close()
        self._echo.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, name: str, text: str) -> None:
        self._link.send(LogText(name, text))
        self._echo.write(Path(name).stem, text)


class LogEcho:
    """Writes lines to a descriptor in a separate thread; counts lines that find no room, and reports their number.

    Used from one thread.
    """

    def __init__(self, descriptor: int, title: str) -> None:
        """Each line begins with `title`."""
        self._descriptor = descriptor
        self._title = title
        self._waiting: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._left_out = 0
        self._writer = threading.Thread(target=self._run, name="log-echo", daemon=True)
        self._writer.start()

    def write(self, name: str, text: str) -> None:
        """Write lines of the log with that name; return at once."""
        lines = text.splitlines()
        shown = "".join(f"{self._title} {name} | {line}\n" for line in lines)
        try:
            self._waiting.put_nowait(f"{self._note()}{shown}")
        except queue.Full:
            self._left_out += len(lines)
        else:
            self._left_out = 0

    def close(self) -> None:
        """Wait at most about a second for each remaining step: the note, the end, the thread."""
        try:
            self._waiting.put(self._note(), timeout=_LAST_S)
            self._waiting.put(None, timeout=_LAST_S)
        except queue.Full:
            return
        self._writer.join(_LAST_S)

    def _note(self) -> str:
        left_out = self._left_out
        return f"{self._title}: {left_out} lines are left out: no process read them\n" if left_out else ""

    def _run(self) -> None:
        try:
            while (text := self._waiting.get()) is not None:
                self._write_all(text)
        except OSError:
            return  # the other end of the pipe is closed

    def _write_all(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        while data:
            data = data[os.write(self._descriptor, data) :]
