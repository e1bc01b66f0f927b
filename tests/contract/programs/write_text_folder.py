"""Writes to files that appear with their checkpoint; poison is an element that is no text."""

from __future__ import annotations

from heron_streamlet import TextFolder
from heron_testing.connectors.programs import write_sink
from heron_testing.connectors.records import POISON


class Refused:
    """It has no text."""

    def __str__(self) -> str:
        msg = "poison has no text"
        raise ValueError(msg)


if __name__ == "__main__":
    write_sink(lambda given: TextFolder(given["folder"]), lambda text: Refused() if text.endswith(POISON) else text)
