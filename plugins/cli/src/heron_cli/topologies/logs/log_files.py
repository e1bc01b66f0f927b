"""The log folder of a run: the engine's JSON lines and the output of the author's code, read from the end and followed.

Reads the files of this machine only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from heron.driver_kit.followed_log import FollowedLog
from heron.driver_kit.log import OLDER_FILES
from heron.errors import UsageError, known
from heron.spi.typed_values import decode_json

__all__ = ["ENGINE", "LogFile", "LogFolder", "LogLine", "log_line", "who_writes"]

ENGINE = ("executor", "metricsmgr", "stmgr", "supervisor", "tmanager")
"""The names of the engine's own processes."""

_ENGINE_SUFFIX = ".log"  # JSON lines; the other files are the output of the processes
_SUFFIXES = (_ENGINE_SUFFIX, ".err", ".out")
_NAME = re.compile(r"(?P<name>.+)-(?P<number>\d+)", re.ASCII)
_CHUNK_BYTES = 1 << 16
_LINE_BYTES = 1 << 20  # a longer line without an end is returned in pieces of this size


class LogFolder:
    """The files of a log folder, or those of one task or process; it includes files that appear later."""

    def __init__(self, folder: Path, task_id: int | None = None, process: str = "") -> None:
        """`process` is the name of its files without suffix, such as ``stmgr-1``."""
        self._folder = folder
        self._task_id = task_id
        self._process = process
        self._files: dict[Path, LogFile] = {}

    def last(self, count: int) -> list[LogLine]:
        """Return the last lines of each file: those of the engine by time, then the output of the tasks, by task.

        Raises:
            UsageError: when the task or the process has no files here; names the tasks that have files.
        """
        engine: list[LogLine] = []
        printed: list[LogLine] = []
        for path in self.paths():
            file = self._files[path] = LogFile(path)
            rendered = [self.line_of(path, line) for line in file.last(count)]
            (engine if self.is_of_engine(path) else printed).extend(rendered)
        return sorted(engine, key=lambda line: line.at) + printed

    def new(self, *, final: bool = False) -> Iterator[LogLine]:
        """Return the lines since the last call; with `final`, also last lines without an end."""
        for path in self._paths():
            if path not in self._files:
                self._files[path] = LogFile(path)
            yield from (self.line_of(path, line) for line in self._files[path].lines(final=final))

    def close(self) -> None:
        """Close the files; idempotent."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def paths(self) -> list[Path]:
        """Return the newest file of each process. Raises as `last` does."""
        paths = self._paths()
        if self._task_id is not None and not paths:
            tasks = ", ".join(sorted({who for who, task_id in map(_who, self._all()) if task_id})) or "none"
            msg = f"task {self._task_id} has no logs in {self._folder}; tasks: {tasks}"
            raise UsageError(msg)
        if self._process and not paths:
            names = sorted({path.stem for path in self._all()})
            msg = f"process {self._process!r:.80} has no logs in {self._folder}; there are {known(names)}"
            raise UsageError(msg)
        return paths

    @staticmethod
    def is_of_engine(path: Path) -> bool:
        """Return whether the file has the engine's JSON lines; the others have the output of the author's code."""
        return path.suffix == _ENGINE_SUFFIX

    @classmethod
    def line_of(cls, path: Path, line: str) -> LogLine:
        """Return a line of a file."""
        return log_line(_who(path)[0], line, engine=cls.is_of_engine(path))

    def _paths(self) -> list[Path]:
        paths = [path for path in self._all() if self._task_id in (None, _who(path)[1])]
        return [path for path in paths if self._process in ("", path.stem)]

    def _all(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.suffix in _SUFFIXES)


def _who(path: Path) -> tuple[str, int]:
    return who_writes(path.stem)


class LogFile:
    """A file that need not exist yet, and that a process may rename and replace at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = FollowedLog(path)
        self._gaps = 0
        self._rest = b""  # the beginning of a line whose end has not been read

    def last(self, count: int) -> list[str]:
        """Return the last lines, also of older files (``.1``, ``.2``); `lines` continues after them."""
        lines: list[str] = []
        self._log.to_newest()
        if self._log.stream is not None:
            found, self._rest = _tail(self._log.stream, count)
            lines = found
        for number in range(1, OLDER_FILES + 1):
            if len(lines) < count:
                lines[:0] = _older(self.path.with_name(f"{self.path.name}.{number}"), count - len(lines))
        return lines

    def lines(self, *, final: bool = False) -> Iterator[str]:
        """Return new lines; with `final`, also a last line without an end. Says where lines were removed unread."""
        while chunk := self._log.read(_CHUNK_BYTES):
            if self._log.gaps > self._gaps:
                self._gaps = self._log.gaps
                yield from self._end()
                yield "heron: lines are left out: they came faster than they were read"
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            yield from map(_decoded, whole)
            if len(self._rest) > _LINE_BYTES:
                yield from self._end()
        if final:
            yield from self._end()

    def close(self) -> None:
        """Close the file; idempotent."""
        self._log.close()

    def _end(self) -> Iterator[str]:
        if self._rest:
            rest, self._rest = self._rest, b""
            yield _decoded(rest)


def _older(path: Path, count: int) -> list[str]:
    try:
        with path.open("rb") as stream:
            lines, rest = _tail(stream, count)
    except OSError:
        return []
    return lines + ([_decoded(rest)] if rest else [])


def _tail(stream: BinaryIO, count: int) -> tuple[list[str], bytes]:
    """Return the last whole lines of the stream, and the rest after them; the stream is then at its end."""
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
        del whole[:1]  # the first line is cut
    return [_decoded(line) for line in whole[-count:]] if count else [], rest


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").rstrip("\r")


class _Record(msgspec.Struct):
    at: str
    level: str
    message: str
    logger: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the process or task `who` (``stmgr-1``, ``count/5``).

    A line of the engine has a time `at` (UTC) and a `level`; output of user code has neither.
    """

    who: str
    text: str
    at: str = ""
    level: str = ""
    error: str = ""

    def formatted(self) -> str:
        """Return the line for people, with a traceback below its message."""
        if not self.at:
            return f"{self.who} | {self.text}"
        lines = [f"{self.at[:23].replace('T', ' ')} {self.level:<8} {self.text}", *self.error.splitlines()]
        return "\n".join(f"{self.who} | {line}" for line in lines)


def who_writes(stem: str) -> tuple[str, int]:
    """Return who writes the file of that name (without suffix), and the task id; 0 for a process of the engine."""
    found = _NAME.fullmatch(stem)
    if found is None or found["name"] in ENGINE:
        return stem, 0
    return f"{found['name']}/{found['number']}", int(found["number"])


def log_line(who: str, text: str, *, engine: bool) -> LogLine:
    """Return a line of a file; in a file of the engine, text that is not a record is kept as it is."""
    if engine:
        try:
            record = decode_json(text.encode("utf-8", "replace"), _Record)
        except msgspec.MsgspecError:
            return LogLine(who, text)
        return LogLine(who, record.message, record.at, record.level, record.error)
    return LogLine(who, text)
