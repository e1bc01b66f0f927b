"""The driver. It checks names, delegates to the node, and owns the connection, the holds and the watcher."""

from __future__ import annotations

import builtins
import re
import threading
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Self

import msgspec

from heron.clock import SystemClock, monotonic_s
from heron.errors import StateError
from heron.spi.options import decode_options
from heron.spi.statemgr import Hold, NodeKind, StateManager, Versioned, Watch
from heron_hdfs_kit.place import HdfsPlace, HdfsRoot
from heron_statemgr_hdfs.hold import HdfsHold
from heron_statemgr_hdfs.lease_monitor import RENEWALS_PER_LEASE, LeaseMonitor
from heron_statemgr_hdfs.node import LIMIT_S, Node, Store
from heron_statemgr_hdfs.watcher import Watcher
from heron_statemgr_hdfs.web_hdfs import WebHdfs

__all__ = ["HdfsOptions", "HdfsStateManager"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_CLOSE_S = 1.5  # an executor must end within 5 s of its stop signal; an unreleased lease expires


class HdfsOptions(HdfsPlace, frozen=True):
    """The driver's section of a profile."""

    root: HdfsRoot = "/heron/state"
    lease_s: Annotated[float, msgspec.Meta(ge=1, le=5)] = 4.0
    poll_s: Annotated[float, msgspec.Meta(ge=0.1, le=1)] = 0.5


class HdfsStateManager(StateManager):
    """Keeps nodes as files in HDFS, for the processes of all machines that reach it."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"server"})
    options_type: ClassVar[type] = HdfsOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver without a request. The first call of a method sends the first request."""
        return cls(decode_options(options, HdfsOptions, "statemgr"))

    def __init__(self, options: HdfsOptions) -> None:
        self._options = options
        self._hdfs = WebHdfs(options.url, options.user, options.token)
        self._store = Store(self._hdfs, options.root, LeaseMonitor(options.lease_s, SystemClock()))
        self._guard = threading.Lock()
        self._holds: list[HdfsHold] = []
        self._watcher: Watcher | None = None
        self._closed = False

    def check(self, timeout_s: float) -> str:
        with self._hdfs.within(timeout_s):
            exists = self._hdfs.entries(self._options.root) is not None
        note = "" if exists else " (the first topology creates it)"
        return f"HDFS at {self._options.url}, folder {self._options.root}{note}"

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        return self._node(kind, topology).read()

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        return self._node(kind, topology).write(value, expected)

    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        self._node(kind, topology).remove(expected)

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        with self._hdfs.within(LIMIT_S):
            entries = self._hdfs.entries(f"{self._options.root}/{kind.value}") or ()
            # A folder with one entry has only the pointer of a removed node.
            names = sorted(each.name for each in entries if _NAME.fullmatch(each.name) and each.children != 1)
            return tuple(name for name in names if self._node(kind, name).pointer().token)

    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        node = self._node(kind, topology)
        with self._guard:
            if self._watcher is None:
                self._watcher = Watcher(self._options.poll_s)
            watcher = self._watcher
        return watcher.add(node, on_change)

    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        """Hold the node. If it is held, first wait until its holder renews the lease or counts as dead."""
        node = self._node(kind, topology)
        hold = HdfsHold(node, value, self._options.lease_s / RENEWALS_PER_LEASE, self._forget)
        with self._guard:
            self._holds.append(hold)
        return hold

    def close(self) -> None:
        with self._guard:
            self._closed = True
            holds: builtins.list[HdfsHold] = [*self._holds]
            watcher, self._watcher = self._watcher, None
        deadline_s = monotonic_s() + _CLOSE_S
        if watcher is not None:
            watcher.close(_CLOSE_S)
        for hold in holds:
            hold.release_within(deadline_s - monotonic_s())
        self._hdfs.close()

    def _forget(self, hold: HdfsHold) -> None:
        with self._guard:
            if hold in self._holds:
                self._holds.remove(hold)

    def _node(self, kind: NodeKind, topology: str) -> Node:
        if self._closed:
            message = f"the state manager of HDFS at {self._options.url} is closed; open another one"
            raise StateError(message)
        if not _NAME.fullmatch(topology):
            message = f"{topology[:220]!r} is not a topology name: use 1 to 200 of the characters A-Z a-z 0-9 _ -"
            raise StateError(message)
        return Node(self._store, kind.value, topology)
