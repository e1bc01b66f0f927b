"""What a child prints: its last lines, for errors, and a copy in the output of the task, of bounded pace."""

from __future__ import annotations

import sys
from collections import deque

from heron.clock import monotonic_s

__all__ = ["PrintedLines"]

_LAST_LINES = 20
_LONGEST_LINE = 500  # characters
_BYTES_PER_S = 64 * 1024  # copied; a child that prints without end must not fill the disk, nor take the processor


class PrintedLines:
    """The lines that a child prints on one of its outputs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._rest = b""
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._second = 0
        self._left_bytes = _BYTES_PER_S
        self._dropped_lines = 0

    def add(self, data: bytes) -> None:
        """Take what the child has printed."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_LONGEST_LINE]  # the end of a longer line counts as a line
        self._take(lines)

    def end(self) -> tuple[str, ...]:
        """The child has ended; return its last lines."""
        if self._rest:
            self._take([self._rest])
            self._rest = b""
        return tuple(self._last)

    def _take(self, lines: list[bytes]) -> None:
        if int(monotonic_s()) != self._second:
            self._second = int(monotonic_s())
            self._left_bytes = _BYTES_PER_S
            if self._dropped_lines:
                self._show(f"{self._dropped_lines} lines were left out: at most {_BYTES_PER_S} bytes a second are kept")
                self._dropped_lines = 0
        for line in lines[-_LAST_LINES:]:
            self._last.append(line[:_LONGEST_LINE].decode(errors="backslashreplace"))
        for number, line in enumerate(lines):
            self._left_bytes -= len(line) + 1
            if self._left_bytes < 0:
                self._dropped_lines += len(lines) - number
                return
            self._show(line.decode(errors="backslashreplace"))

    def _show(self, line: str) -> None:
        try:
            sys.stderr.write(f"[child {self._pid}] {line}\n")
        except (OSError, ValueError):  # the author may have closed it
            return
