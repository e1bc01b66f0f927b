"""The watches of one state manager: one thread polls each watched node.

A poll compares versions. It misses only a change that is followed by another change before the next poll. It lists one
small folder, which the name node answers from its memory.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable

from heron import clock
from heron.errors import StateError
from heron.spi.statemgr import Versioned
from heron_statemgr_hdfs.node import Node

__all__ = ["HdfsWatch", "Watcher"]

_log = logging.getLogger(__name__)

OnChange = Callable[[Versioned | None], None]


class HdfsWatch:
    """One watched node. Implements `heron.spi.statemgr.Watch`."""

    def __init__(self, node: Node, on_change: OnChange, watcher: Watcher) -> None:
        """Report the present value from the caller's thread. An unreadable node raises here."""
        self._node = node
        self._on_change = on_change
        self._watcher = watcher
        self._error = ""
        self._version = 0
        self._notify(node.read())

    def poll(self) -> Callable[[], None] | None:
        """Compare the node with the last report. Return a function that reports the change, or None."""
        try:
            pointer = self._node.pointer()
            if (pointer.version if pointer.token else 0) == self._version:
                self._error = ""
                return None
            present = self._node.read()
        except StateError as error:
            if str(error) != self._error:
                self._error = str(error)
                _log.warning("a watched node cannot be read, trying again: %s", error)
            return None
        changed = (present.version if present else 0) != self._version
        return functools.partial(self._notify, present) if changed else None

    def close(self) -> None:
        self._watcher.remove(self)

    def _notify(self, present: Versioned | None) -> None:
        self._version = present.version if present else 0
        try:
            self._on_change(present)
        except Exception:
            _log.exception("the callback of a watch of %s raised; the watch continues", self._node.label)


class Watcher:
    """Owns the thread and the watches. The state manager creates it for the first watch."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._watches: tuple[HdfsWatch, ...] = ()
        self._guard = threading.Lock()
        self._calling = threading.RLock()  # held during callbacks: `remove` waits for them, a callback may call it
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="statemgr-hdfs-watch", daemon=True)
        self._thread.start()

    def add(self, node: Node, on_change: OnChange) -> HdfsWatch:
        watch = HdfsWatch(node, on_change, self)
        with self._guard:
            self._watches = (*self._watches, watch)
        return watch

    def remove(self, watch: HdfsWatch) -> None:
        with self._calling, self._guard:
            self._watches = tuple(each for each in self._watches if each is not watch)

    def close(self, limit_s: float) -> None:
        """Stop all callbacks. Waits at most `limit_s` for a running one, which may itself wait for HDFS."""
        deadline_s = clock.monotonic_s() + limit_s
        with self._guard:
            self._stopped.set()
            self._watches = ()
        if self._calling.acquire(timeout=limit_s):
            self._calling.release()
        if threading.current_thread() is not self._thread:
            self._thread.join(max(0.0, deadline_s - clock.monotonic_s()))

    def _run(self) -> None:
        while not self._stopped.wait(self._period_s):
            with self._guard:
                watches = self._watches
            for watch in watches:
                if self._stopped.is_set():
                    return
                callback = watch.poll()
                if callback is not None:
                    with self._calling:
                        if watch in self._watches:
                            callback()
