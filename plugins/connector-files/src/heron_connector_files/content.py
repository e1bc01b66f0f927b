"""The bytes of an open file: as they are, or what a compressed file contains."""

from __future__ import annotations

import errno
import gzip
import os
import zlib
from abc import ABC, abstractmethod
from pathlib import Path

from heron.errors import ConnectorError

__all__ = ["Content", "GzContent", "PlainContent", "remedy_of"]

_STEP_BYTES = 1 << 16


def remedy_of(error: OSError, otherwise: str) -> str:
    """What a user can do when something cannot be opened."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "raise the limit of open files (`ulimit -n`), or divide the logs among more tasks"
    return otherwise


class Content(ABC):
    """An open file. It stays readable after it was renamed or removed."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            FileNotFoundError: when it is not there any more.
            ConnectorError: when it cannot be opened.
        """
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            remedy = remedy_of(error, "permit the user of the task to read it")
            msg = f"{path} cannot be opened: {error.strerror}; {remedy}"
            raise ConnectorError(msg) from error
        self._path = path
        stat = os.fstat(self._fd)
        self.device, self.inode = stat.st_dev, stat.st_ino

    @abstractmethod
    def size(self) -> int:
        """How many bytes it has now."""

    @abstractmethod
    def read(self, offset: int, count: int) -> bytes:
        """Some bytes from an offset: fewer than `count` at the end.

        Raises:
            ConnectorError: when the file is damaged.
        """

    @property
    def modified_ns(self) -> int:
        """When it was written last."""
        return os.fstat(self._fd).st_mtime_ns

    @property
    def is_linked(self) -> bool:
        """Whether it has a name in a directory."""
        return os.fstat(self._fd).st_nlink > 0

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)


class PlainContent(Content):
    """A file as it is; it may grow."""

    def size(self) -> int:
        """`Content.size`."""
        return os.fstat(self._fd).st_size

    def read(self, offset: int, count: int) -> bytes:
        """`Content.read`."""
        try:
            return os.pread(self._fd, count, offset)
        except OSError as error:
            msg = f"{self._path} cannot be read: {error.strerror}"
            raise ConnectorError(msg) from error


class GzContent(Content):
    """What a file of gzip contains. Reading forward is quick; what lies before the last read is decompressed again."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = os.fdopen(self._fd, "rb", closefd=False)
        self._unzip = gzip.GzipFile(fileobj=self._file)
        self._window, self._begin = b"", 0

    def size(self) -> int:
        """`Content.size`, as the end of the file says: modulo 4 GiB, and for several members of the last one."""
        length = os.fstat(self._fd).st_size
        return int.from_bytes(os.pread(self._fd, 4, max(0, length - 4)), "little")

    def read(self, offset: int, count: int) -> bytes:
        """`Content.read`."""
        try:
            if offset < self._begin:
                self._unzip.seek(0)
                self._window, self._begin = b"", 0
            while self._begin + len(self._window) < offset + count:
                more = self._unzip.read(max(_STEP_BYTES, count))
                if not more:
                    break
                cut = max(0, min(offset - self._begin, len(self._window)))
                self._window, self._begin = self._window[cut:] + more, self._begin + cut
        except (OSError, EOFError, zlib.error) as error:
            msg = f"{self._path} is not a whole file of gzip: {error}; repair it, and restart the task"
            raise ConnectorError(msg) from error
        begin = offset - self._begin
        return self._window[begin : begin + count]

    def close(self) -> None:
        """`Content.close`."""
        self._unzip.close()
        self._file.close()
        super().close()
