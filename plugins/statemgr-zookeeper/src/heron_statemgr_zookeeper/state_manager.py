"""The driver. It checks names, delegates to the node, and owns the connection, the holds and the watcher."""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Self

from heron import clock
from heron.errors import StateError, StateUnavailableError
from heron.spi.options import decode_options
from heron.spi.statemgr import Hold, NodeKind, StateManager, Versioned, Watch
from heron_statemgr_zookeeper.connection import Connection
from heron_statemgr_zookeeper.hold import PendingRelease, ZookeeperHold
from heron_statemgr_zookeeper.node import Node
from heron_statemgr_zookeeper.operation import ZNode
from heron_statemgr_zookeeper.options import ZookeeperOptions
from heron_statemgr_zookeeper.session_lock import SessionLocks
from heron_statemgr_zookeeper.watcher import Watcher

__all__ = ["ZookeeperStateManager"]

_log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


class ZookeeperStateManager(StateManager):
    """Keeps nodes in ZooKeeper, for the processes of all machines that reach it. Each object has one session."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"server"})
    options_type: ClassVar[type] = ZookeeperOptions
    max_value_bytes: ClassVar[int | None] = 1000 * 1024
    """ZooKeeper limits a request to 1 MiB (``jute.maxbuffer``), including path, header and access list."""

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver without connecting. The first call of a method connects."""
        return cls(decode_options(options, ZookeeperOptions, "statemgr"))

    def __init__(self, options: ZookeeperOptions) -> None:
        self._options = options
        self._guard = threading.Lock()
        self._holds: dict[str, ZookeeperHold | None] = {}  # by token; None during `acquire`
        self._watcher = Watcher(options.timeout_s)
        self._session_locks = SessionLocks(Path(os.path.abspath(os.path.expanduser(options.lock_dir))))
        self._connection = Connection(options, self._watcher.poll_all, self._lose_holds)

    @property
    def root(self) -> str:
        """The znode above all others."""
        return self._options.root

    def check(self, timeout_s: float) -> str:
        deadline_s = clock.monotonic_s() + 0.9 * timeout_s
        self._connection.read([self._options.root], deadline_s)
        version = self._connection.version(deadline_s)
        return f"ZooKeeper {version} at {self._options.hosts}".replace("  ", " ")

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        record = self._node(kind, topology).read()
        return None if record is None else Versioned(record.value, record.version)

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        return self._node(kind, topology).write(self._checked_size(value), expected)

    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        self._node(kind, topology).remove(expected)

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        deadline_s = clock.monotonic_s() + self._options.timeout_s
        names = self._connection.children(f"{self._options.root}/{kind.value}", deadline_s)
        return tuple(sorted(name for name in names if _NAME.fullmatch(name)))

    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        node = self._node(kind, topology)
        node.read()  # raises for an unreadable node; later the watcher only logs it

        def notify(znode: ZNode | None) -> None:
            record = node.decoded(znode)
            on_change(None if record is None else Versioned(record.value, record.version))

        return self._watcher.watch(self._connection, node.path, notify)

    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        node = self._node(kind, topology)
        self._connection.connect(clock.monotonic_s() + self._options.timeout_s)
        if (session := self._connection.session()) is not None:
            self._session_locks.lock(session)
        hold = self._acquire(node, self._checked_size(value))
        try:
            watch = self._watcher.watch(self._connection, node.path, hold.on_change)
        except StateError:
            self._forget(hold.token)
            self._release_later(kind, topology, hold.token)
            raise

        def release() -> None:
            watch.close()
            self._forget(hold.token)
            try:
                self._node(kind, topology).release(hold.token)
            except StateUnavailableError as error:
                _log.warning("a released node is removed when ZooKeeper answers again: %s", error)
                self._release_later(kind, topology, hold.token)

        hold.on_release(release)
        return hold

    def close(self) -> None:
        self._lose_holds()
        self._watcher.close()  # before the connection: kazoo drops requests that arrive while it closes
        ended = self._connection.close(self._options.timeout_s)
        self._session_locks.close(ended=ended)

    def _acquire(self, node: Node, value: bytes) -> ZookeeperHold:
        token = secrets.token_hex(8)
        with self._guard:
            self._holds[token] = None
        try:
            hold = ZookeeperHold(node.path, token, node.acquire(value, token, self._is_dead))
        except BaseException:
            self._forget(token)
            raise
        with self._guard:
            self._holds[token] = hold
        return hold

    def _is_dead(self, session: int, token: str) -> bool:
        if session == self._connection.session():
            with self._guard:
                return token not in self._holds  # the `hold` that created this node failed without an answer
        return self._session_locks.is_dead(session)

    def _lose_holds(self) -> None:
        with self._guard:
            holds = [hold for hold in self._holds.values() if hold is not None]
        for hold in holds:
            hold.mark_lost()

    def _forget(self, token: str) -> None:
        with self._guard:
            self._holds.pop(token, None)

    def _release_later(self, kind: NodeKind, topology: str, token: str) -> None:
        release = PendingRelease(lambda: self._node(kind, topology).release(token), self._watcher)
        self._watcher.add(self._connection, release)

    def _node(self, kind: NodeKind, topology: str) -> Node:
        if not _NAME.fullmatch(topology):
            message = f"{topology[:220]!r} is not a topology name: use 1 to 200 of the characters A-Z a-z 0-9 _ -"
            raise StateError(message)
        return Node(self._connection, self._options.root, kind, topology, self._options.timeout_s)

    def _checked_size(self, value: bytes) -> bytes:
        limit = self.max_value_bytes
        if limit is not None and len(value) > limit:
            message = f"a value of {len(value)} bytes is above the limit of {limit} bytes for ZooKeeper; split it"
            raise StateError(message)
        return value
