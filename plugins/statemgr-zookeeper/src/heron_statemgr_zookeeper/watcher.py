"""The watches of a manager: one thread that looks at a znode whenever ZooKeeper says that it may have changed.

A watch of ZooKeeper tells once, and only as long as its connection lasts. So each look sets it again in the same
request that reads, and after every new connection everything is looked at: what changed in between is told then.
Nothing is ever told from an event alone.
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

__all__ = ["Looking", "Watcher", "ZNodeWatch"]

_log = logging.getLogger(__name__)

_RETRY_S = 0.5  # after a look that failed although there is a connection
_LOOK_S = 1.0  # an answer takes milliseconds; the thread ends by itself if there is none


class Looking(Protocol):
    """What the thread looks after."""

    due: bool
    """Whether a look is wanted: it is set before the thread is woken, and cleared before it looks."""

    def look(self, connection: Connection, timeout_s: float) -> Callable[[], None] | None:
        """Looks; returns what is to be called then, None where nothing is."""
        ...


class ZNodeWatch:
    """Implements `heron.spi.statemgr.Watch`; calls only when the znode is another than it last told."""

    def __init__(self, path: str, on_change: Callable[[ZNode | None], None], watcher: Watcher) -> None:
        self.path = path
        self.due = True
        self._on_change = on_change
        self._watcher = watcher
        self._change: int | None = None
        self._error = ""

    def on_event(self, _event: object) -> None:
        """Called by kazoo; comes back for every look that it was given to."""
        self.due = True
        self._watcher.wake()

    def begin(self, connection: Connection, deadline_s: float) -> None:
        """The first look, whose errors are the caller's."""
        self.due = False
        self._tell(connection.look(self.path, self.on_event, deadline_s))

    def look(self, connection: Connection, timeout_s: float) -> Callable[[], None] | None:
        """Another one; returns what tells the change, None where there is none. A store that is away is no change."""
        self.due = False
        try:
            connection.connect(0.0)
            znode = connection.look(self.path, self.on_event, clock.monotonic_s() + timeout_s)
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
        return None if _change(znode) == self._change else functools.partial(self._tell, znode)

    def close(self) -> None:
        self._watcher.forget(self)

    def _tell(self, znode: ZNode | None) -> None:
        self._change = _change(znode)
        try:
            self._on_change(znode)
        except Exception:
            _log.exception("a watch of %s raised; the watch goes on", self.path)


class Watcher:
    """Owns the thread, which begins with the first watch."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._watches: list[Looking] = []
        self._guard = threading.Lock()
        self._calling = threading.RLock()  # held while callbacks run: `forget` waits, a callback may close
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, connection: Connection, path: str, on_change: Callable[[ZNode | None], None]) -> ZNodeWatch:
        """Tells the present from this thread, and each change later from the watcher's."""
        watch = ZNodeWatch(path, on_change, self)
        watch.begin(connection, clock.monotonic_s() + self._timeout_s)
        self.look_after(connection, watch)
        return watch

    def look_after(self, connection: Connection, looking: Looking) -> None:
        """From now on, until it is forgotten."""
        with self._guard:
            self._watches = [*self._watches, looking]
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(
                    target=self._run, args=(connection,), name="zookeeper-watch", daemon=True
                )
                self._thread.start()
        self._wake.set()  # what happened before it was in the list

    def look_at_all(self) -> None:
        """Wanted after each new connection, which knows nothing of the watches of the former."""
        for watch in self._watches:
            watch.due = True
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    def forget(self, looking: Looking) -> None:
        with self._calling, self._guard:
            self._watches = [each for each in self._watches if each is not looking]

    def close(self) -> None:
        """Makes no further call; what is under way is waited for, for a second: it may wait for ZooKeeper."""
        deadline_s = clock.monotonic_s() + _LOOK_S
        with self._guard:
            self._stopped.set()
            self._watches = []
        self._wake.set()
        if self._calling.acquire(timeout=_LOOK_S):
            self._calling.release()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join(max(0.0, deadline_s - clock.monotonic_s()))

    def _run(self, connection: Connection) -> None:
        while not self._stopped.is_set():
            self._wake.clear()
            for watch in self._watches:
                if self._stopped.is_set():
                    return
                tell = watch.look(connection, self._timeout_s) if watch.due else None
                if tell is not None:
                    with self._calling:
                        if watch in self._watches:
                            tell()
            waiting = any(watch.due for watch in self._watches)
            self._wake.wait(_RETRY_S if waiting else None)


def _change(znode: ZNode | None) -> int | None:
    return None if znode is None else znode.change
