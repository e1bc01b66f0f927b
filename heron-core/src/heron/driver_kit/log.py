"""Log files of bounded size: the JSON lines of a role process, and the output of a child process."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from heron.driver_kit.redaction import redact, redact_for_command

__all__ = [
    "MAX_BYTES",
    "OLDER_FILES",
    "JsonLines",
    "RotatingLog",
    "configure",
    "redact_warnings",
    "rename_older",
    "truncate_when_full",
]

MAX_BYTES = 10 * 1024 * 1024  # of one file; with two older files a process keeps at most 30 MiB
OLDER_FILES = 2


class JsonLines(logging.Formatter):
    """Formats a record as ``{"at", "level", "logger", "message", …bound, "error"?}``; `at` is UTC.

    Some libraries log their credentials, so every text of `secrets` becomes ``(secret)``.
    """

    def __init__(self, secrets: Sequence[str] = (), /, **bound: str | int) -> None:
        super().__init__()
        self._secrets = secrets
        self._bound = bound

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage(), self._secrets),
            **self._bound,
        }
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info), self._secrets)
        return json.dumps(line, ensure_ascii=False, default=str)


class _Warnings(logging.Formatter):
    """Formats a record as Python does without any logging configuration, but without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return redact_for_command(super().format(record))


class RotatingLog(logging.FileHandler):
    """A log file that is renamed to ``.1``, ``.2`` when it reaches its size; the oldest file is removed.

    The module of the standard library's rotating handler imports sockets, which costs every role process 5 ms.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, older_files: int = OLDER_FILES) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self._max_bytes = max_bytes
        self._older_files = older_files

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        try:
            if self.stream is not None and self.stream.tell() >= self._max_bytes:
                self._rotate()
        except (OSError, ValueError):
            self.handleError(record)

    def _rotate(self) -> None:
        if self.stream is not None:
            self.stream.close()
            self.stream = None  # the next record opens the file
        rename_older(Path(self.baseFilename), self._older_files)


def rename_older(newest: Path, older_files: int = OLDER_FILES) -> None:
    """Rename a log file to ``.1`` and the older files to the next number; the oldest is removed.

    Raises:
        OSError: when the file system refuses.
    """
    names = [newest, *(newest.with_name(f"{newest.name}.{n + 1}") for n in range(older_files))]
    for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
        if newer.exists():
            newer.replace(older)
    if not older_files:
        newest.unlink(missing_ok=True)


def configure(path: Path, *, level: int = logging.INFO, secrets: Sequence[str] = (), **bound: str | int) -> None:
    """Send all logging of this process to the file at `path`; the main function of a role calls it once.

    Every line carries `bound`: topology, container, process and, in an instance, component and task. No line contains
    a text of `secrets`. Python's warnings are logged too. A line that cannot be written (no space) is lost; the process
    continues.
    """
    handler = RotatingLog(path)
    handler.setFormatter(JsonLines(secrets, **bound))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    logging.raiseExceptions = False


def redact_warnings() -> None:
    """Remove the command's secrets from warnings: a command has no log, so Python writes them to stderr."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Warnings())


def truncate_when_full(output: Path, max_bytes: int) -> bool:
    """Copy the output file of a child to ``.1`` and truncate it when it has reached `max_bytes`; return whether it had.

    The child keeps its descriptor open, so the file is copied and truncated instead of renamed. Lines that the child
    writes between the two steps are lost.

    Raises:
        OSError: when the file system refuses. Without room for the copy the file is truncated all the same.
    """
    try:
        if output.stat().st_size < max_bytes:
            return False
    except FileNotFoundError:
        return False
    names = [output, *(output.with_name(f"{output.name}.{number}") for number in range(1, OLDER_FILES + 1))]
    try:
        for older, newer in zip(reversed(names[2:]), reversed(names[1:-1]), strict=True):
            if newer.exists():
                newer.replace(older)
        shutil.copy(output, names[1])  # with its mode
    finally:
        os.truncate(output, 0)
    return True
