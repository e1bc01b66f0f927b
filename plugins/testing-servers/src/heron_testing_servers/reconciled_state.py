"""The state of a server in a file, and the thread that acts on it: after each change, and when a time has come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.http_service import read_json, write_json

__all__ = ["ReconciledState"]

_IDLE_S = 3600.0


class ReconciledState:
    """One document; threads that read or change it have `lock`."""

    def __init__(self, path: Path, default: dict[str, Any]) -> None:
        """Read the document of the file, or begin with `default`."""
        self.lock = threading.RLock()
        self.document: dict[str, Any] = read_json(path, default)
        self._path = path
        self._work = threading.Condition(self.lock)
        self._again = False

    def keep(self) -> None:
        """Write the document."""
        write_json(self._path, self.document)

    def save(self) -> None:
        """Write the document after a change, and let the thread act."""
        self.keep()
        self._again = True
        self._work.notify_all()

    def run(self, act: Callable[[list[float]], None]) -> None:
        """Start the thread. `act` gets a list for the times of the day at which it has to act again."""
        threading.Thread(target=self._rounds, args=(act,), daemon=True).start()

    def _rounds(self, act: Callable[[list[float]], None]) -> None:
        while True:
            with self.lock:
                times = [wall_s() + _IDLE_S]
                self._again = False
                act(times)
                self.keep()
                if not self._again:
                    self._work.wait(max(0.0, min(times) - wall_s()))
