"""Reads the logs of one partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

from heron.clock import Clock
from heron.errors import ConnectorError
from heron_connector_files.directory import Entry, families, listed
from heron_connector_files.followed_log import FollowedLog, Rules
from heron_connector_files.log_line import LogLine
from heron_connector_files.mark import Mark

__all__ = ["DirectoryPosition", "DirectoryReader", "Part"]


@dataclass(frozen=True, slots=True)
class DirectoryPosition:
    """Where reading of a partition goes on: the marks of the files of each log. `last` is the line at hand."""

    marks: Mapping[str, tuple[Mark, ...]]
    last: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"<{len(self.marks)} logs>" if self.last is None else f"log {self.last[0]}, byte {self.last[1]}"


@dataclass(frozen=True, slots=True)
class Part:
    """The logs of a partition: those whose name `has` takes, and their directory is listed every `scan_s`."""

    pattern: str
    number: int
    of: int
    scan_s: float

    def has(self, log: str) -> bool:
        """Whether a log belongs to it. CRC-32 is the same in every process and run."""
        return crc32(log.encode(errors="surrogateescape")) % self.of == self.number


class DirectoryReader:
    """A `PlacedReader`. The elements of a `read` are of one file; the logs have them in turn."""

    def __init__(self, part: Part, rules: Rules, position: object, clock: Clock) -> None:
        self._part, self._rules, self._clock = part, rules, clock
        marks = position.marks if isinstance(position, DirectoryPosition) else {}
        self._logs = {name: self._log(name, each) for name, each in marks.items()}
        self._known = set(self._logs)  # logs of all partitions
        self._listed: dict[str, list[tuple[str, int]]] = {}
        self._scanned_s: float | None = None
        self._turn = 0
        self._last: FollowedLog | None = None
        self._lines: Sequence[LogLine] = ()
        self._read_lines = self._read_bytes = 0
        self._past_lost = self._past_truncated = 0  # of logs that are gone

    @property
    def position(self) -> DirectoryPosition:
        """`Reader.position`."""
        return self._position(None)

    def position_of(self, index: int) -> DirectoryPosition:
        """`PlacedReader.position_of`."""
        return self._position(self._lines[index])

    def read(self, limit: int) -> Sequence[LogLine]:
        """`Reader.read`.

        Raises:
            ConnectorError: when the directory or a file cannot be read, or a file is gone that was not read to its end.
                The other logs go on with the next calls.
        """
        self._lines, self._last = (), None
        now_s = self._clock.monotonic_s()
        problem: ConnectorError | None = None
        if self._scanned_s is None or now_s - self._scanned_s >= self._part.scan_s:
            self._scanned_s = now_s
            problem = self._scan()
        logs = list(self._logs.values())
        for _ in logs:
            self._turn += 1
            log = logs[self._turn % len(logs)]
            lines = log.read(limit, now_s)
            if lines:
                self._lines, self._last = lines, log
                self._read_lines += len(lines)
                self._read_bytes += sum(len(each.data) + 1 for each in lines)
                return lines
        if problem is not None:
            raise problem
        return ()

    def backlog(self) -> float | None:
        """How many lines wait, by the mean length of those that were read; None before the first one, if some wait."""
        lag_bytes = self._lag_bytes()
        if not lag_bytes and self._scanned_s is not None:
            return 0.0
        return lag_bytes * self._read_lines / self._read_bytes if self._read_lines else None

    def gauges(self) -> Mapping[str, float]:
        """`GaugedReader.gauges`."""
        logs = self._logs.values()
        return {
            "lag-bytes": float(self._lag_bytes()),
            "logs": float(len(logs)),
            "lost-files": float(self._past_lost + sum(each.lost for each in logs)),
            "truncated-files": float(self._past_truncated + sum(each.truncated for each in logs)),
        }

    def close(self) -> None:
        """`Reader.close`."""
        for each in self._logs.values():
            each.close()

    def _lag_bytes(self) -> int:
        return sum(each.lag_bytes() for each in self._logs.values())

    def _scan(self) -> ConnectorError | None:
        """Finds logs, their new files, and logs that are gone. Returns the last problem; the next scan tries again."""
        try:
            everywhere = families(listed(self._rules.directory), self._part.pattern, self._known)
        except ConnectorError as error:
            return error
        problem: ConnectorError | None = None
        self._known = {*everywhere, *self._logs}
        found = {name: each for name, each in everywhere.items() if self._part.has(name)}
        for name, entries in found.items():
            names = [(each.name, each.inode) for each in entries]
            if names != self._listed.get(name):
                if name not in self._logs:
                    self._logs[name] = self._log(name, ())
                try:
                    self._logs[name].follow(entries)
                    self._listed[name] = names
                except ConnectorError as error:
                    problem = error
        for name in [name for name, each in self._logs.items() if name not in found and each.is_done]:
            log = self._logs.pop(name)
            self._listed.pop(name, None)
            self._past_lost += log.lost
            self._past_truncated += log.truncated
            log.close()
        return problem

    def _log(self, name: str, marks: tuple[Mark, ...]) -> FollowedLog:
        return FollowedLog(name, self._rules, marks, partial(self._entries, name))

    def _entries(self, name: str) -> Sequence[Entry]:
        return families(listed(self._rules.directory, name), self._part.pattern, self._known).get(name, ())

    def _position(self, at: LogLine | None) -> DirectoryPosition:
        marks = {
            name: found
            for name, log in self._logs.items()
            if (found := log.marks(at.offset if at is not None and log is self._last else None))
        }
        return DirectoryPosition(marks, None if at is None else (at.log, at.offset))
