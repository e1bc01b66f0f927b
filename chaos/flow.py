"""The progress of each task of the topology, read from outside while it runs."""

from __future__ import annotations

import struct
from pathlib import Path

__all__ = ["SPOUTS", "Flow"]

SPOUTS = 2
_NUMBERS = struct.Struct("<8Q")
_MADE = 7


class Flow:
    """The flow files in the folder of a run; `topology-files/line_files.py` describes their content."""

    everything = tuple(f"lines-{spout}" for spout in range(SPOUTS))
    """The tasks through which all lines pass. A spout has handled a line when its tree is complete."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def made(self) -> tuple[int, ...]:
        """Return the number of lines that each spout has made."""
        return tuple(self._read(f"lines-{spout}")[_MADE] for spout in range(SPOUTS))

    def life(self, task: str) -> int:
        """Return the id of the process that last initialised a task; 0 if there was none."""
        return self._read(task)[0]

    def has_passed(self, task: str, lines: tuple[int, ...]) -> bool:
        """Return whether a task, such as ``split-0``, has handled a line of each spout after `lines`.

        A spout handles only its own lines: when their trees are complete.
        """
        numbers = self._read(task)
        component, _, index = task.partition("-")
        spouts = (int(index),) if component == "lines" else range(SPOUTS)
        return all(numbers[1 + spout] > lines[spout] for spout in spouts)

    def _read(self, task: str) -> tuple[int, ...]:
        try:
            return _NUMBERS.unpack((self._folder / f"flow-{task}").read_bytes())
        except (FileNotFoundError, struct.error):
            return (0,) * 8  # its first life has just begun
