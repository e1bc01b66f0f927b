"""A held node: a thread of this process changes the node's mark several times in a lease."""

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
        self._epoch = node.take(value, self._holder)
        self._thread = threading.Thread(target=self._keep, name="statemgr-hdfs-hold", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        return self._epoch

    def lost(self) -> bool:
        """What the last renewal found: nobody who asks waits for HDFS."""
        return self._ended.is_set()

    def release(self) -> None:
        self.release_within(LIMIT_S)

    def release_within(self, limit_s: float) -> None:
        """Gives it up if that can be done in `limit_s` seconds; else it lapses, for it is not renewed any more."""
        deadline_s = clock.monotonic_s() + limit_s
        with self._guard:
            ended = self._ended.is_set()
            self._ended.set()
        self._thread.join(max(0.0, limit_s))
        if not ended:
            try:
                self._node.give_up(self._holder, deadline_s - clock.monotonic_s())
            except StateError as error:
                _log.warning("%s stays until its lease is over: %s", self._node.label, error)
        self._on_release(self)

    def _keep(self) -> None:
        said = ""
        while not self._ended.wait(self._period_s):
            try:
                # A request that hangs must not cost more than one renewal.
                if not self._node.renew(self._holder, 2 * self._period_s):
                    _log.warning("the hold of %s is lost: somebody removed or took it", self._node.label)
                    self._ended.set()
                said = ""
            except StateError as error:
                if str(error) != said:
                    said = str(error)
                    _log.warning("cannot renew the hold of %s, trying again: %s", self._node.label, error)
