"""A held node: an ephemeral znode, with a watch that reports its loss; and a release that waits for ZooKeeper."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from heron.errors import StateError, StateUnavailableError
from heron_statemgr_zookeeper.connection import Connection
from heron_statemgr_zookeeper.operation import ZNode
from heron_statemgr_zookeeper.record import decode
from heron_statemgr_zookeeper.watcher import Watcher

__all__ = ["PendingRelease", "ZookeeperHold"]

_log = logging.getLogger(__name__)


class ZookeeperHold:
    """Implements `heron.spi.statemgr.Hold`; thread-safe.

    `lost` sends no request. The watch reports that the znode is gone or belongs to another hold; the connection reports
    the loss of the session. While the session is suspended the state is unknown, and the hold is not lost.
    """

    def __init__(self, path: str, token: str, epoch: int) -> None:
        self.path = path
        self.token = token
        self._epoch = epoch
        self._lost = False
        self._release: Callable[[], None] | None = None

    @property
    def epoch(self) -> int:
        return self._epoch

    def lost(self) -> bool:
        return self._lost

    def mark_lost(self) -> None:
        """Make `lost` true."""
        self._lost = True

    def on_change(self, znode: ZNode | None) -> None:
        """The callback for the watch of the node."""
        if znode is None or not self._is_ours(znode):
            self._lost = True

    def on_release(self, release: Callable[[], None]) -> None:
        """Set the function that `release` calls once."""
        self._release = release

    def release(self) -> None:
        self._lost = True
        release, self._release = self._release, None
        if release is not None:
            try:
                release()
            except StateError as error:
                _log.warning("a released node stays until its session ends: %s", error)

    def _is_ours(self, znode: ZNode) -> bool:
        try:
            return decode(znode.data, self.path).holder == self.token
        except StateError:
            return bool(znode.owner)  # edited by hand, but it still ends with its session


class PendingRelease:
    """Removes a released node when ZooKeeper answers again. Implements `heron_statemgr_zookeeper.watcher.Polled`.

    The session lives as long as this process, which can be hours. Until then the node would be a lock that blocks every
    other command.
    """

    def __init__(self, release: Callable[[], None], watcher: Watcher) -> None:
        """`release` removes the node if it still belongs to the released hold."""
        self.due = True
        self._release = release
        self._watcher = watcher

    def poll(self, connection: Connection, timeout_s: float) -> Callable[[], None] | None:
        """Try the release if there is a connection."""
        del timeout_s  # `release` has the same limit
        self.due = False
        try:
            connection.connect(0.0)
            self._release()
        except StateUnavailableError:
            self.due = True
            return None
        except StateError as error:
            _log.warning("a released node stays until its session ends: %s", error)
        return functools.partial(self._watcher.remove, self)
