"""Where collectors listen, as files in a folder that clients read."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from pathlib import Path

from heron_connector_scribe.service_options import ServiceOptions

__all__ = ["Announcement", "announced"]

_WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  # compared, not bound


class Announcement:
    """The file of one task: its index is the name, ``HOST:PORT`` the content.

    A task that moves, or whose index another task has by now, leaves the file of its successor alone.
    """

    def __init__(self, options: ServiceOptions, index: int) -> None:
        self._path = Path(options.announce) / str(index) if options.announce else None
        bound = socket.gethostname() if options.host in _WILDCARDS else options.host
        self._host = options.advertise or bound
        self._text = ""

    def write(self, port: int) -> None:
        """Announce the port.

        Raises:
            OSError: when the folder cannot be written.
        """
        if self._path is None:
            return
        self._text = f"{self._host}:{port}\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        draft.write_text(self._text, encoding="utf-8")
        os.replace(draft, self._path)

    def remove(self) -> None:
        """Remove the file, if it is still this task's."""
        if self._path is not None and self._text:
            with contextlib.suppress(OSError):
                if self._path.read_text(encoding="utf-8") == self._text:
                    self._path.unlink()


def announced(folder: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """The addresses of the collectors that announce themselves in a folder, by their index.

    A process that was killed leaves its address there until its successor listens, so an address may refuse
    connections: a client tries another one.
    """
    found = []
    for path in sorted((each for each in Path(folder).glob("[0-9]*")), key=lambda each: int(each.name)):
        with contextlib.suppress(FileNotFoundError):
            host, _, port = path.read_text(encoding="utf-8").strip().rpartition(":")
            found.append((host, int(port)))
    return found
