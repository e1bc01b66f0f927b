"""The files of the chaos topology: their content, and how a write stays whole when the process is killed.

A tag is 64 bits, from the lowest: line (32), spout (4), part (4), life of the spout (12), attempt in that life (12).
Journals and failures are tags of eight bytes each, little-endian. Each tag is one write, which a kill cannot split. A
flow file is eight 64-bit numbers. The first is the process id. Then follows, for each spout, the highest handled line
plus one. The last number of a spout's file is the number of its lines.
"""

from __future__ import annotations

import mmap
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from heron.api import TopologyContext

__all__ = ["LINE", "PARTS", "Flow", "LineTag", "Log", "Position", "options"]

LINE = 0xFFFF_FFFF
PARTS = 2

_SPOUT, _PART, _LIFE, _ATTEMPT = 32, 36, 40, 52
_FLOW_BYTES = 64
_MADE = 7


class LineTag:
    """Creates the tags of one life of a spout."""

    def __init__(self, spout: int, life: int) -> None:
        self._base = spout << _SPOUT | life << _LIFE

    def of(self, line: int, attempt: int) -> int:
        """Return the tag of a whole line."""
        return self._base | attempt << _ATTEMPT | line

    @staticmethod
    def with_part(tag: int, part: int) -> int:
        """Return the tag of one part of that line."""
        return tag | part << _PART

    @staticmethod
    def spout(tag: int) -> int:
        """Return the spout of the line."""
        return tag >> _SPOUT & 15


class Log:
    """A file that all lives of a task append to."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, data: bytes) -> None:
        """Append in one write."""
        os.write(self._file, data)

    def write_tag(self, tag: int) -> None:
        """Append eight bytes."""
        os.write(self._file, tag.to_bytes(8, "little"))


class Position:
    """The line below which all lines are acked. The file always holds the old number or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.written = self.read()

    def read(self) -> int:
        """Return the stored position; 0 in the first life."""
        return int(self._path.read_text(encoding="utf-8")) if self._path.exists() else 0

    def write(self, position: int) -> None:
        """Replace the file."""
        new = self._path.with_suffix(".new")
        new.write_text(str(position), encoding="utf-8")
        new.replace(self._path)
        self.written = position


class Flow:
    """The progress of a task for an observer outside. It survives the process, and only grows."""

    def __init__(self, folder: Path, context: TopologyContext) -> None:
        path = folder / f"flow-{context.get_component_id()}-{context.get_task_index()}"
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.truncate(file, _FLOW_BYTES)
        self._numbers = memoryview(mmap.mmap(file, _FLOW_BYTES)).cast("Q")
        os.close(file)
        self._numbers[0] = os.getpid()

    def handled(self, spout: int, line: int) -> None:
        """Record a line as handled; for a spout, its tree is complete."""
        if line >= self._numbers[1 + spout]:
            self._numbers[1 + spout] = line + 1

    @property
    def lines(self) -> int:
        """The number of lines that all lives of a spout have made."""
        return self._numbers[_MADE]

    @lines.setter
    def lines(self, lines: int) -> None:
        if lines > self._numbers[_MADE]:  # noqa: PLR1730  # a call would cost more than the rest of the method
            self._numbers[_MADE] = lines


def options() -> Namespace:
    """Parse the command line of the topology."""
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the files and of the stop file")
    parser.add_argument("--rate", type=int, default=25_000, help="lines a second of all spouts together; 0: unlimited")
    parser.add_argument("--journal", type=int, default=1, help="0: write no journals")
    parser.add_argument("--state", type=int, default=0, help="1: count in keyed state, which is saved every second")
    return parser.parse_args()
