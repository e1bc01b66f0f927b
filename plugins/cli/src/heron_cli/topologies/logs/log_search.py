"""Searches the log folder of a run, older files included."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from heron.driver_kit.log import OLDER_FILES
from heron_cli.topologies.logs.log_files import LogFolder, LogLine

__all__ = ["process_logs", "search_logs"]

_LINE_BYTES = 1 << 20  # a longer line is searched in pieces of this size
_ESCAPED = frozenset('"\\/<>')  # JSON may write these characters in more than one way


def search_logs(folder: Path, task_id: int | None, text: str, count: int) -> tuple[LogLine, ...]:
    """Return the last `count` lines of each file that contain `text` in any case, ordered as by `LogFolder.last`.

    A process keeps at most 30 MiB of logs. The lines of a traceback belong to their record.

    Raises:
        UsageError: when the task has no logs there.
    """
    return _found(LogFolder(folder, task_id), text.casefold(), count)


def process_logs(folder: Path, process: str, count: int, search: str = "") -> tuple[LogLine, ...]:
    """Return the last `count` lines of each log of one process, such as ``stmgr-1``, that contain a text ("": any).

    Raises:
        UsageError: when the process has no logs there.
    """
    with closing(LogFolder(folder, process=process)) as logs:
        return _found(logs, search.casefold(), count) if search else (*logs.last(count), *logs.new(final=True))


def _found(logs: LogFolder, wanted: str, count: int) -> tuple[LogLine, ...]:
    engine: list[LogLine] = []
    printed: list[LogLine] = []
    for path in logs.paths():
        found = deque(_matching(logs, path, wanted), maxlen=count)
        (engine if logs.is_of_engine(path) else printed).extend(found)
    return (*sorted(engine, key=lambda line: line.at), *printed)


def _matching(logs: LogFolder, path: Path, wanted: str) -> Iterator[LogLine]:
    needle = wanted.encode()
    # Reading JSON takes ten times as long as a search in bytes, which suffices to exclude most lines.
    excludes = wanted.isascii() and wanted.isprintable() and not _ESCAPED.intersection(wanted)
    older = [path.with_name(f"{path.name}.{number}") for number in range(OLDER_FILES, 0, -1)]
    for each in (*older, path):
        for raw in _lines(each):
            if excludes and raw.isascii() and needle not in raw.lower():
                continue
            line = logs.line_of(path, raw.decode("utf-8", "backslashreplace").rstrip("\r\n"))
            if wanted in line.text.casefold() or wanted in line.error.casefold():
                yield line


def _lines(path: Path) -> Iterator[bytes]:
    """The lines that the file has now: a process may write faster than they are searched."""
    try:
        stream = path.open("rb")
    except OSError:  # it does not exist, or it was renamed
        return
    with stream:
        left = os.fstat(stream.fileno()).st_size
        while left > 0 and (line := stream.readline(min(left, _LINE_BYTES))):
            left -= len(line)
            yield line
