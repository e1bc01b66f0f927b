"""The file of a task's dead letters: JSON lines, in two parts of bounded size, for their owner only."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["DeadLetterFile"]


class DeadLetterFile:
    """Lines that are appended to `path`. A full part replaces the older one, ``.1``, whose lines count as dropped."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self.older = path.with_name(f"{path.name}.1")
        self.dropped = 0
        self._part_bytes = most_bytes // 2

    def append(self, line: bytes) -> None:
        """Adds a line, and its line end.

        Raises:
            OSError: when it cannot be written.
        """
        size_bytes = self.path.stat().st_size if self.path.exists() else 0
        if size_bytes and size_bytes + len(line) >= self._part_bytes:
            if self.older.exists():
                self.dropped += self.older.read_bytes().count(b"\n")
            self.path.replace(self.older)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(self.path, flags, 0o600), "ab") as file:
            file.write(line + b"\n")

    def lines(self) -> list[bytes]:
        """All lines, the oldest first."""
        return [line for part in (self.older, self.path) if part.exists() for line in part.read_bytes().splitlines()]
