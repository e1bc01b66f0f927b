"""A held node: a thread of this process renews the lease, by a change of the node's mark."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable

from heron import clock
from heron.errors import StateError
from heron_statemgr_hdfs.node import LIMIT_S, Node

__all__ = ["HdfsHold"]

_log = logging.getLogger(__name__)


class HdfsHold:
    """Implements `heron.spi.statemgr.Hold`; thread-safe."""

    def __init__(self, node: Node, value: bytes, period_s: float, on_release: Callable[[HdfsHold], None]) -> None:
        self._node = node
        self._period_s = period_s
        self._on_release = on_release
        self._holder = secrets.token_hex(8)
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._epoch = node.acquire(value, self._holder)
        self._thread = threading.Thread(target=self._keep, name="statemgr-hdfs-hold", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        return self._epoch

    def lost(self) -> bool:
        """Return the result of the last renewal, without a request to HDFS."""
        return self._ended.is_set()

    def release(self) -> None:
        self.release_within(LIMIT_S)

    def release_within(self, limit_s: float) -> None:
        """End the renewals and remove the node. Without an answer within `limit_s` seconds, the lease expires."""
        deadline_s = clock.monotonic_s() + limit_s
        with self._guard:
            ended = self._ended.is_set()
            self._ended.set()
        self._thread.join(max(0.0, limit_s))
        if not ended:
            try:
                self._node.release(self._holder, deadline_s - clock.monotonic_s())
            except StateError as error:
                _log.warning("%s stays until its lease expires: %s", self._node.label, error)
        self._on_release(self)

    def _keep(self) -> None:
        logged = ""
        while not self._ended.wait(self._period_s):
            try:
                # The limit keeps a request that hangs from delaying more than one renewal.
                if not self._node.renew(self._holder, 2 * self._period_s):
                    _log.warning("the hold of %s is lost: another process removed or holds the node", self._node.label)
                    self._ended.set()
                logged = ""
            except StateError as error:
                if str(error) != logged:
                    logged = str(error)
                    _log.warning("cannot renew the hold of %s, trying again: %s", self._node.label, error)
