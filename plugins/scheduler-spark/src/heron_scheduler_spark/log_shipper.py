"""The logs of a container that runs on a worker, read on as they grow: the worker's side of what ``heron logs`` shows.

They are in a folder of the container's own, which goes with it. A log that is full is renamed to ``.1``, and one that a
child prints to is copied there and emptied (`heron.driver_kit.log`): either way a new ``.1`` has the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LOG_SUFFIXES", "LogShipper"]

LOG_SUFFIXES = (".log", ".err", ".out")
"""Of the files that are brought; older ones have a number behind it."""

_PIECE_BYTES = 64 * 1024
_PIECES = 16  # of one look: a task that prints more than a megabyte in it is read on in the next

Send = Callable[[str, str], None]
"""Takes a file's name and the text that it has got."""

_Seen = tuple[int, int, int]


@dataclass(slots=True)
class _Place:
    """How far a log is read, and the older one as it was when it began; `coming` may still be copied."""

    offset: int = 0
    older: _Seen | None = None
    coming: _Seen | None = None


class LogShipper:
    """Used from one thread."""

    def __init__(self, folder: Path, send: Send) -> None:
        self._folder = folder
        self._send = send
        self._places: dict[str, _Place] = {}

    def ship(self, *, final: bool = False) -> None:
        """Sends whole lines that have come since the last call; with `final` all the rest."""
        try:
            found = {path.name for path in self._folder.iterdir() if path.suffix in LOG_SUFFIXES}
        except OSError:
            return
        for name in sorted(found | self._places.keys()):  # one that was renamed may not be begun anew yet
            path, place = self._folder / name, self._places.setdefault(name, _Place())
            if self._has_turned(path, place, final=final):
                place.offset = self._sent_to(path, path.name, place.offset, rest=final)

    def _has_turned(self, path: Path, place: _Place, *, final: bool) -> bool:
        """Reads an older file to its end when a log was begun anew; False when it has to be looked at again."""
        older = path.with_name(f"{path.name}.1")
        seen = _seen(older)
        if seen is None or seen == place.older:
            return True
        if seen != place.coming and not final:
            place.coming = seen
            return False
        if seen[1] >= place.offset:  # else there was no room for the copy
            self._sent_to(older, path.name, place.offset, rest=True)
        place.older, place.offset = seen, 0
        return True

    def _sent_to(self, path: Path, name: str, offset: int, *, rest: bool) -> int:
        """Sends what the file has from `offset` on; gives how far it came. The `rest` is sent in one go, or its end."""
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < offset:
                    offset = 0  # it was emptied
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
            return offset  # it is gone, or cannot be read now
        return offset


def _seen(path: Path) -> _Seen | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
