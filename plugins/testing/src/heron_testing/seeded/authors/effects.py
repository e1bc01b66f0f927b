"""What the author's code does outside of the topology: the files that it writes, and the lines that it prints.

An audit hook sees each file that is opened for writing, and each connection. The files are read when the run is over,
and then get back the content that they had, so that each run begins with the same files.
"""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Effects"]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SQLITE = b"SQLite format 3\0"


class Effects:
    """The effects of one run of this process."""

    def __init__(self, folder: Path, who: Callable[[], str]) -> None:
        """`folder` has the files of the run itself. `who` names the task that runs now; "" if none does."""
        self._folder = str(folder)
        self._who = who
        self._before: dict[str, bytes | None] = {}
        self._watches = False
        self.connections: set[str] = set()
        """The tasks that have connected to something; such effects are not put back."""
        self.printed: Counter[str] = Counter()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watches in this block."""
        self._watches = True
        sys.addaudithook(self._audit)
        try:
            with contextlib.redirect_stdout(_Lines(self)):
                yield
        finally:
            self._watches = False

    def take_files(self) -> dict[str, Counter[str]]:
        """The lines of each written file, by path; the files have their former content afterwards."""
        found = {path: Counter(_lines(Path(path))) for path in sorted(self._before) if Path(path).is_file()}
        for path, content in self._before.items():
            if content is not None:
                Path(path).write_bytes(content)
            else:
                Path(path).unlink(missing_ok=True)
        self._before.clear()
        return found

    def note_printed(self, line: str) -> None:
        """A task has printed a line."""
        if self._who():
            self.printed[line] += 1

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._watches or not self._who():
            return
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            self._note(arguments[0])
        elif event in ("os.rename", "os.remove"):
            for path in arguments[:2]:
                self._note(path)
        elif event == "sqlite3.connect":
            self._note(arguments[0])
        elif event in ("socket.connect", "subprocess.Popen"):
            self.connections.add(self._who())

    def _note(self, path: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        absolute = os.path.abspath(os.fsdecode(path))  # follows no link
        if absolute in self._before or absolute.startswith((self._folder, "/dev/", "/proc/")):
            return
        self._watches = False  # reading it is not the author's
        file = Path(absolute)
        self._before[absolute] = file.read_bytes() if file.is_file() else None
        self._watches = True


class _Lines(io.TextIOBase):
    """Counts the lines that tasks print."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._effects.note_printed(line)
        return len(text)


def _lines(file: Path) -> list[str]:
    data = file.read_bytes()
    if data.startswith(_SQLITE):
        with contextlib.closing(sqlite3.connect(file)) as database:
            return list(database.iterdump())
    return data.decode(errors="replace").splitlines()
