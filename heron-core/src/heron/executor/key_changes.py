"""Hands changed keys to the processes of a container: by their spec files, or by a new start; decision 059."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from heron.executor.children import Children
from heron.executor.container_keys import ContainerKeys
from heron.executor.container_processes import ContainerProcess
from heron.ipc.reactor import Reactor
from heron.spi.statemgr import Versioned

__all__ = ["KeyChanges"]

_RENEWED = frozenset({"tmanager", "service"})  # they have the first set of keys only, and start again when it changes
_REREADING = frozenset({"stmgr", "metricsmgr"})  # they read their spec files again when the keys change
_RETRY_S = 1.0

_log = logging.getLogger(__name__)


class KeyChanges:
    """Follows the keys of a container, and knows the processes that end because theirs have changed."""

    def __init__(
        self,
        reactor: Reactor,
        keys: ContainerKeys,
        processes: Mapping[str, ContainerProcess],
        children: Children,
        grace_s: float,
        write_spec: Callable[[str], object],
    ) -> None:
        """`write_spec` writes the spec file of a running process again; it raises OSError."""
        self._reactor = reactor
        self._keys = keys
        self._processes = processes
        self._children = children
        self._grace_s = grace_s
        self._write_spec = write_spec
        self._renewed: set[str] = set()

    def follow(self, node: Versioned | None, topology: str, on_written: Callable[[int], object]) -> None:
        """Takes a value of the node KEYS.

        `on_written` gets the version of the keys when the spec files have them.
        """
        before = self._keys.follow(node, topology)
        if before is None:
            return
        _log.info("keys of version %d: %d sets", self._keys.version, len(self._keys.ring.sets()))
        if before.server != self._keys.ring.server:
            for name in self._alive(_RENEWED):
                self._renewed.add(name)
                self._children.ask(name)
                self._reactor.after(self._grace_s, partial(self._kill, name, self._children.pid(name)))
        self._hand(on_written)

    def take_renewed(self, name: str) -> bool:
        """Whether the process that has ended did so because its keys have changed."""
        renewed = name in self._renewed
        self._renewed.discard(name)
        return renewed

    def _hand(self, on_written: Callable[[int], object]) -> None:
        """Writes the keys into the spec files; the disk may be full, and then it tries again."""
        try:
            for name in self._alive(_REREADING):
                self._write_spec(name)
        except OSError as error:
            _log.error("keys cannot be written, next attempt in %g s: %s", _RETRY_S, error)
            self._reactor.after(_RETRY_S, partial(self._hand, on_written))
            return
        on_written(self._keys.version)

    def _alive(self, roles: frozenset[str]) -> list[str]:
        alive = self._children.alive()
        return [name for name, process in self._processes.items() if process.role in roles and name in alive]

    def _kill(self, name: str, pid: int) -> None:
        if name in self._renewed and self._children.pid(name) == pid:
            _log.warning("%s did not end for its new keys in time, killing it", name)
            self._children.kill(name)
