"""Text files as the server of a source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heron_testing.connectors.feeds import SourceFeed

__all__ = ["FileFeed"]


class FileFeed(SourceFeed):
    """A file for each partition."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.given: dict[str, object] = {"pattern": str(folder / "*.txt")}

    def put(self, partition: int, texts: Sequence[str]) -> None:
        """Append lines."""
        with (self.folder / f"{partition}.txt").open("a", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in texts)
