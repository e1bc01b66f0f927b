"""How far each task of the topology is, read from outside while it runs."""

from __future__ import annotations

import struct
from pathlib import Path

__all__ = ["SPOUTS", "Flow"]

SPOUTS = 2
_NUMBERS = struct.Struct("<8Q")
_MADE = 7


class Flow:
    """The flow files in the folder of a run; `topology-files/line_files.py` says what is in them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def made(self) -> tuple[int, ...]:
        """How many lines each spout has made."""
        return tuple(self._read(f"lines-{spout}")[_MADE] for spout in range(SPOUTS))

    def life(self, task: str) -> int:
        """The process that has initialised a task last, 0 before the first."""
        return self._read(task)[0]

    def beyond(self, task: str, lines: tuple[int, ...]) -> bool:
        """Whether a line of each spout that comes after those has been handled by a task, such as ``split-0``.

        A spout handles its own lines only: when their trees are complete.
        """
        numbers = self._read(task)
        component, _, index = task.partition("-")
        spouts = (int(index),) if component == "lines" else range(SPOUTS)
        return all(numbers[1 + spout] > lines[spout] for spout in spouts)

    def _read(self, task: str) -> tuple[int, ...]:
        try:
            return _NUMBERS.unpack((self._folder / f"flow-{task}").read_bytes())
        except (FileNotFoundError, struct.error):
            return (0,) * 8  # its first life is only just beginning
