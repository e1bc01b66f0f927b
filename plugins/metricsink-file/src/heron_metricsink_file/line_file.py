"""A file of lines with a bounded size: when it is full it is renamed to ``.1``, ``.2``, …, and the oldest goes.

Every line is one write of its own, so that a killed process loses nothing it has written. Where a write was cut short
(no space, a crash), the next line begins on a new line: one line is lost and no other is spoilt.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO

from heron.driver_kit.private_files import make_private_dir

__all__ = ["LineFile"]


class LineFile:
    """Appends lines; opened, with its folder made, by the first one."""

    def __init__(self, path: Path, max_bytes: int, files: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._files = files
        self._file: BinaryIO | None = None
        self._torn = False

    def append(self, line: bytes) -> None:
        """Writes the line and its end.

        Raises:
            OSError: when it cannot be written whole; a later line is not affected.
        """
        file = self._file or self._open()
        data = b"\n" + line + b"\n" if self._torn else line + b"\n"
        size = file.tell()
        if size and size + len(data) > self._max_bytes:
            file = self._rotate()
            data = line + b"\n"
        self._torn = True
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, "no space left for a whole line", str(self._path))
        self._torn = False

    def close(self) -> None:
        """Closes the file; a later line opens it again. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO:
        make_private_dir(self._path.parent)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        self._torn = False
        if self._file.seek(0, os.SEEK_END):
            self._file.seek(-1, os.SEEK_END)
            self._torn = self._file.read(1) != b"\n"
        return self._file

    def _rotate(self) -> BinaryIO:
        self.close()
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._files))]
        for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
            if newer.exists():
                newer.replace(older)
        if self._files == 1:
            self._path.unlink(missing_ok=True)
        return self._open()
