"""Files in which what a sink has prepared waits for its checkpoint, for sinks that commit elsewhere.

A file has the name ``ID.TASK.RUN.CHECKPOINT.staged``. RUN tells submissions apart, because each counts its checkpoints
from 1. A file has its name only when it is complete and on disk. What is in a file is the sink's affair: messages, each
behind its length, or a form that the sink writes itself. `StagedSink` has the rest of the rules.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from heron.errors import ConnectorError, UsageError

__all__ = ["StagedFile", "StagingFolder", "check_sink_id"]

_SINK_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SUFFIX, _OPEN = ".staged", ".open"
_LENGTH_BYTES = 4


def check_sink_id(id: str, owner: str, argument: str = "id") -> None:  # noqa: A002  # as in sinks
    """Check the id of a sink, which begins the names of its files.

    Args:
        owner: the class whose argument it is, for the error, and `argument` the name of that.

    Raises:
        UsageError: when it is not 1 to 100 letters, digits, ``_`` and ``-``.
    """
    if not _SINK_ID.fullmatch(id):
        msg = f"{owner}: {argument}={id!r} is not 1 to 100 letters, digits, _ and -"
        raise UsageError(msg)


@dataclass(frozen=True, slots=True, order=True)
class StagedFile:
    """A complete file; ordered by checkpoint.

    Attributes:
        run: of the submission that has written it, 16 hexadecimal digits.
        task: the number of the task in its component, from 0.
    """

    checkpoint: int
    run: str
    task: int
    path: Path

    def messages(self) -> Iterator[bytes]:
        """The messages that `StagingFolder.append` wrote, in their order.

        Raises:
            ConnectorError: when the file is cut.
        """
        with self.path.open("rb") as file:
            while head := file.read(_LENGTH_BYTES):
                size = int.from_bytes(head, "big")
                message = file.read(size)
                if len(head) < _LENGTH_BYTES or len(message) < size:
                    msg = f"{self.path}: the file is cut; its disk has lost what was written to it"
                    raise ConnectorError(msg)
                yield message


class StagingFolder:
    """The files of one task of a sink, and those of tasks that no longer exist."""

    def __init__(self, folder: Path, name: str, run: str, task: int) -> None:
        """Make the folder.

        Raises:
            ConnectorError: when it cannot be made.
        """
        self._folder, self._name, self._run, self._task = folder, name, run, task
        self._file: IO[bytes] | None = None
        self._open = folder / f".{name}.{task}.{secrets.token_hex(4)}{_OPEN}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"the staging folder {folder} cannot be made: {error.strerror}"
            raise ConnectorError(msg) from error

    def file(self) -> IO[bytes]:
        """The file of the next checkpoint, to append to."""
        if self._file is None:
            self._file = self._open.open("wb")
        return self._file

    def append(self, message: bytes) -> None:
        """Append a message to the file of the next checkpoint; `StagedFile.messages` reads it."""
        self.file().write(len(message).to_bytes(_LENGTH_BYTES, "big") + message)

    def prepare(self, checkpoint: int) -> None:
        """Put the file on disk under the number of its checkpoint; nothing if there is none."""
        if self._file is None:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        self._open.replace(self._folder / f"{self._name}.{self._task}.{self._run}.{checkpoint:012}{_SUFFIX}")
        self._sync_folder()

    def staged(self, tasks: int) -> Sequence[StagedFile]:
        """The complete files of this task, by checkpoint; for task 0 also those of tasks from number `tasks` on."""
        found = []
        for path in self._folder.glob(f"{self._name}.*{_SUFFIX}"):
            task, run, checkpoint = path.name[len(self._name) + 1 :].removesuffix(_SUFFIX).rsplit(".", 2)
            if not task.isdecimal():  # of an id that begins as this one does
                continue
            number = int(task)
            if number == self._task or (self._task == 0 and number >= tasks):
                found.append(StagedFile(int(checkpoint), run, number, path))
        return sorted(found)

    def discard(self, checkpoint: int, tasks: int) -> None:
        """Remove what was not prepared up to this checkpoint, also by processes that were killed."""
        self.close()
        for path in self._folder.glob(f".{self._name}.{self._task}.*{_OPEN}"):
            path.unlink(missing_ok=True)
        for file in self.staged(tasks):
            if file.checkpoint > checkpoint:
                file.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove what was not prepared here."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._open.unlink(missing_ok=True)

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
