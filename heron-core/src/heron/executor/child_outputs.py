"""What children print: each has a pipe, from which the executor writes files of bounded size; decision 063.

A full file is renamed to ``.1`` at the end of a line. The part that this would remove stays while a reader needs it: a
reader locks the part that it reads, and a reader of everything locks the folder too. Meanwhile the newest file may
exceed its limit by one block. Then the pipe is not read, and the child waits in its write.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
from io import FileIO
from pathlib import Path

from heron.clock import Clock, SystemClock
from heron.driver_kit.log import MAX_BYTES, OLDER_FILES, rename_older
from heron.ipc.reactor import Reactor

__all__ = ["PIPE_BYTES", "ChildOutput", "ChildOutputs", "OutputFile"]

PIPE_BYTES = 512 * 1024

_CHUNK_BYTES = 64 * 1024
_WAITING_BYTES = PIPE_BYTES - _CHUNK_BYTES  # above the limit of a file, while a reader is behind
_BLOCK_BYTES = 2 * PIPE_BYTES  # the same with what the pipe holds at the end of a child
_PAUSE_S = 0.01  # between two reads of a pipe: 50 MB/s, and no more rounds for lines that are flushed one by one
_READER_S = 30.0  # a reader that needs longer for one part is taken for stopped
_HURRIED_READER_S = 1.0  # an executor that stops has 5 s
_TAIL_BYTES = 4096

_log = logging.getLogger(__name__)


class OutputFile:
    """The output file of a child and its older parts. No other process writes to them."""

    def __init__(self, path: Path, max_bytes: int, clock: Clock | None = None) -> None:
        """Open nothing yet; `append` does."""
        self.path = path
        self.reader_s = _READER_S
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._file: FileIO | None = None
        self._whole = True  # the file ends at the end of a line
        self._oldest = path.with_name(f"{path.name}.{OLDER_FILES}")
        self._waits: tuple[int, float] | None = None  # for the reader of which oldest part, since when
        self._given_up = False

    def append(self, data: bytes, over: int = _WAITING_BYTES) -> bytes:
        """Append data, and return what has to wait for a reader: it would exceed the limit by more than `over` bytes.

        Raises:
            OSError: when the file system refuses; the data is lost.
        """
        while data:
            file = self.open()
            size = os.fstat(file.fileno()).st_size  # a person may have emptied it
            room = self._max_bytes - size
            piece = len(data)
            if piece > room:
                piece = data.rfind(b"\n", 0, max(0, room)) + 1
                if not piece and size and (self._whole or room + over <= 0):
                    if not self._reader_is_behind():
                        self._rename(file)
                        continue
                    if len(data) > room + over:
                        return data
                    piece = len(data)
                elif not piece:  # the rest of a line, or a line that is longer than a file
                    piece = data.find(b"\n") + 1 or len(data)
            try:
                _write(file, data[:piece])
            except OSError:  # a disk that is full takes a part of a line
                self.close()
                self._whole = True  # so that `open` ends it
                raise
            self._whole = data[piece - 1] == ord("\n")
            data = data[piece:]
        return b""

    def open(self) -> FileIO:
        """Open the file unless it is open, and end the last line if a child before has left it open.

        Raises:
            OSError: when the file system refuses.
        """
        if self._file is None:
            self._file = FileIO(self.path, "ab+", opener=_private)
            size = self._file.seek(0, os.SEEK_END)
            if size and self._whole and os.pread(self._file.fileno(), 1, size - 1) != b"\n":
                self._file.write(b"\n")
        return self._file

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rename(self, file: FileIO) -> None:
        rename_older(self.path)
        file.close()
        self._file, self._whole, self._waits = None, True, None
        _log.info("%s was full and is renamed", self.path.name)

    def _reader_is_behind(self) -> bool:
        """Whether the oldest part, which would be removed, is still to be read by a process that will do so in time."""
        try:
            oldest = self._oldest.stat().st_ino
        except OSError:
            return False
        newer = (self.path, *(self.path.with_name(f"{self.path.name}.{number}") for number in range(1, OLDER_FILES)))
        if _is_locked(self._oldest):
            self._given_up = False
        elif any(map(_is_locked, newer)):
            self._given_up = False
            return False
        elif self._given_up or not _is_locked(self.path.parent):
            return False
        now_s = self._clock.monotonic_s()
        if self._waits is None or self._waits[0] != oldest:
            self._waits = oldest, now_s
        self._given_up = now_s - self._waits[1] >= self.reader_s
        return not self._given_up


class ChildOutput:
    """The pipe of one child and its file.

    `tail` is the end of what the child has printed, `waiting` what a reader keeps out of the file.
    """

    def __init__(self, file: OutputFile) -> None:
        """Open the pipe. Raises OSError when the system refuses."""
        self.file = file
        self.tail = b""
        self.fd, self._writer = os.pipe()
        os.set_blocking(self.fd, False)
        with contextlib.suppress(OSError):  # the user has many pipes; the pipe stays smaller
            fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._refused = 0
        self.waiting = b""
        self.ended = False

    def take_writer(self) -> int:
        """Return the descriptor for the child; the caller closes it, so that the pipe ends with the child."""
        return self._writer

    def move(self, over: int = _WAITING_BYTES) -> None:
        """Move what the pipe holds to the file, at most twice its size; less if a reader is behind."""
        for _ in range(_BLOCK_BYTES // _CHUNK_BYTES):
            if self.waiting:
                self.waiting = self._append(self.waiting, over)
            if self.waiting or self.ended:
                return
            try:
                self.waiting = os.read(self.fd, _CHUNK_BYTES)
            except BlockingIOError:
                return
            self.ended = not self.waiting
            self.tail = (self.tail + self.waiting)[-_TAIL_BYTES:]

    def close(self) -> None:
        """Move the rest, also while a reader is behind, and close pipe and file."""
        self.move(_BLOCK_BYTES)
        os.close(self.fd)
        self.file.close()

    def _append(self, data: bytes, over: int) -> bytes:
        try:
            waiting = self.file.append(data, over)
        except OSError as error:
            if not self._refused:
                _log.warning("%s cannot be written, output is lost: %s", self.file.path, error)
            self._refused += len(data)
            return b""
        if self._refused and not waiting:
            _log.warning("%s can be written again; %d bytes are lost", self.file.path, self._refused)
            self._refused = 0
        return waiting


class ChildOutputs:
    """The outputs of the children of an executor, moved in the rounds of its reactor.

    Without a reactor, the owner calls `ChildOutput.move`.
    """

    def __init__(self, reactor: Reactor | None = None, max_bytes: int = MAX_BYTES) -> None:
        self._reactor = reactor
        self._max_bytes = max_bytes
        self._open: dict[int, ChildOutput] = {}
        self._reader_s = _READER_S

    def open(self, path: Path) -> ChildOutput:
        """Open the output of a child. Raises OSError when the system refuses."""
        file = OutputFile(path, self._max_bytes)
        file.reader_s = self._reader_s
        file.open()
        output = ChildOutput(file)
        self._open[output.fd] = output
        self._watch(output)
        return output

    def close(self, output: ChildOutput) -> None:
        """Write the rest of the output of a child that has ended."""
        del self._open[output.fd]
        if self._reactor is not None:
            self._reactor.forget(output.fd)
        output.close()

    def hurry(self) -> None:
        """Wait less for readers from now on: the executor stops."""
        self._reader_s = _HURRIED_READER_S
        for each in self._open.values():
            each.file.reader_s = _HURRIED_READER_S

    def _watch(self, output: ChildOutput) -> None:
        reactor = self._reactor
        if reactor is None or self._open.get(output.fd) is not output:
            return

        def move() -> None:
            reactor.forget(output.fd)
            output.move()
            reactor.after(_PAUSE_S, lambda: self._watch(output))

        if output.waiting:
            move()
        elif not output.ended:
            reactor.on_readable(output.fd, move)


def _write(file: FileIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


def _is_locked(path: Path) -> bool:
    """Whether a process holds a lock on the file; False if the file system has no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno == errno.EWOULDBLOCK
    finally:
        os.close(descriptor)
    return False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
