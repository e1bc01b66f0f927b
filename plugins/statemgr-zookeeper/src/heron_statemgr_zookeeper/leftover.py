"""A released node that could not be removed, because ZooKeeper was away.

Its session lives as long as this process, and so would the node: for hours, a lock in the way of every other command.
So it is removed as soon as ZooKeeper answers again.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from heron.errors import StateError, StateUnavailableError
from heron_statemgr_zookeeper.connection import Connection
from heron_statemgr_zookeeper.watcher import Watcher

__all__ = ["Leftover"]

_log = logging.getLogger(__name__)


class Leftover:
    """Implements `heron_statemgr_zookeeper.watcher.Looking`; forgotten when it is done."""

    def __init__(self, give_up: Callable[[], None], watcher: Watcher) -> None:
        """`give_up` removes the node, if it is still the one that was released."""
        self.due = True
        self._give_up = give_up
        self._watcher = watcher

    def look(self, connection: Connection, timeout_s: float) -> Callable[[], None] | None:
        """Tries it, if there is a connection."""
        del timeout_s  # that of `give_up` is the same
        self.due = False
        try:
            connection.connect(0.0)
            self._give_up()
        except StateUnavailableError:
            self.due = True
            return None
        except StateError as error:
            _log.warning("a released node stays until its session ends: %s", error)
        return functools.partial(self._watcher.forget, self)
