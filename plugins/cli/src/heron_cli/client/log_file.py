"""One log file that is read from its end, and followed across rotations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from heron.driver_kit.log import OLDER_FILES

__all__ = ["LogFile"]

_CHUNK_BYTES = 1 << 16
_LINE_BYTES = 1 << 20  # a line without an end is passed on in pieces of this size


class LogFile:
    """A file that need not exist yet, and may be renamed and begun anew at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: BinaryIO | None = None
        self._rest = b""  # of a line whose end is still to come
        self._open()

    def last(self, count: int) -> list[str]:
        """The last lines that are there, those of older files (``.1``, ``.2``) too; `lines` goes on behind them."""
        lines: list[str] = []
        if self._stream is not None:
            found, self._rest = _tail(self._stream, count)
            lines = found
        for number in range(1, OLDER_FILES + 1):
            if len(lines) < count:
                lines[:0] = _older(self.path.with_name(f"{self.path.name}.{number}"), count - len(lines))
        return lines

    def lines(self, *, final: bool = False) -> Iterator[str]:
        """New lines; with `final`, also a last one that has no end."""
        yield from self._read()
        if self._renewed():
            yield from self._read()  # what was written between the look and the renaming
            yield from self._end()
            self.close()
            self._open()
            yield from self._read()
        if final:
            yield from self._end()

    def close(self) -> None:
        """Closes it; idempotent."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _open(self) -> None:
        try:
            self._stream = self.path.open("rb")
        except OSError:  # not there yet, or not any more
            self._stream = None

    def _read(self) -> Iterator[str]:
        if self._stream is None:
            return
        while chunk := self._stream.read(_CHUNK_BYTES):
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            yield from map(_text, whole)
            if len(self._rest) > _LINE_BYTES:
                yield from self._end()

    def _end(self) -> Iterator[str]:
        if self._rest:
            rest, self._rest = self._rest, b""
            yield _text(rest)

    def _renewed(self) -> bool:
        """Whether there is another file of that name now, or this one was emptied."""
        try:
            now = self.path.stat()
        except OSError:
            return False
        if self._stream is None:
            return True
        then = os.fstat(self._stream.fileno())
        return (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino) or now.st_size < self._stream.tell()


def _older(path: Path, count: int) -> list[str]:
    try:
        with path.open("rb") as stream:
            lines, rest = _tail(stream, count)
    except OSError:
        return []
    return lines + ([_text(rest)] if rest else [])


def _tail(stream: BinaryIO, count: int) -> tuple[list[str], bytes]:
    """The last whole lines up to the end of the stream, where it stands afterwards, and what follows them."""
    end = position = stream.seek(0, os.SEEK_END)
    data = b""
    while position and data.count(b"\n") <= count:
        step = min(position, _CHUNK_BYTES)
        position -= step
        stream.seek(position)
        data = stream.read(step) + data
    stream.seek(end)
    *whole, rest = data.split(b"\n")
    if position:
        del whole[:1]  # it begins in the middle
    return [_text(line) for line in whole[-count:]] if count else [], rest


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").rstrip("\r")
