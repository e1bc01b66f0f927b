"""The logs of a container that runs on a worker, brought to where ``heron logs`` reads them.

On the worker they are in a folder of the container's own, which goes with it. Each line goes to the task's stderr too,
which Spark keeps for its pages.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["LogMirror", "LogShipper"]

_SUFFIXES = (".log", ".err", ".out")
_PIECE_BYTES = 64 * 1024
_PIECES = 16  # of one look: a task that prints more than a megabyte in it is read on in the next
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")

Send = Callable[[str, str], None]
"""Takes a file's name and the text that it has got."""


class LogShipper:
    """The worker's side: reads on in each file, and in a new one of the same name when it was renamed meanwhile."""

    def __init__(self, folder: Path, title: str, send: Send) -> None:
        self._folder = folder
        self._title = title
        self._send = send
        self._at: dict[str, tuple[int, int]] = {}

    def ship(self, *, final: bool = False) -> None:
        """Sends whole lines that have come since the last call; with `final` also the rest."""
        try:
            paths = sorted(path for path in self._folder.iterdir() if path.suffix in _SUFFIXES)
        except OSError:
            return
        for path in paths:
            for _ in range(_PIECES):
                if not self._ship_piece(path, final=final):
                    break

    def _ship_piece(self, path: Path, *, final: bool) -> bool:
        try:
            with path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                known, offset = self._at.get(path.name, (inode, 0))
                if known != inode:
                    offset = 0
                file.seek(offset)
                piece = file.read(_PIECE_BYTES)
        except OSError:
            return False
        end = len(piece) if final or len(piece) == _PIECE_BYTES else piece.rfind(b"\n") + 1
        if not end:
            return False
        text = piece[:end].decode("utf-8", "replace")
        self._at[path.name] = (inode, offset + end)
        self._send(path.name, text)
        for line in text.splitlines():
            sys.stderr.write(f"heron {self._title} {path.stem} | {line}\n")
        return True


class LogMirror:
    """The driver's side: appends what comes to the file of that name in the job's log folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, name: str, text: str) -> None:
        """A name that is no file's is left out; so is what finds no room, as in any log."""
        if not _NAME.fullmatch(name) or not name.endswith(_SUFFIXES):
            return
        try:
            with (self._folder / name).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            return
