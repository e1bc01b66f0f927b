"""A watched node: etcd wakes a thread, the thread reads the node, and reports a new version.

Events of etcd can be lost, combined and late; versions cannot. So an event only wakes the thread, which then compares
versions. The thread waits from the revision after the last one that it read, so it misses no change. Each wait ends
after half a second, which is the longest time that `close` takes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from heron.errors import StateError
from heron.spi.statemgr import Versioned

from heron_statemgr_etcd.node import Node

__all__ = ["EtcdWatch"]

_log = logging.getLogger(__name__)

_WAIT_S = 0.5


class EtcdWatch:
    """Implements `heron.spi.statemgr.Watch`."""

    def __init__(self, node: Node, on_change: Callable[[Versioned | None], None]) -> None:
        self._node = node
        self._on_change = on_change
        self._closed = threading.Event()
        present, self._revision = node.read()
        self._report(present)
        self._thread = threading.Thread(target=self._follow, name="etcd-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the watch; the callback may call this too."""
        self._closed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                self._node.etcd.wait(self._node.key, self._revision + 1, _WAIT_S)
                present, self._revision = self._node.read()
            except StateError as error:
                _log.warning("cannot read %s, trying again: %s", self._node.name, error)
                self._closed.wait(_WAIT_S)
                continue
            if (present.version if present else 0) != self._version and not self._closed.is_set():
                self._report(present)

    def _report(self, present: Versioned | None) -> None:
        self._version = present.version if present else 0
        try:
            self._on_change(present)
        except Exception:
            _log.exception("a callback of the watch of %s raised; the watch goes on", self._node.name)
