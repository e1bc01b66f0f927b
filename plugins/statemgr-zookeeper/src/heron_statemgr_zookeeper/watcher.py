"""The watches of one state manager: one thread reads a znode when ZooKeeper reports a possible change.

A watch of ZooKeeper fires once, and it ends with its connection. So each read sets the watch again in the same request.
After each new connection the thread reads all watched znodes, which finds the changes in between. An event alone never
causes a callback: the thread compares what it has read.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from heron import clock
from heron.errors import StateError, StateUnavailableError
from heron_statemgr_zookeeper.connection import Connection
from heron_statemgr_zookeeper.operation import ZNode

__all__ = ["Polled", "Watcher", "ZNodeWatch"]

_log = logging.getLogger(__name__)

_RETRY_S = 0.5  # after a poll that failed although there is a connection
_CLOSE_S = 1.0  # an answer takes milliseconds; without an answer the thread ends by itself


class Polled(Protocol):
    """An object that the thread polls when it is due."""

    due: bool
    """Whether a poll is needed. It is set before the thread is woken, and cleared before the poll."""

    def poll(self, connection: Connection, timeout_s: float) -> Callable[[], None] | None:
        """Poll once. Return the callback that the thread calls next, or None."""
        ...


class ZNodeWatch:
    """Implements `heron.spi.statemgr.Watch`; reports a znode only if it differs from the last report."""

    def __init__(self, path: str, on_change: Callable[[ZNode | None], None], watcher: Watcher) -> None:
        self.path = path
        self.due = True
        self._on_change = on_change
        self._watcher = watcher
        self._change: int | None = None
        self._error = ""

    def on_event(self, _event: object) -> None:
        """Called by a thread of kazoo, once for each read that set this watch."""
        self.due = True
        self._watcher.wake()

    def begin(self, connection: Connection, deadline_s: float) -> None:
        """Report the present znode from the caller's thread; errors go to the caller."""
        self.due = False
        self._notify(connection.read_and_watch(self.path, self.on_event, deadline_s))

    def poll(self, connection: Connection, timeout_s: float) -> Callable[[], None] | None:
        """Read the znode; return a function that reports the change, or None. An unavailable store is no change."""
        self.due = False
        try:
            connection.connect(0.0)
            znode = connection.read_and_watch(self.path, self.on_event, clock.monotonic_s() + timeout_s)
        except StateUnavailableError:
            self.due = True  # for the next connection
            return None
        except StateError as error:
            self.due = True
            if str(error) != self._error:
                self._error = str(error)
                _log.warning("a watched node cannot be read, trying again: %s", error)
            return None
        self._error = ""
        return None if _change(znode) == self._change else functools.partial(self._notify, znode)

    def close(self) -> None:
        self._watcher.remove(self)

    def _notify(self, znode: ZNode | None) -> None:
        self._change = _change(znode)
        try:
            self._on_change(znode)
        except Exception:
            _log.exception("the callback of a watch of %s raised; the watch continues", self.path)


class Watcher:
    """Owns the thread and everything that it polls. The thread starts with the first watch."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._polled: list[Polled] = []
        self._guard = threading.Lock()
        self._calling = threading.RLock()  # held during callbacks: `remove` waits for them, a callback may call it
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, connection: Connection, path: str, on_change: Callable[[ZNode | None], None]) -> ZNodeWatch:
        """Report the present znode from this thread, and each later change from the watcher's thread."""
        watch = ZNodeWatch(path, on_change, self)
        watch.begin(connection, clock.monotonic_s() + self._timeout_s)
        self.add(connection, watch)
        return watch

    def add(self, connection: Connection, polled: Polled) -> None:
        """Poll the object whenever it is due, until `remove`."""
        with self._guard:
            self._polled = [*self._polled, polled]
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(
                    target=self._run, args=(connection,), name="zookeeper-watch", daemon=True
                )
                self._thread.start()
        self._wake.set()  # it may have become due before it was in the list

    def poll_all(self) -> None:
        """Make everything due. Needed after each new connection, because watches end with their connection."""
        for polled in self._polled:
            polled.due = True
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    def remove(self, polled: Polled) -> None:
        """Poll the object no longer. No callback of it runs after the return."""
        with self._calling, self._guard:
            self._polled = [each for each in self._polled if each is not polled]

    def close(self) -> None:
        """Stop all callbacks. Waits at most a second for a running one, which may itself wait for ZooKeeper."""
        deadline_s = clock.monotonic_s() + _CLOSE_S
        with self._guard:
            self._stopped.set()
            self._polled = []
        self._wake.set()
        if self._calling.acquire(timeout=_CLOSE_S):
            self._calling.release()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join(max(0.0, deadline_s - clock.monotonic_s()))

    def _run(self, connection: Connection) -> None:
        while not self._stopped.is_set():
            self._wake.clear()
            for polled in self._polled:
                if self._stopped.is_set():
                    return
                callback = polled.poll(connection, self._timeout_s) if polled.due else None
                if callback is not None:
                    with self._calling:
                        if polled in self._polled:
                            callback()
            retry = any(polled.due for polled in self._polled)
            self._wake.wait(_RETRY_S if retry else None)


def _change(znode: ZNode | None) -> int | None:
    return None if znode is None else znode.change
