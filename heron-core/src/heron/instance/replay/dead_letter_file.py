"""The file of a task's dead letters: JSON lines, in two parts of bounded size, for their owner only."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from heron.api.dead_letter import DeadLetter
from heron.driver_kit.private_files import write_private
from heron.ipc.documents.letter_line import LetterLine, read_line

__all__ = ["DeadLetterFile"]

Report = Callable[[str, BaseException, str, object], object]


class DeadLetterFile:
    """Lines that are appended to `path`. A full part replaces the older one, ``.1``, whose letters count as dropped.

    `report` gets what was done, the error, what happens instead, and the record, if a letter cannot be written.
    """

    def __init__(
        self, path: Path, most_bytes: int, report: Callable[[str, BaseException, str, object], object]
    ) -> None:
        self.path = path
        self.older = path.with_name(f"{path.name}.1")
        self.dropped = 0
        self._part_bytes = most_bytes // 2
        self._report = report

    def keep(self, letter: DeadLetter, line: LetterLine) -> None:
        """`heron.instance.spout_replays.LetterStore.keep`."""
        try:
            self._append(msgspec.json.encode(line))
        except OSError as error:
            self._report("writing a dead letter", error, "the record is lost", letter.values)

    def restore(self, line: LetterLine) -> None:
        """`heron.instance.spout_replays.LetterStore.restore`."""
        self._append(msgspec.json.encode(line))

    def take(self, ids: Collection[str]) -> list[LetterLine]:
        """`heron.instance.spout_replays.LetterStore.take`."""
        taken: list[LetterLine] = []
        for part in (self.older, self.path):
            kept: list[bytes] = []
            for raw in part.read_bytes().splitlines() if part.exists() else ():
                line = read_line(raw)
                if line is not None and line.id in ids:
                    taken.append(line)
                else:
                    kept.append(raw)
            if taken:
                write_private(part, b"".join(raw + b"\n" for raw in kept))
        return taken

    def _append(self, line: bytes) -> None:
        size_bytes = self.path.stat().st_size if self.path.exists() else 0
        if size_bytes and size_bytes + len(line) >= self._part_bytes:
            if self.older.exists():
                self.dropped += self.older.read_bytes().count(b"\n")
            self.path.replace(self.older)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(self.path, flags, 0o600), "ab") as file:
            file.write(line + b"\n")
