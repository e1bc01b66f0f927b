"""The logs of containers that run on workers, on the machine that submitted, where ``heron logs`` reads them."""

from __future__ import annotations

import re
from pathlib import Path

from heron.driver_kit.log import MAX_BYTES, rename_older
from heron_scheduler_spark.log_shipper import LOG_SUFFIXES

__all__ = ["LogMirror"]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")


class LogMirror:
    """Appends what comes to the file of that name; one that is full is renamed, as any log."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def take(self, name: str, text: str) -> None:
        """A name that is no file's is left out; so is what finds no room, as in any log."""
        if not _NAME.fullmatch(name) or not name.endswith(LOG_SUFFIXES):
            return
        path = self._folder / name
        try:
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                full = file.tell() >= self._max_bytes
            if full:
                rename_older(path)
        except OSError:
            return
