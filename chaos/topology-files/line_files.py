"""The files of the chaos topology: what each holds, and how it is written so that a kill leaves no half of it.

A tag is 64 bits, from the lowest: line (32), spout (4), part (4), life of the spout (12), attempt in that life (12).
Journals and failures are tags, eight bytes each, little-endian: one write a tag, which a kill cannot cut. A flow file
is eight 64-bit numbers: the process, then for each spout the highest line that was handled, plus one; of a spout the
last is how many lines there are.
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
    """Makes the tags of one life of a spout."""

    def __init__(self, spout: int, life: int) -> None:
        self._base = spout << _SPOUT | life << _LIFE

    def of(self, line: int, attempt: int) -> int:
        """The tag of a line as a whole."""
        return self._base | attempt << _ATTEMPT | line

    @staticmethod
    def with_part(tag: int, part: int) -> int:
        """The tag of one part of that line."""
        return tag | part << _PART

    @staticmethod
    def spout(tag: int) -> int:
        """Whose line it is."""
        return tag >> _SPOUT & 15


class Log:
    """A file that only ever grows, whoever writes."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, data: bytes) -> None:
        """Appends, in one piece."""
        os.write(self._file, data)

    def write_tag(self, tag: int) -> None:
        """Appends eight bytes."""
        os.write(self._file, tag.to_bytes(8, "little"))


class Position:
    """The line below which all are acked, on disk: the old number or the new one, never half of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.written = self.read()

    def read(self) -> int:
        """0 in the first life."""
        return int(self._path.read_text(encoding="utf-8")) if self._path.exists() else 0

    def write(self, position: int) -> None:
        """Replaces it."""
        new = self._path.with_suffix(".new")
        new.write_text(str(position), encoding="utf-8")
        new.replace(self._path)
        self.written = position


class Flow:
    """How far a task is, for who watches from outside; survives the process, and only ever grows."""

    def __init__(self, folder: Path, context: TopologyContext) -> None:
        path = folder / f"flow-{context.get_component_id()}-{context.get_task_index()}"
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.truncate(file, _FLOW_BYTES)
        self._numbers = memoryview(mmap.mmap(file, _FLOW_BYTES)).cast("Q")
        os.close(file)
        self._numbers[0] = os.getpid()

    def handled(self, spout: int, line: int) -> None:
        """A line has come through here: in a spout, its tree is complete."""
        if line >= self._numbers[1 + spout]:
            self._numbers[1 + spout] = line + 1

    @property
    def lines(self) -> int:
        """How many lines there are, by all lives of a spout."""
        return self._numbers[_MADE]

    @lines.setter
    def lines(self, lines: int) -> None:
        if lines > self._numbers[_MADE]:  # noqa: PLR1730  # a call would cost more than all the rest
            self._numbers[_MADE] = lines


def options() -> Namespace:
    """The command line of the topology."""
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="where the files go, and the file that says stop")
    parser.add_argument("--rate", type=int, default=25_000, help="lines a second of all spouts together; 0: all it can")
    parser.add_argument("--journal", type=int, default=1, help="0: nothing is written down")
    return parser.parse_args()
