"""A source that reads text files once."""

from __future__ import annotations

import glob
from collections.abc import Iterator

from heronpy.streamlet.context import Context
from heronpy.streamlet.generator import Generator

__all__ = ["TextFileGenerator"]


class TextFileGenerator(Generator):
    """Returns the lines of the files that match a glob pattern, in their order; files are divided among the tasks."""

    def __init__(self, textfiles: str) -> None:
        super().__init__()
        self._pattern = textfiles

    def setup(self, context: Context) -> None:  # type: ignore[override]  # the base class adapts it
        """Take every n-th file."""
        paths = sorted(glob.glob(self._pattern))
        self._lines = _lines(paths[context.get_partition_index() :: context.get_num_partitions()])

    def get(self) -> str:
        """Return the next line, without its end.

        Raises:
            StopIteration: after the last line.
        """
        return next(self._lines)


def _lines(paths: list[str]) -> Iterator[str]:
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                yield line.rstrip("\r\n")
