"""Copies the logs of a container from its worker to the machine that submitted, where ``heron logs`` reads them.

On the worker, `LogShipper` reads the logs as they grow. They are in a folder of the container, which is removed with
it. A full log is renamed to ``.1``. A log to which a child prints is copied to ``.1`` and emptied
(`heron.driver_kit.log`). In both cases a new ``.1`` has the rest. In the driver, `LogMirror` writes the copies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.log import MAX_BYTES, rename_older

__all__ = ["LogMirror", "LogShipper"]

_SUFFIXES = (".log", ".err", ".out")  # of the files that are copied; older ones have a number after it
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_PIECE_BYTES = 64 * 1024
_PIECES = 16  # per call, a megabyte; the next call sends the rest

Send = Callable[[str, str], None]
"""Receives the name of a file and the text that was added to it."""

_FileState = tuple[int, int, int]


@dataclass(slots=True)
class _Position:
    """How far a log was read. `older` is the state of its ``.1`` then; `coming` is one that may still be copied."""

    offset: int = 0
    older: _FileState | None = None
    coming: _FileState | None = None


class LogShipper:
    """Used from one thread."""

    def __init__(self, folder: Path, send: Send) -> None:
        self._folder = folder
        self._send = send
        self._positions: dict[str, _Position] = {}

    def ship(self, *, final: bool = False) -> None:
        """Send the whole lines that were added since the last call; with `final`, all the rest."""
        try:
            found = {path.name for path in self._folder.iterdir() if path.suffix in _SUFFIXES}
        except OSError:
            return
        for name in sorted(found | self._positions.keys()):  # after a rename the new file may not exist yet
            path, position = self._folder / name, self._positions.setdefault(name, _Position())
            if self._finish_older(path, position, final=final):
                position.offset = self._send_from(path, path.name, position.offset, rest=final)

    def _finish_older(self, path: Path, position: _Position, *, final: bool) -> bool:
        """Send the rest of a file that became ``.1``; return False when the next call must look again."""
        older = path.with_name(f"{path.name}.1")
        state = _state(older)
        if state is None or state == position.older:
            return True
        if state != position.coming and not final:
            position.coming = state
            return False
        if state[1] >= position.offset:  # otherwise the disk had no room for the copy
            self._send_from(older, path.name, position.offset, rest=True)
        position.older, position.offset = state, 0
        return True

    def _send_from(self, path: Path, name: str, offset: int, *, rest: bool) -> int:
        """Send the text from `offset` and return the new offset; with `rest` also half a line, and at most 1 MiB."""
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < offset:
                    offset = 0  # the file was emptied
                if rest and size - offset > _PIECES * _PIECE_BYTES:
                    left_out = size - offset - _PIECES * _PIECE_BYTES
                    self._send(name, f"heron: {left_out} bytes are left out: they came faster than they are read\n")
                    offset += left_out
                for _ in range(2 * _PIECES):
                    file.seek(offset)
                    piece = file.read(_PIECE_BYTES)
                    end = piece.rfind(b"\n") + 1
                    if not end and (rest or len(piece) == _PIECE_BYTES):
                        end = len(piece)
                    if not end:
                        break
                    self._send(name, piece[:end].decode("utf-8", "replace"))
                    offset += end
        except OSError:
            return offset  # the file is gone, or cannot be read now
        return offset


class LogMirror:
    """Appends text to the copies of logs; renames a full one, as with every log."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def append(self, name: str, text: str) -> None:
        """Append to the file with that name. Ignore names that are not logs, and, as every log does, a full disk."""
        if not _NAME.fullmatch(name) or not name.endswith(_SUFFIXES):
            return
        path = self._folder / name
        try:
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                full = file.tell() >= self._max_bytes
            if full:
                rename_older(path)
        except OSError:
            return


def _state(path: Path) -> _FileState | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
