"""The log of a role process: one JSON object a line, with what the process is bound in once, and a bounded size."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from heron.driver_kit.secrets import hidden, spoken

__all__ = ["MAX_BYTES", "OLDER_FILES", "JsonLines", "RotatingLog", "configure", "hide_in_warnings", "rename_older"]

MAX_BYTES = 10 * 1024 * 1024  # of one file; with the two older ones a process keeps 30 MiB at most
OLDER_FILES = 2


class JsonLines(logging.Formatter):
    """Formats a record as ``{"at", "level", "logger", "message", …bound, "error"?}``; `at` is UTC.

    Libraries log as well, and some of them their credentials: the texts `secrets` become ``(secret)``.
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
            "message": hidden(record.getMessage(), self._secrets),
            **self._bound,
        }
        if record.exc_info:
            line["error"] = hidden(self.formatException(record.exc_info), self._secrets)
        return json.dumps(line, ensure_ascii=False, default=str)


class _Warnings(logging.Formatter):
    """Formats a record as Python does where no logging is set up, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return spoken(super().format(record))


class RotatingLog(logging.FileHandler):
    """A log file that is renamed to ``.1``, ``.2`` when it reaches its size; the oldest goes.

    The standard library has one too, but its module brings sockets, which costs every role process 5 ms.
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
            self.stream = None  # the next record opens it again
        rename_older(Path(self.baseFilename), self._older_files)


def rename_older(newest: Path, older_files: int = OLDER_FILES) -> None:
    """Renames a log that is full to ``.1``, and the older ones to the next number; the oldest goes. Raises OSError."""
    names = [newest, *(newest.with_name(f"{newest.name}.{n + 1}") for n in range(older_files))]
    for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
        if newer.exists():
            newer.replace(older)
    if not older_files:
        newest.unlink(missing_ok=True)


def configure(path: Path, *, level: int = logging.INFO, secrets: Sequence[str] = (), **bound: str | int) -> None:
    """Sends all logging of this process to the file at `path`; called once, by a role's main.

    `bound` is what every line carries: topology, container, process and, in an instance, component and task.
    `secrets` are texts that no line may contain.
    Warnings of Python are logged too. A line that cannot be written (no space) is lost and stops nothing.
    """
    handler = RotatingLog(path)
    handler.setFormatter(JsonLines(secrets, **bound))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    logging.raiseExceptions = False


def hide_in_warnings() -> None:
    """Takes the command's secrets out of the warnings that Python writes to stderr for a command, which has no log."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Warnings())
