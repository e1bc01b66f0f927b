"""Reads text files as a source with a likely mistake: it goes on at a wrong place."""

from __future__ import annotations

from typing import TypeVar

from heron_streamlet import Reader, StageContext, TextFiles
from heron_testing.connectors.programs import Given, read_source

T = TypeVar("T")


class ForgetfulFiles(TextFiles):
    """Begins again with each process."""

    def open(self, partition: str, position: object, context: StageContext) -> Reader[str]:
        """`Source.open`."""
        return super().open(partition, None, context)


class LossyFiles(TextFiles):
    """Leaves out a line behind the position."""

    def open(self, partition: str, position: object, context: StageContext) -> Reader[str]:
        """`Source.open`."""
        reader = super().open(partition, position, context)
        if position:
            reader.read(1)
        return reader


def source(given: Given) -> TextFiles:
    """The source that the test wants."""
    return (ForgetfulFiles if given["mistake"] == "forgetful" else LossyFiles)(given["pattern"])


if __name__ == "__main__":
    read_source(source, str)
