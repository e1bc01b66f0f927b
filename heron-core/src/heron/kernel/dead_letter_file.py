"""The file of a task's dead letters: JSON lines, in two parts of bounded size, for their owner only."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from heron.driver_kit.private_files import write_private
from heron.ipc.documents.letter_line import LetterLine, read_line

__all__ = ["DeadLetterFile", "letter_files"]

_PREFIX = "dead-letters-"


class DeadLetterFile:
    """Lines that are appended to `path`. A full part replaces the older one, ``.1``, whose letters count as dropped.

    While the task runs only the task writes. Lines that are broken stay: they may be of a task that was killed.
    """

    def __init__(self, path: Path, most_bytes: int = 0) -> None:
        self.path = path
        self.older = path.with_name(f"{path.name}.1")
        self.dropped = 0
        self._part_bytes = most_bytes // 2

    @classmethod
    def of_task(cls, log_dir: Path, task_id: int, most_bytes: int) -> DeadLetterFile:
        """The file of a task, beside its logs."""
        return cls(log_dir / f"{_PREFIX}{task_id}.jsonl", most_bytes)

    def append(self, *letters: LetterLine) -> None:
        """Adds letters. To open the file takes as long as to encode ten.

        Raises:
            OSError: when they cannot be written; some may have been.
        """
        part, size_bytes = b"", self.path.stat().st_size if self.path.exists() else 0
        for letter in letters:
            line = msgspec.json.encode(letter) + b"\n"
            if size_bytes and size_bytes + len(line) > self._part_bytes:
                self._write(part)
                self._begin_part()
                part, size_bytes = b"", 0
            part += line
            size_bytes += len(line)
        self._write(part)

    def _begin_part(self) -> None:
        if self.older.exists():
            self.dropped += self.older.read_bytes().count(b"\n")
        self.path.replace(self.older)

    def _write(self, lines: bytes) -> None:
        if lines:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(self.path, flags, 0o600), "ab") as file:
                file.write(lines)

    def letters(self) -> Iterator[LetterLine]:
        """All letters, the oldest first.

        Raises:
            OSError: when the file cannot be read.
        """
        for part in (self.older, self.path):
            for line in _lines(part):
                if (letter := read_line(line)) is not None:
                    yield letter

    def take(self, ids: Collection[str]) -> list[LetterLine]:
        """Removes the letters with these ids, and returns those that there were.

        Raises:
            OSError: when the file cannot be read or written; then no letter is gone.
        """
        taken: list[LetterLine] = []
        for part in (self.older, self.path):
            lines = _lines(part)
            found = [letter for line in lines if (letter := read_line(line)) is not None and letter.id in ids]
            if found:
                gone = {each.id for each in found}
                kept = [line for line in lines if (letter := read_line(line)) is None or letter.id not in gone]
                write_private(part, b"".join(line + b"\n" for line in kept))
                taken += found
        return taken


def letter_files(log_dir: Path) -> list[DeadLetterFile]:
    """The files of all tasks whose logs are in a folder."""
    names = {each.name.removesuffix(".1") for each in log_dir.glob(f"{_PREFIX}*.jsonl*")}
    return [DeadLetterFile(log_dir / name) for name in sorted(names)]


def _lines(part: Path) -> list[bytes]:
    try:
        return part.read_bytes().splitlines()
    except FileNotFoundError:
        return []
