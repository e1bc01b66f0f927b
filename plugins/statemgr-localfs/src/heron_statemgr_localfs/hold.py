"""A held node: the process keeps the descriptor of its lock file open until it releases the node or ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from heron.errors import StateError, StateUnavailableError
from heron_statemgr_localfs.node import Node

__all__ = ["FileHold"]

_log = logging.getLogger(__name__)


class FileHold:
    """Implements `heron.spi.statemgr.Hold`; thread-safe."""

    def __init__(self, node: Node, value: bytes, token: str, on_release: Callable[[FileHold], None]) -> None:
        self._node = node
        self._value = value
        self._token = token
        self._on_release = on_release
        self._guard = threading.Lock()
        self._lost = False
        self._released = False
        self._epoch, self._descriptor = node.acquire(value, token)

    @property
    def epoch(self) -> int:
        return self._epoch

    def lost(self) -> bool:
        """Read the node. The hold is lost if the node was removed or another process holds it.

        An unavailable store leaves the hold as it is. A garbled node is rewritten with the value and version of this
        hold, so that other processes can find its holder.
        """
        with self._guard:
            if not self._lost:
                try:
                    self._lost = not self._node.held_by(self._token)
                except StateUnavailableError as error:
                    _log.warning("cannot find out whether a hold is lost: %s", error)
                except StateError as error:
                    self._restore(error)
            return self._lost

    def release(self) -> None:
        with self._guard:
            if self._released:
                return
            self._released = self._lost = True
            try:
                self._node.release(self._token, self._descriptor)
            except StateError as error:
                # The lock is free nevertheless, so the next reader removes the node.
                _log.warning("a released node stays until a process reads it: %s", error)
        self._on_release(self)

    def _restore(self, damage: StateError) -> None:
        try:
            self._node.restore(self._epoch, self._value, self._token)
            _log.warning("rewrote a damaged held node: %s", damage)
        except StateError as error:
            _log.warning("cannot rewrite a damaged held node: %s", error)
