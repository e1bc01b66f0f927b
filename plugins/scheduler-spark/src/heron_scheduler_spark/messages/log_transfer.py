"""Copies the logs of a container from its worker to the machine that submitted, where ``heron logs`` reads them.

On the worker, `LogShipper` reads the logs as they grow. They are in a folder of the container, which is removed with
it. A full log is renamed to ``.1``, and the reader finishes it before it goes on. It holds no lock: a task may print
faster than the link transfers, and must not wait for it. In the driver, `LogMirror` writes the copies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.followed_log import FollowedLog
from heron.driver_kit.log import MAX_BYTES, rename_older

__all__ = ["LogMirror", "LogShipper"]

_SUFFIXES = (".log", ".err", ".out")  # of the files that are copied; older ones have a number after it
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_PIECE_BYTES = 64 * 1024
_PIECES = 16  # per call, a megabyte; the next call sends the rest

Send = Callable[[str, str], None]
"""Receives the name of a file and the text that was added to it."""


class LogShipper:
    """Used from one thread."""

    def __init__(self, folder: Path, send: Send) -> None:
        self._folder = folder
        self._send = send
        self._logs: dict[str, _Shipped] = {}

    def ship(self, *, final: bool = False) -> None:
        """Send the whole lines that were added since the last call, at most 2 MiB of each log.

        With `final`, send also the last lines without an end, and leave out what exceeds 1 MiB.
        """
        try:
            found = {path.name for path in self._folder.iterdir() if path.suffix in _SUFFIXES}
        except OSError:
            return
        for name in sorted(found | self._logs.keys()):  # after a rename the new file may not exist yet
            log = self._logs.setdefault(name, _Shipped(FollowedLog(self._folder / name)))
            try:
                for text in log.texts(final=final):
                    self._send(name, text.decode("utf-8", "replace"))
            except OSError:
                continue  # it cannot be read now

    def close(self) -> None:
        """Close the logs; idempotent."""
        for each in self._logs.values():
            each.log.close()
        self._logs.clear()


@dataclass(slots=True)
class _Shipped:
    log: FollowedLog
    rest: bytes = b""
    gaps: int = 0

    def texts(self, *, final: bool) -> Iterator[bytes]:
        if final and (left_out := self.log.unread_bytes() - _PIECES * _PIECE_BYTES) > 0:
            yield from self._end()
            yield b"heron: %d bytes are left out: they came faster than they are read\n" % left_out
            while left_out > 0 and (piece := self.log.read(min(left_out, _PIECE_BYTES))):
                left_out -= len(piece)
        for _ in range(2 * _PIECES):
            piece = self.log.read(_PIECE_BYTES)
            if self.log.gaps > self.gaps:
                self.gaps = self.log.gaps
                yield from self._end()
                yield b"heron: lines are left out: they came faster than they are read\n"
            if not piece:
                break
            data = self.rest + piece
            end = data.rfind(b"\n") + 1 or (len(data) if len(data) >= _PIECE_BYTES else 0)
            self.rest = data[end:]
            if end:
                yield data[:end]
        if final:
            yield from self._end()

    def _end(self) -> Iterator[bytes]:
        if self.rest:
            rest, self.rest = self.rest, b""
            yield rest


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
