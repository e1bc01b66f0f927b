"""A file of lines with a bounded size.

A full file is renamed to ``.1``, an older file to ``.2``, …, and the oldest file is removed. Each line is one write, so
a killed process loses no line that it has written. After an incomplete write (no space, a crash) the next line begins
on a new line, so only the incomplete line is lost.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO

from heron.driver_kit.private_files import make_private_dir

__all__ = ["LineFile"]


class LineFile:
    """Appends lines. The first line creates the folder and opens the file."""

    def __init__(self, path: Path, max_bytes: int, files: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._files = files
        self._file: BinaryIO | None = None
        self._incomplete = False  # the last line has no end

    def append(self, line: bytes) -> None:
        """Write the line and a line end.

        Raises:
            OSError: when the line cannot be written completely; later lines are not affected.
        """
        file = self._file or self._open()
        data = b"\n" + line + b"\n" if self._incomplete else line + b"\n"
        size = file.tell()
        if size and size + len(data) > self._max_bytes:
            file = self._rotate()
            data = line + b"\n"
        self._incomplete = True
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, "no space left for a whole line", str(self._path))
        self._incomplete = False

    def close(self) -> None:
        """Close the file; a later line opens it again. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO:
        make_private_dir(self._path.parent)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        self._incomplete = False
        if self._file.seek(0, os.SEEK_END):
            self._file.seek(-1, os.SEEK_END)
            self._incomplete = self._file.read(1) != b"\n"
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
