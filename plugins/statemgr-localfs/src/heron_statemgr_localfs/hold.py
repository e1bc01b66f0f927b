"""A held node: its lock file's descriptor stays open for as long as this process lives or until it is released."""

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
        self._epoch, self._descriptor = node.take(value, token)

    @property
    def epoch(self) -> int:
        return self._epoch

    def lost(self) -> bool:
        """Looks at the node: it is lost once it was removed or is another's; a store that is away says nothing.

        One that was cut or garbled is written again as it was taken: nobody could find its holder otherwise.
        """
        with self._guard:
            if not self._lost:
                try:
                    self._lost = not self._node.held_by(self._token)
                except StateUnavailableError as error:
                    _log.warning("cannot tell whether a hold is lost: %s", error)
                except StateError as error:
                    self._restore(error)
            return self._lost

    def release(self) -> None:
        with self._guard:
            if self._released:
                return
            self._released = self._lost = True
            try:
                self._node.give_up(self._token, self._descriptor)
            except StateError as error:
                # The lock is free all the same, so that the next reader removes the node.
                _log.warning("a released node stays until it is next looked at: %s", error)
        self._on_release(self)

    def _restore(self, damage: StateError) -> None:
        try:
            self._node.restore(self._epoch, self._value, self._token)
            _log.warning("a held node was damaged and is written again: %s", damage)
        except StateError as error:
            _log.warning("a held node is damaged and cannot be written again: %s", error)
