"""Prints the logs of a container on the output of its launcher, where the cluster keeps them.

Lines of the engine are JSON with the name of their process, and are printed as they are. Every other line gets the name
of its file in front: ``count-5 | TEXT``. A separate thread prints, because the reader of the output may stand still.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from heron.driver_kit.followed_log import FollowedLog

__all__ = ["ContainerOutput"]

_PERIOD_S = 0.5
_CHUNK_BYTES = 1 << 16
_LINE_BYTES = 1 << 20  # a longer line is printed in pieces of this size
_LAST_S = 1.0
_ENGINE = ".log"
_SUFFIXES = (_ENGINE, ".err", ".out")


class ContainerOutput:
    """Follows all logs in a folder until it is closed."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        """The folder need not exist yet. Lines go to `descriptor`, which stays open."""
        self._folder = folder
        self._descriptor = descriptor
        self._logs: dict[Path, FollowedLog] = {}
        self._rests: dict[Path, bytes] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="container-output", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Print what is left, and return after a second at most."""
        self._closing.set()
        self._thread.join(_LAST_S)

    def _run(self) -> None:
        try:
            while not self._closing.wait(_PERIOD_S):
                self._print_new()
            self._print_new()
            for path, rest in self._rests.items():
                self._print(path, [rest] if rest else [])
        except OSError:
            return  # nobody reads the output any more
        finally:
            for log in self._logs.values():
                log.close()

    def _print_new(self) -> None:
        for path in sorted(self._folder.glob("*")):
            if path.suffix in _SUFFIXES and path not in self._logs:
                self._logs[path] = FollowedLog(path, hold=True)
        for path, log in self._logs.items():
            while chunk := log.read(_CHUNK_BYTES):
                *lines, rest = (self._rests.get(path, b"") + chunk).split(b"\n")
                if len(rest) > _LINE_BYTES:
                    lines, rest = [*lines, rest], b""
                self._rests[path] = rest
                self._print(path, lines)

    def _print(self, path: Path, lines: list[bytes]) -> None:
        title = b"" if path.suffix == _ENGINE else f"{path.stem} | ".encode()
        data = memoryview(b"".join(title + line + b"\n" for line in lines))
        while data:
            data = data[os.write(self._descriptor, data) :]
