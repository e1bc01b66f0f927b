"""What a task shows of its container's logs on Spark's pages: written beside its work, since a pipe may be full.

The pipe is read by the JVM of the Spark executor. While that pauses, or the disk of its worker is full, the task has to
go on: it alone hears the driver, and sees what ends its container.
"""

from __future__ import annotations

import os
import queue
import threading

__all__ = ["LogEcho"]

_WAITING = 32
_LAST_S = 1.0


class LogEcho:
    """Writes to a descriptor in a thread of its own; what finds no room is left out, counted and said.

    Used from one thread.
    """

    def __init__(self, descriptor: int, title: str) -> None:
        """`title` is what each line begins with."""
        self._descriptor = descriptor
        self._title = title
        self._waiting: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._left_out = 0
        self._writer = threading.Thread(target=self._write, name="log-echo", daemon=True)
        self._writer.start()

    def take(self, name: str, text: str) -> None:
        """Lines of the log of that name; returns at once."""
        lines = text.splitlines()
        shown = "".join(f"{self._title} {name} | {line}\n" for line in lines)
        try:
            self._waiting.put_nowait(f"{self._note()}{shown}")
        except queue.Full:
            self._left_out += len(lines)
        else:
            self._left_out = 0

    def close(self) -> None:
        """Waits for what is still to be written, a second at most."""
        try:
            self._waiting.put(self._note(), timeout=_LAST_S)
            self._waiting.put(None, timeout=_LAST_S)
        except queue.Full:
            return
        self._writer.join(_LAST_S)

    def _note(self) -> str:
        left_out = self._left_out
        return f"{self._title}: {left_out} lines are left out: nobody took them\n" if left_out else ""

    def _write(self) -> None:
        try:
            while (text := self._waiting.get()) is not None:
                self._write_all(text)
        except OSError:
            return  # nobody reads it any more

    def _write_all(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        while data:
            data = data[os.write(self._descriptor, data) :]
