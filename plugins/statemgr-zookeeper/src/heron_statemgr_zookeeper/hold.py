"""A held node: an ephemeral znode, and a watch that notices when it is not ours any longer."""

from __future__ import annotations

import logging
from collections.abc import Callable

from heron.errors import StateError
from heron_statemgr_zookeeper.operation import ZNode
from heron_statemgr_zookeeper.record import decode

__all__ = ["ZookeeperHold"]

_log = logging.getLogger(__name__)


class ZookeeperHold:
    """Implements `heron.spi.statemgr.Hold`; thread-safe.

    Whether it is lost is known without asking: the watch says that the znode is gone or another's, the connection that
    the session is lost. While the session is suspended nothing is known, and it is not lost.
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

    def give_up(self) -> None:
        """It is lost from now on."""
        self._lost = True

    def on_change(self, znode: ZNode | None) -> None:
        """What the watch of the node sees."""
        if znode is None or not self._is_ours(znode):
            self._lost = True

    def on_release(self, release: Callable[[], None]) -> None:
        """What `release` does, once."""
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
            return bool(znode.owner)  # changed by hand, and it still ends with its session
