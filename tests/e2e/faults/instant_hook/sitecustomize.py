"""Holds a process at an instant while a file says so; each process that has this folder in PYTHONPATH loads it.

An instant is an audit event: a topology of these tests raises ``heron.test.instant`` with its name, and the files that
the engine writes show the others. `held_instants` has the names and the files.
"""

from __future__ import annotations

import os
import sys
import threading

_FOLDER = os.environ.get("HERON_TEST_INSTANTS", "")
_PAUSE_S = 0.01


class _Instants:
    """The instants of this process; the first plan after a manifest says that the checkpoint is complete."""

    def __init__(self) -> None:
        self._has_manifest = False

    def name_of(self, event: str, arguments: tuple[object, ...]) -> str:
        """The name of the instant; "" for another event."""
        if event == "heron.test.instant":
            return str(arguments[0])
        if event == "os.rename":
            self._has_manifest |= str(arguments[1]).endswith("/manifest")
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT:
            path = str(arguments[0])
            if "/.manifest.part-" in path:
                return "manifest"
            if "/.task-" in path:
                return "store"
            if self._has_manifest and "/pplans/" in path and path.endswith(".tmp"):
                self._has_manifest = False
                return "complete"
        return ""

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Waits while the file of the instant exists."""
        name = self.name_of(event, arguments)
        if not name or not os.path.exists(file := os.path.join(_FOLDER, name)):
            return
        with open(f"{file}.{os.getpid()}", "w", encoding="utf-8"):
            pause = threading.Event()
        while os.path.exists(file):
            pause.wait(_PAUSE_S)


if _FOLDER:
    sys.addaudithook(_Instants().audit)
