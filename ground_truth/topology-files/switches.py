"""Faults of the author's own code, which the harness switches on while the topology runs."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["Switches"]

_LOOK_S = 0.2


class Switches:
    """The files of a folder: each is a fault that is on, and its text has the details."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._looked_s = -_LOOK_S
        self._on: dict[str, str] = {}

    def text(self, name: str) -> str | None:
        """Return the details of a fault, or None while it is off."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._on = {path.name: path.read_text(encoding="utf-8") for path in self._folder.glob("[!.]*")}
        return self._on.get(name)

    def numbers(self, name: str) -> list[float]:
        """Return the numbers of a fault; empty while it is off."""
        return [float(word) for word in (self.text(name) or "").split()]
