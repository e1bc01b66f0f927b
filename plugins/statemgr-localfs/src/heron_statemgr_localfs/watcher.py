"""The watches of one state manager: one thread polls each watched node and reports its changes.

The thread polls when watchdog reports an event, and at a fixed period. A poll compares versions, so a lost or merged
event cannot hide the last change. The period also finds the node of a dead holder, which causes no event.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from heron.errors import StateError
from heron.spi.statemgr import Versioned
from heron_statemgr_localfs.node import Node

if TYPE_CHECKING:
    from heron_statemgr_localfs.change_signal import ChangeSignal

__all__ = ["FileWatch", "Watcher"]

_log = logging.getLogger(__name__)

_PERIOD_S = 0.5
"""The contract promises 1 s. Half of it is left for slow callbacks and machines."""

OnChange = Callable[[Versioned | None], None]


class FileWatch:
    """One watched node. Implements `heron.spi.statemgr.Watch`."""

    def __init__(self, node: Node, on_change: OnChange, watcher: Watcher) -> None:
        self.node = node
        self._on_change = on_change
        self._watcher = watcher
        self._version: int | None = None
        self._error = ""
        self._closed = False

    def begin(self) -> None:
        """Report the present value from the caller's thread. An unreadable node raises there."""
        record = self.node.read()
        self._notify(None if record is None else Versioned(record.value, record.version))

    def poll(self) -> None:
        """Read the node and report it if its version differs from the last reported version."""
        if self._closed:
            return
        try:
            record = self.node.read()
        except StateError as error:
            if str(error) != self._error:
                self._error = str(error)
                _log.warning("a watched node cannot be read, trying again: %s", error)
            return
        self._error = ""
        if (record.version if record is not None else None) != self._version:
            self._notify(None if record is None else Versioned(record.value, record.version))

    def close(self) -> None:
        self._closed = True
        self._watcher.remove(self)

    def _notify(self, present: Versioned | None) -> None:
        self._version = None if present is None else present.version
        try:
            self._on_change(present)
        except Exception:
            _log.exception("the callback of a watch of %s raised; the watch continues", self.node.path)


class Watcher:
    """Owns the thread and the watches. The state manager creates it for the first watch."""

    def __init__(self) -> None:
        self._watches: list[FileWatch] = []
        self._guard = threading.Lock()
        self._calling = threading.RLock()  # held during callbacks: `remove` waits for them, a callback may call it
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="statemgr-localfs-watch", daemon=True)
        self._thread.start()

    def add(self, node: Node, on_change: OnChange) -> FileWatch:
        node.make_folder()  # only an existing folder can be observed
        watch = FileWatch(node, on_change, self)
        watch.begin()
        with self._guard:
            self._watches = [*self._watches, watch]
        self._wake.set()
        return watch

    def remove(self, watch: FileWatch) -> None:
        with self._calling, self._guard:
            self._watches = [each for each in self._watches if each is not watch]

    def close(self) -> None:
        self._stopped = True
        self._wake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        signal: ChangeSignal | None = None
        try:
            while not self._stopped:
                self._wake.clear()
                with self._guard:
                    watches = self._watches
                signal = self._follow({watch.node.path.parent for watch in watches}, signal)
                for watch in watches:
                    with self._calling:
                        watch.poll()
                self._wake.wait(_PERIOD_S)
        finally:
            if signal is not None:
                signal.close()

    def _follow(self, folders: set[Path], signal: ChangeSignal | None) -> ChangeSignal | None:
        if signal is None and folders:
            # Imported here, so that only processes with a watch load watchdog, and in this thread.
            from heron_statemgr_localfs.change_signal import ChangeSignal  # noqa: PLC0415

            signal = ChangeSignal(self._wake.set)
        if signal is not None:
            for folder in folders:
                signal.follow(folder)
        return signal
