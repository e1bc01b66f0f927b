"""A directory of logs that a test writes, rotates and reads."""

from __future__ import annotations

import gzip
import os
import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path

from heron_connector_files import LogLine
from heron_connector_files.followed_log import Rules
from heron_connector_files.reader import DirectoryReader, Part
from heron_testing.fake_clock import FakeClock

LINGER_S = 5.0


class Logs:
    """A directory with logs, and readers of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = FakeClock()
        self.written = 0
        self._readers: list[DirectoryReader] = []

    def path(self, name: str) -> Path:
        return self.directory / name

    def write(self, count: int, name: str = "app.log", end: str = "\n") -> list[str]:
        """Append lines, which are numbers."""
        lines = [f"line {self.written + number}" for number in range(count)]
        self.written += count
        with self.path(name).open("a", encoding="ascii") as file:
            file.write("".join(line + "\n" for line in lines[:-1]) + (lines[-1] + end if lines else ""))
        return lines

    def rotate(self, how: str, keep: int = 9) -> None:
        """As logrotate does, the oldest first."""
        for number in range(keep, 0, -1):
            for end in ("", ".gz"):
                if (old := self.path(f"app.log.{number}{end}")).exists():
                    old.rename(self.path(f"app.log.{number + 1}{end}"))
        live, first = self.path("app.log"), self.path("app.log.1")
        if "copytruncate" in how:
            shutil.copyfile(live, first)
            os.truncate(live, 0)
        else:
            live.rename(first)
            live.touch()
        if "compress" in how:
            compress(self.path("app.log.2" if "delay" in how else "app.log.1"))

    def reader(
        self, position: object = None, *, skips: bool = False, line_bytes: int = 1000, names: str = "*.log"
    ) -> DirectoryReader:
        rules = Rules(self.directory, line_bytes, LINGER_S, skips)
        reader = DirectoryReader(Part(names, 0, 1, 0.1), rules, pickle.loads(pickle.dumps(position)), self.clock)
        self._readers.append(reader)
        return reader

    def close(self) -> None:
        for each in self._readers:
            each.close()


def compress(path: Path) -> None:
    """As gzip does: the compressed file has the time of the plain one."""
    if path.exists():
        stat, packed = path.stat(), path.with_name(path.name + ".gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        os.utime(packed, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        path.unlink()


def texts(lines: Sequence[LogLine]) -> list[str]:
    return [each.text for each in lines]


def read(reader: DirectoryReader, clock: FakeClock, limit: int = 7) -> list[LogLine]:
    """What there is now."""
    found: list[LogLine] = []
    clock.advance(1.0)
    while lines := reader.read(limit):
        found += lines
    return found
