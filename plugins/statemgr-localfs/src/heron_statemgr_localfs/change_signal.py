"""Reports changes in folders of nodes, from the file system events of watchdog."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    DirDeletedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

__all__ = ["ChangeSignal"]

_log = logging.getLogger(__name__)
_CHANGES: list[type[FileSystemEvent]] = [FileCreatedEvent, FileDeletedEvent, FileMovedEvent, DirDeletedEvent]


class ChangeSignal(FileSystemEventHandler):
    """Calls `on_change` after a node was created, removed or replaced, but not after a read or a lock.

    The watcher also polls without a signal, because network file systems and machines without free inotify watches
    send no events. The signal only makes it faster.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._observer = Observer()
        self._observer.daemon = True
        self._folders: set[Path] = set()
        self._running = False

    def follow(self, folder: Path) -> None:
        """Start to observe a folder. Has no effect if the folder does not exist or the system refuses."""
        if folder in self._folders or not folder.is_dir():
            return
        self._folders.add(folder)
        try:
            self._observer.schedule(self, str(folder), event_filter=_CHANGES)
            if not self._running:
                self._observer.start()
                self._running = True
        except OSError as error:
            _log.warning(
                "changes in %s are found by polling only, because the system refuses a watch: %s", folder, error
            )

    def close(self) -> None:
        if self._running:
            self._observer.stop()
            self._observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        names = (os.fsdecode(event.src_path), os.fsdecode(event.dest_path))
        if any(name and not os.path.basename(name).startswith(".") for name in names):
            self._on_change()
