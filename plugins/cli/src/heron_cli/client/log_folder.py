"""The log folder of a run: the logs of its processes, and what its tasks print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heron.errors import UsageError
from heron_cli.client.log_file import LogFile
from heron_cli.client.log_line import LogLine, log_line, who_writes

__all__ = ["LogFolder"]

_ENGINE = ".log"  # JSON lines; the others are what the processes print
_SUFFIXES = (_ENGINE, ".err", ".out")


class LogFolder:
    """All its files, or those of one task; files that appear later belong to it."""

    def __init__(self, folder: Path, task_id: int | None = None) -> None:
        self._folder = folder
        self._task_id = task_id
        self._files: dict[Path, LogFile] = {}

    def last(self, count: int) -> list[LogLine]:
        """The last lines of each file: the engine's by time, then what was printed, by task.

        Raises:
            UsageError: when the task has no files here; names those that have.
        """
        paths = self._paths()
        if self._task_id is not None and not paths:
            tasks = ", ".join(sorted({who for who, task_id in map(_who, self._all()) if task_id})) or "none"
            msg = f"task {self._task_id} has no logs in {self._folder}; tasks: {tasks}"
            raise UsageError(msg)
        engine: list[LogLine] = []
        printed: list[LogLine] = []
        for path in paths:
            file = self._files[path] = LogFile(path)
            rendered = [_rendered(path, line) for line in file.last(count)]
            (engine if path.suffix == _ENGINE else printed).extend(rendered)
        return sorted(engine, key=lambda line: line.at) + printed

    def new(self, *, final: bool = False) -> Iterator[LogLine]:
        """The lines since the last call; with `final`, also last ones that have no end."""
        for path in self._paths():
            if path not in self._files:
                self._files[path] = LogFile(path)
            yield from (_rendered(path, line) for line in self._files[path].lines(final=final))

    def close(self) -> None:
        """Closes the files; idempotent."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _paths(self) -> list[Path]:
        return [path for path in self._all() if self._task_id in (None, _who(path)[1])]

    def _all(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.suffix in _SUFFIXES)


def _who(path: Path) -> tuple[str, int]:
    return who_writes(path.stem)


def _rendered(path: Path, line: str) -> LogLine:
    return log_line(_who(path)[0], line, engine=path.suffix == _ENGINE)
